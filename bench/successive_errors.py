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

"""How alike the errors of successive two-frame motions are, and whether their covariance is honest.

    python -m bench.successive_errors [--matcher lite] [--seeds 20 21] [--frames 100] [--halves SEQUENCE ...]

Rendered walks: errors of the motion, with the calibration as told (it is perfect), in units of the covariance that the
matches alone give it: mean square (1 is honest), mean products over lags of up to 24 frames (0 is independence), and
the mean square of sums of 10 and of 30 successive errors over their number: what a path has of them. It is what
`trajectory._CORRELATED_SHARE` is set by.

--halves: real sequences, whose truths are noisier than a motion. The keypoints are divided by a chessboard of 48 pixels
into two halves, each of which finds the motions by itself; their differences, in units of the sum of both covariances.
What both have in common, the calibration above all, does not show here. Frames 0 to 500.
Writes bench/results/successive_errors.txt.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from macvo_ros.atomic_write import atomic_write
from macvo_ros.evaluation.environment import measured_with
from macvo_ros.evaluation.table import format_table
from macvo_ros.geometry.se3 import inverse, log_so3
from macvo_ros.motion import keypoint_matches
from macvo_ros.odometry.stereo_odometry import StereoOdometry
from macvo_ros.rendering.sequence import RenderedSequence
from macvo_ros.sequences import Sequence, open_sequence
from macvo_ros.settings.config import load_config
from macvo_ros.uncertainty.relative_motion import RelativeMotion

RESULTS = Path(__file__).parent / "results"
WORLDS = ("room", "corridor", "shapes", "street", "park", "drone")
LAGS, SUMS = (0, 1, 2, 4, 8, 16, 24), (10, 30)
LARGEST = 6.0  # sigmas: one outlier must not decide
CELL, REAL_FRAMES = 48, 500


def motions(sequence: Sequence, settings: list[str]) -> list[RelativeMotion | None]:
    """Of each frame since the one before, by two frames; None where it was measured from another one, or not at all."""
    odometry = StereoOdometry(load_config(assignments=["calibration.online=false", "window.frames=2", *settings]))
    found: list[RelativeMotion | None] = []
    for index in range(len(sequence)):
        step = odometry.track(sequence[index]).step
        follows = step is not None and step.measured and step.origin == int(sequence.stamps[index - 1])
        found.append(step.relative if step is not None and follows else None)
    return found[1:]


def in_sigmas(found: np.ndarray, true: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """(6,) [dt, dtheta] between two (4, 4) motions, in units of a (6, 6) covariance."""
    error = np.concatenate((found[:3, 3] - true[:3, 3], log_so3(found[:3, :3] @ true[:3, :3].T)))
    return np.asarray(np.linalg.solve(np.linalg.cholesky(covariance), error))


@contextmanager
def half_of_keypoints(which: int) -> Iterator[None]:
    """Only those on the white, or the black, fields of a chessboard are chosen."""
    select = keypoint_matches.select_keypoints

    def half(*arguments: object, **named: object) -> np.ndarray:
        chosen = select(*arguments, **named)  # type: ignore[arg-type]
        return np.asarray(chosen[(chosen // CELL).sum(axis=1) % 2 == which])

    keypoint_matches.select_keypoints = half
    try:
        yield
    finally:
        keypoint_matches.select_keypoints = select


def cells(errors: np.ndarray) -> list[str]:
    """Of (N, 6) errors in sigmas, nan where not known: mean square, products by lag, sums."""
    clipped = np.clip(errors, -LARGEST, LARGEST)
    figures = [np.nanmean(clipped[: len(clipped) - lag] * clipped[lag:]) for lag in LAGS]
    for count in SUMS:
        sums = np.lib.stride_tricks.sliding_window_view(clipped, count, axis=0).sum(axis=2)
        figures.append(np.nanmean(sums**2) / count)
    return [f"{figure:.2f}" for figure in figures]


def main() -> None:
    """Walk, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--matcher", default="lite")
    parser.add_argument("--seeds", type=int, nargs="*", default=[20, 21])
    parser.add_argument("--frames", type=int, default=100)
    parser.add_argument("--halves", nargs="*", default=[], metavar="SEQUENCE")
    args = parser.parse_args()
    rows, settings = [], [f"matcher={args.matcher}"]
    for world, seed in [(world, seed) for world in WORLDS for seed in args.seeds]:
        sequence = RenderedSequence(world, args.frames, seed, texels=512)
        poses = sequence.ground_truth
        assert poses is not None
        errors = np.full((args.frames - 1, 6), np.nan)
        for index, found in enumerate(motions(sequence, settings)):
            if found is not None:
                true = inverse(poses[index]) @ poses[index + 1]
                errors[index] = in_sigmas(found.motion, true, found.covariance)
        rows.append([f"{world} {seed}", *cells(errors)])
        print(rows[-1], flush=True)
    if rows:
        values = np.array([row[1:] for row in rows], dtype=float)
        rows.append(["mean", *(f"{value:.2f}" for value in values.mean(axis=0))])
    for path in args.halves:
        real = open_sequence(path, frames=(0, REAL_FRAMES))
        halves = []
        for which in (0, 1):
            with half_of_keypoints(which):
                halves.append(motions(real, [*settings, "keypoints.count=400"]))
        errors = np.full((len(real) - 1, 6), np.nan)
        for index, (one, other) in enumerate(zip(*halves, strict=True)):
            if one is not None and other is not None:
                errors[index] = in_sigmas(one.motion, other.motion, one.covariance + other.covariance)
        rows.append([f"halves of {real.name}", *cells(errors)])
    heading = ["walk", "square", *(f"lag {lag}" for lag in LAGS[1:]), *(f"sum of {count}" for count in SUMS)]
    text = f"{args.matcher}, {args.frames} frames\n{format_table(heading, rows)}\n\n{measured_with()}\n"
    print(text)
    atomic_write(RESULTS / "successive_errors.txt", text)


if __name__ == "__main__":
    main()
