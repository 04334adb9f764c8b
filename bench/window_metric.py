# Copyright 2026 macvo_ros contributors
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.


"""Which residuals: the paper's points in space in the metric of their covariance, or pixels and disparity?

    python -m bench.window_metric [--runs 300]

Two frames, matches drawn from the stated noise, the same for both solvers: `pose_solver.py` (points) and
`window_solver.py` with a window of two (pixels and disparity). Error of the motion, root mean square and its mean along
the way, near and far from the camera. Writes bench/results/window_metric.txt.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from macvo_ros.atomic_write import atomic_write
from macvo_ros.evaluation.environment import measured_with
from macvo_ros.evaluation.metrics import motion_error
from macvo_ros.evaluation.table import format_table
from macvo_ros.geometry.camera import StereoCamera, rays
from macvo_ros.geometry.se3 import exp_so3, transform
from macvo_ros.matching.matcher import PointMatches
from macvo_ros.motion.point_pairs import point_pairs
from macvo_ros.motion.pose_solver import solve_pose
from macvo_ros.motion.window_points import WindowPoints, WindowState
from macvo_ros.motion.window_prior import PosePrior
from macvo_ros.motion.window_solver import solve_window
from macvo_ros.settings.config import PoseConfig

RESULTS = Path(__file__).parent / "results"
CAMERA = StereoCamera(fx=320.0, fy=320.0, cx=319.5, cy=239.5, baseline=0.25, width=640, height=480)
DISPARITIES = {"8 to 40 pixels": (8.0, 40.0), "2 to 10 pixels": (2.0, 10.0), "1 to 4 pixels": (1.0, 4.0)}
_SHARED = 1e-4  # of the variances: nothing to speak of, between two frames it has no meaning


def draw(
    rng: np.random.Generator, disparities: tuple[float, float], count: int = 200
) -> tuple[np.ndarray, PointMatches]:
    """A motion forward with a turn, and matches of points at such disparities with errors of 0.05 to 0.2 pixels."""
    motion = transform(exp_so3(rng.normal(0, 0.02, 3)), np.array([0.0, 0.0, 0.3]) + rng.normal(0, 0.05, 3))
    pixel = np.column_stack((rng.uniform(20, 620, count), rng.uniform(20, 460, count)))
    disparity = rng.uniform(*disparities, count)
    depth = CAMERA.fx * CAMERA.baseline / disparity
    x, y, z = ((rays(CAMERA, pixel) * depth[:, None] - motion[:3, 3]) @ motion[:3, :3]).T
    matched = np.column_stack((CAMERA.fx * x / z + CAMERA.cx, CAMERA.fy * y / z + CAMERA.cy))
    sigma = 0.1 * rng.uniform(0.5, 2.0, (4, count))
    noise = sigma * rng.normal(size=sigma.shape)
    return motion, PointMatches(
        pixel,
        disparity + noise[0],
        sigma[0] ** 2,
        matched - pixel + noise[1:3].T,
        sigma[1:3].T ** 2,
        CAMERA.fx * CAMERA.baseline / z + noise[3],
        sigma[3] ** 2,
    )


def in_pixels(points: PointMatches) -> np.ndarray:
    """The motion by the window's solver."""
    count = len(points.pixel)
    variance = np.vstack((points.flow_var.T, points.matched_disparity_var))
    seen = np.zeros((2, 3, count))
    seen[1] = np.vstack(((points.pixel + points.flow).T, points.matched_disparity))
    inverse_sigma = np.zeros((2, 3, count))
    inverse_sigma[1] = 1.0 / np.sqrt(variance)
    zero = np.zeros(count)
    window = WindowPoints(
        anchor=np.zeros(count, np.int64),
        pixel=points.pixel.T,
        disparity=points.disparity,
        disparity_var=points.disparity_var,
        shared_var=_SHARED * np.vstack((points.flow_var.T, points.disparity_var)),
        seen=seen,
        inverse_sigma=inverse_sigma,
        crowding=np.ones(count),
    )
    start = WindowState(np.stack([np.eye(3)] * 2), np.zeros((2, 3)), np.stack((zero, zero, points.disparity, zero)))
    prior = PosePrior.of(np.eye(3), np.zeros(3), 1e-12 * np.eye(6))
    state = solve_window(CAMERA, window, start, prior, PoseConfig()).state
    return transform(state.rotation[1], state.position[1])


def main() -> None:
    """Draw, solve twice, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=300)
    args = parser.parse_args()
    rows = []
    for name, disparities in DISPARITIES.items():
        rng = np.random.default_rng(0)
        true: list[np.ndarray] = []
        found: dict[str, list[np.ndarray]] = {"points in space": [], "pixels and disparity": []}
        for _ in range(args.runs):
            motion, points = draw(rng, disparities)
            true.append(motion)
            found["points in space"].append(solve_pose(point_pairs(CAMERA, points), np.eye(4), PoseConfig()).motion)
            found["pixels and disparity"].append(in_pixels(points))
        for residuals, motions in found.items():
            error = motion_error(np.array(motions), np.array(true))
            translation, rotation = 1e3 * error[:, :3], np.degrees(error[:, 3:])
            rows.append(
                [
                    name,
                    residuals,
                    f"{np.sqrt((translation**2).sum(axis=1).mean()):.3f}",
                    f"{np.sqrt((rotation**2).sum(axis=1).mean()):.4f}",
                    f"{-translation[:, 2].mean():+.3f}",
                ]
            )
    heading = ["disparities", "residuals", "rms [mm]", "rms [deg]", "too far ahead, mean [mm]"]
    text = f"{args.runs} motions of 0.3 m, 200 points each\n{format_table(heading, rows)}\n\n{measured_with()}\n"
    print(text)
    atomic_write(RESULTS / "window_metric.txt", text)


if __name__ == "__main__":
    main()
