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

"""How alike the errors of successive motions are, and whether the pose's covariance knows it.

    python -m bench.successive_errors [--matcher lite] [--seeds 20 21] [--frames 40] [--size 640x400]

Errors of the relative motion in units of their stated covariance; their mean product over lags of 0 to 24 frames (1 at
a lag of 0 is perfect honesty, 0 beyond is independence), and NEES of motion and pose (6 is perfect) of each walk. It is
what `trajectory._CORRELATED_SHARE` was set by. Writes bench/results/successive_errors.txt.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from tqdm import tqdm

from macvo_ros.atomic_write import atomic_write
from macvo_ros.evaluation.environment import measured_with
from macvo_ros.evaluation.table import format_table
from macvo_ros.geometry.se3 import inverse, log_so3
from macvo_ros.odometry.status import Status
from macvo_ros.odometry.stereo_odometry import StereoOdometry
from macvo_ros.rendering.sequence import RenderedSequence
from macvo_ros.rendering.worlds import ZED_X
from macvo_ros.settings.config import load_config

RESULTS = Path(__file__).parent / "results"
WORLDS = ("room", "corridor", "shapes", "street", "park", "drone")
LAGS = (0, 1, 2, 4, 8, 16, 24)
LARGEST = 6.0  # sigmas: one outlier must not decide


def difference(found: np.ndarray, true: np.ndarray) -> np.ndarray:
    """(6,) [dt, dtheta] of two (4, 4) poses, in the axes of the frame they are poses in."""
    return np.concatenate((found[:3, 3] - true[:3, 3], log_so3(found[:3, :3] @ true[:3, :3].T)))


def walk(sequence: RenderedSequence, odometry: StereoOdometry) -> tuple[np.ndarray, np.ndarray]:
    """(N - 1, 6) errors of the motions in sigmas, nan where lost, and (N - 1,) NEES of the poses."""
    poses = sequence.ground_truth
    assert poses is not None
    errors, nees = np.full((len(sequence) - 1, 6), np.nan), np.full(len(sequence) - 1, np.nan)
    for index in range(len(sequence)):
        estimate = odometry.track(sequence[index])
        if estimate.relative is None or estimate.status is Status.LOST:
            continue
        error = difference(estimate.relative.motion, inverse(poses[index - 1]) @ poses[index])
        values, vectors = np.linalg.eigh(estimate.relative.covariance)
        errors[index - 1] = vectors @ ((vectors.T @ error) / np.sqrt(values))
        error = difference(estimate.pose, inverse(poses[0]) @ poses[index])
        nees[index - 1] = error @ np.linalg.solve(estimate.covariance, error)
    return errors, nees


def products(errors: np.ndarray, lag: int) -> np.ndarray:
    """Mean products of errors so many frames apart, where both are known."""
    clipped = np.clip(errors, -LARGEST, LARGEST)
    values = (clipped[: len(clipped) - lag] * clipped[lag:]).mean(axis=1)
    return values[np.isfinite(values)]


def main() -> None:
    """Walk, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--matcher", default="lite")
    parser.add_argument("--seeds", type=int, nargs="*", default=[20, 21])
    parser.add_argument("--frames", type=int, default=40)
    parser.add_argument("--size", default="640x400")
    args = parser.parse_args()
    width, height = map(int, args.size.split("x"))
    config = load_config(assignments=[f"matcher={args.matcher}"])
    rows, together = [], {lag: list[float]() for lag in LAGS}
    for world, seed in tqdm([(world, seed) for world in WORLDS for seed in args.seeds], desc="walks"):
        sequence = RenderedSequence(world, args.frames, seed, camera=ZED_X.resized(width, height), texels=512)
        errors, nees = walk(sequence, StereoOdometry(config))
        for lag in LAGS:
            together[lag] += list(products(errors, lag))
        motion = 6 * float(np.mean(products(errors, 0)))
        inside = float(np.mean(nees[np.isfinite(nees)] < 20.06))
        alike = [f"{np.mean(products(errors, lag)):.2f}" for lag in LAGS[1:]]
        rows.append([f"{world} {seed}", f"{motion:.1f}", f"{np.nanmean(nees):.1f}", f"{inside:.0%}", *alike])
    mean = [f"{np.mean(together[lag]):.2f}" for lag in LAGS]
    rows.append(["all", f"{6 * float(mean[0]):.1f}", "", "", *mean[1:]])
    heading = ["walk", "NEES motion", "NEES pose", "pose in 3 sigma", *(f"lag {lag}" for lag in LAGS[1:])]
    text = f"{args.matcher}, {args.frames} frames of {args.size}\n{format_table(heading, rows)}\n\n{measured_with()}\n"
    print(text)
    atomic_write(RESULTS / "successive_errors.txt", text)


if __name__ == "__main__":
    main()
