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


"""What a window of frames does to the error, the covariance and the time of a frame.

    python -m bench.window [SEQUENCE ...] [--frames A:B] [--windows 2 4 8 16] [--loops SEED ...]
                           [--truth-noise METRES,DEGREES,SECONDS[,...]]
                           [--set NAME=VALUE ...] [--log NAME]

SEQUENCE: folders with ground truth in any layout macvo reads. --loops: rendered rooms and corridors with these seeds.
Of each: t_rel, r_rel (one frame), error over 10 frames, KITTI's t_err and r_err where the path is longer than 100 m,
ATE as published and smoothed, how far the path is apart from the first window's, the error at the end, NEES of motions
(6 is honest), the part of the poses' components within 3 sigma, and the median time of the window in a frame. Below it
the NEES of the path since an earlier frame and the share of motions all of whose components are within 3 sigma, by
horizon, with the truth's noise as stated. Writes bench/results/NAME.txt (window.txt).
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from macvo_ros.atomic_write import atomic_write
from macvo_ros.evaluation.environment import measured_with
from macvo_ros.evaluation.horizons import SECONDS
from macvo_ros.evaluation.metrics import absolute_trajectory_error, anchored, evaluate, motion_error, path_length
from macvo_ros.evaluation.runner import run_sequence
from macvo_ros.evaluation.table import format_table
from macvo_ros.evaluation.truth_noise import TruthNoise, parse_truth_noise
from macvo_ros.geometry.se3 import inverse, log_so3
from macvo_ros.images.frame import StereoFrame
from macvo_ros.odometry.estimate import Estimate
from macvo_ros.odometry.stereo_odometry import StereoOdometry
from macvo_ros.rendering.sequence import RenderedSequence
from macvo_ros.sequences import Sequence, open_sequence
from macvo_ros.settings.config import load_config

RESULTS = Path(__file__).parent / "results"
WORLDS = ("room", "corridor")
LENGTHS = range(100, 801, 100)
HEADING = [
    "window", "t_rel [mm]", "r_rel [deg]", "t 10 [mm]", "r 10 [deg]", "t_err [%]", "r_err [deg/100 m]", "ATE [m]",
    "smoothed", "apart [m]", "end [m]", "NEES", "median", "pose < 3 sigma", "tracking", "window [ms]",
]  # fmt: skip
HONESTY = ["window", *(f"{seconds:g} s" if seconds else "1 frame" for seconds in SECONDS)]


class Timed:
    """A tracker that keeps the time each frame spent in the window."""

    def __init__(self, odometry: StereoOdometry) -> None:
        self._odometry = odometry
        self.seconds: list[float] = []

    def track(self, frame: StereoFrame) -> Estimate:
        """See `StereoOdometry.track`."""
        estimate = self._odometry.track(frame)
        self.seconds.append(estimate.timings.get("window", 0.0))
        return estimate

    def flush(self) -> Estimate | None:
        """Nothing waits."""
        return None


class Kept:
    """A sequence whose images were read, or rendered, once for all windows."""

    def __init__(self, sequence: Sequence) -> None:
        self.name, self.camera, self.stamps = sequence.name, sequence.camera, sequence.stamps
        self.ground_truth = sequence.ground_truth
        self._images = [sequence[index].grey for index in range(len(sequence))]

    def __len__(self) -> int:
        return len(self._images)

    def __getitem__(self, index: int) -> StereoFrame:
        """A frame that has nothing kept with it yet."""
        return StereoFrame(*self._images[index], int(self.stamps[index]), self.camera)


def segment_errors(poses: np.ndarray, truth: np.ndarray) -> tuple[float, float]:
    """KITTI's errors over 100 to 800 m, per cent and degrees a 100 m; nan where the path is shorter."""
    gone = np.concatenate(([0.0], np.cumsum(np.linalg.norm(np.diff(truth[:, :3, 3], axis=0), axis=1))))
    found = []
    for first in range(0, len(poses), 10):
        for length in LENGTHS:
            last = int(np.searchsorted(gone, gone[first] + length))
            if last < len(poses):
                ours, true = inverse(poses[first]) @ poses[last], inverse(truth[first]) @ truth[last]
                error = inverse(ours) @ true
                angle = np.degrees(np.linalg.norm(log_so3(error[:3, :3])))
                found.append((100 * np.linalg.norm(error[:3, 3]) / length, 100 * angle / length))
    t_err, r_err = np.mean(found, axis=0) if found else (float("nan"), float("nan"))
    return float(t_err), float(r_err)


def row(
    sequence: Sequence, frames: int, noise: TruthNoise | None, settings: list[str], other: np.ndarray | None
) -> tuple[list[str], list[str], np.ndarray]:
    """The figures of a window of so many frames, its honesty by horizon, and its path; other: another path."""
    truth = sequence.ground_truth
    assert truth is not None
    timed = Timed(StereoOdometry(load_config(assignments=["matcher=lite", f"window.frames={frames}", *settings])))
    run = run_sequence(sequence, timed, progress=False)
    metrics, _ = evaluate(run, truth, noise)
    step = min(10, len(truth) - 1)
    ours, true = (
        np.array([inverse(a) @ b for a, b in zip(p[:-step], p[step:], strict=True)]) for p in (run.poses, truth)
    )
    later = motion_error(ours, true)
    t_err, r_err = segment_errors(run.poses, truth)
    smoothed = run.poses if run.smoothed is None else run.smoothed
    ate, _ = absolute_trajectory_error(smoothed, anchored(truth, smoothed[0]))
    figures = [
        1e3 * metrics.t_rel, metrics.r_rel, 1e3 * np.linalg.norm(later[:, :3], axis=1).mean(),
        np.degrees(np.linalg.norm(later[:, 3:], axis=1)).mean(), t_err, r_err, metrics.ate_rmse, ate,
        float("nan") if other is None else absolute_trajectory_error(run.poses, other)[0], metrics.end_error,
        metrics.nees_relative_mean, metrics.nees_relative_median, 100 * metrics.pose_within_3sigma,
    ]  # fmt: skip
    digits = (3, 4, 3, 4, 3, 3, 4, 4, 5, 4, 1, 1, 0)
    cells = [f"{value:.{places}f}" if np.isfinite(value) else "" for value, places in zip(figures, digits, strict=True)]
    window = f"{1e3 * float(np.median(timed.seconds[1:])):.1f}" if frames > 2 else ""
    honest = [f"{each.nees_mean:.1f} ({100 * each.frames_within_3sigma:.0f} %)" for each in metrics.horizons]
    honest += [""] * (len(SECONDS) - len(honest))
    figures_row = [str(frames), *cells, f"{metrics.tracking}/{metrics.frames - 1}", window]
    return figures_row, [str(frames), *honest], run.poses


def main() -> None:
    """Run, print, write after each sequence."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sequences", nargs="*", type=Path)
    parser.add_argument("--frames", default=":")
    parser.add_argument("--windows", type=int, nargs="*", default=[2, 4, 8, 16])
    parser.add_argument("--loops", type=int, nargs="*", default=[])
    parser.add_argument("--truth-noise", help="as of macvo eval")
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE")
    parser.add_argument("--log", default="window")
    args = parser.parse_args()
    noise = None if args.truth_noise is None else parse_truth_noise(args.truth_noise)
    first, _, last = args.frames.partition(":")
    part = (int(first) if first else None, int(last) if last else None)
    chosen: list[Sequence] = [open_sequence(path, frames=part) for path in args.sequences]
    chosen += [RenderedSequence(world, 100, seed) for seed in args.loops for world in WORLDS]
    text = ""
    for each in chosen:
        assert each.ground_truth is not None
        sequence = Kept(each) if isinstance(each, RenderedSequence) else each
        length = path_length(each.ground_truth)
        text += f"{sequence.name}, {len(sequence)} frames, {length:.1f} m {' '.join(args.set)}".rstrip() + "\n"
        rows: list[tuple[list[str], list[str], np.ndarray]] = []
        for frames in args.windows:
            rows.append(row(sequence, frames, noise, args.set, rows[0][2] if rows else None))
        text += format_table(HEADING, [figures for figures, *_ in rows]) + "\n"
        text += f"NEES and motions within 3 sigma, noise of the truth {args.truth_noise or 'none'}\n"
        text += format_table(HONESTY, [honest for _, honest, _ in rows]) + "\n\n"
        print(text, flush=True)
        atomic_write(RESULTS / f"{args.log}.txt", f"{text}{measured_with()}\n")


if __name__ == "__main__":
    main()
