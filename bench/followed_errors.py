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

"""How far followed points are from where they should be: by relief of what their patches show, and by parallax.

    python -m bench.followed_errors [--worlds room corridor] [--seeds 311 313] [--frames 100] [--log NAME]

On rendered walks, tracked with the calibration as told. The error of a point in the newest frame is divided into the
part along its epipolar line, which is that of a disparity at first sight, and the part across it. Parallax: pixels that
it moved farther by per pixel of disparity. Relief: root mean square by which the disparity about it departs from a
plane, as the dense match has it. The last columns are the root mean squares of what is left without the smallest
relief's part, over parallax times relief: `followed_points.RELIEF_DEPTH` and, across, `_RELIEF`.
Writes bench/results/NAME.txt (followed_errors.txt).
"""

from __future__ import annotations

import argparse
from itertools import pairwise
from pathlib import Path

import numpy as np

from bench.true_matches import ExactMatches
from macvo_ros.atomic_write import atomic_write
from macvo_ros.evaluation.environment import measured_with
from macvo_ros.evaluation.table import format_table
from macvo_ros.geometry.camera import pixels, rays
from macvo_ros.geometry.se3 import inverse
from macvo_ros.odometry.pose_window import PoseWindow
from macvo_ros.odometry.stereo_odometry import StereoOdometry
from macvo_ros.rendering.sequence import RenderedSequence
from macvo_ros.settings.config import load_config

RESULTS = Path(__file__).parent / "results"
PARALLAX = ((0.2, 0.6), (0.6, 1.2), (1.2, 2.5))
QUANTILES = (0.0, 0.25, 0.5, 0.75, 0.9, 1.0)
MISMATCH = 1.0  # pixels, beyond which an error is another thing than relief
HEADING = ["relief [px]", "parallax", "sightings", "along [px]", "across [px]", "along / relief", "across / relief"]


def errors(window: PoseWindow, index: dict[int, int], truth: ExactMatches) -> np.ndarray:
    """(M, 4) of the points followed to the newest frame: error along and across, parallax, relief."""
    inside, views = window._window, window._views  # it is what is measured here
    if inside is None or views is None:
        return np.empty((0, 4))
    camera, points, poses = inside.camera, inside.points, truth.poses
    frames, rows = [index[stamp] for stamp in window._stamps], []
    followed = (points.inverse_sigma[-1, 0] > 0) & (points.anchor < len(inside) - 2)
    for anchor in np.unique(points.anchor[followed]):
        at = np.flatnonzero(followed & (points.anchor == anchor))
        pixel = points.pixel[:, at].T
        motion = inverse(poses[frames[-1]]) @ poses[frames[anchor]]
        near = truth.disparity(frames[anchor], pixel) / (camera.fx * camera.baseline)
        step = 0.1 / (camera.fx * camera.baseline)
        place, farther = (
            pixels(camera, rays(camera, pixel) @ motion[:3, :3].T + depth[:, None] * motion[:3, 3])
            for depth in (near, near + step)
        )
        along = (farther - place) / 0.1
        parallax = np.linalg.norm(along, axis=1)
        along /= np.maximum(parallax, 1e-9)[:, None]
        off = points.seen[-1, :2, at] - place
        across = off[:, 1] * along[:, 0] - off[:, 0] * along[:, 1]
        rows.append(np.column_stack(((off * along).sum(axis=1), across, parallax, views.relief[at])))
    return np.vstack(rows) if rows else np.empty((0, 4))


def table(found: np.ndarray) -> list[list[str]]:
    """A row for each relief and parallax."""
    found = found[np.abs(found[:, :2]).max(axis=1) < MISMATCH]
    edges, rows = np.quantile(found[:, 3], QUANTILES), []
    least: dict[tuple[float, float], np.ndarray] = {}
    for low, high in pairwise(edges):
        for near, far in PARALLAX:
            chosen = found[(found[:, 3] >= low) & (found[:, 3] <= high) & (found[:, 2] > near) & (found[:, 2] <= far)]
            if len(chosen) < 50:
                continue
            square = (chosen[:, :2] ** 2).mean(axis=0)
            rest = np.maximum(square - least.setdefault((near, far), square), 0.0)
            per = np.sqrt(rest / np.mean((chosen[:, 2] * chosen[:, 3]) ** 2))
            figures = [f"{value:.3f}" for value in (*np.sqrt(square), *per)]
            rows.append([f"{low:.2f} to {high:.2f}", f"{near} to {far}", str(len(chosen)), *figures])
    return rows


def main() -> None:
    """Walk, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", nargs="*", default=["room", "corridor"])
    parser.add_argument("--seeds", type=int, nargs="*", default=[311, 313])
    parser.add_argument("--frames", type=int, default=100)
    parser.add_argument("--log", default="followed_errors")
    args = parser.parse_args()
    found = []
    settings = ["matcher=lite", "calibration.online=false", "window.frames=8", "window.points=1"]
    for world, seed in [(world, seed) for world in args.worlds for seed in args.seeds]:
        sequence = RenderedSequence(world, args.frames, seed)
        truth = ExactMatches(sequence)
        index = {int(stamp): i for i, stamp in enumerate(sequence.stamps)}
        odometry = StereoOdometry(load_config(assignments=settings))
        for i in range(args.frames):
            odometry.track(sequence[i])
            window = None if odometry._now is None else odometry._now.window
            if window is not None:
                found.append(errors(window, index, truth))
    walks = ", ".join(f"{world} {seed}" for world in args.worlds for seed in args.seeds)
    text = (
        f"{walks}, {args.frames} frames each\n{format_table(HEADING, table(np.vstack(found)))}\n\n{measured_with()}\n"
    )
    print(text)
    atomic_write(RESULTS / f"{args.log}.txt", text)


if __name__ == "__main__":
    main()
