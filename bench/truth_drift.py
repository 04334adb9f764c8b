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

"""How much of the error over seconds is the truth's own? What two quite different estimators have in common.

    python -m bench.truth_drift SEQUENCE ... [--matcher lite]

Errors of the translation and the rotation over 1, 5 and 20 s in the camera's axes at the start (right, down, ahead),
less their median: of ours, of KLT + PnP, what both share (the root of their covariance) and what they do not (of their
difference, as if both were alike). What is shared is the truth's, or that of the calibration, which both use; of these
only the truth changes from place to place. And, where the camera stands still for a while, what it turned and moved by
there, by the truth and by the images: one of them is wrong. Writes bench/results/truth_drift.txt.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bench.error_by_step import over, track
from bench.klt_pnp_baseline import run_baseline
from macvo_ros.atomic_write import atomic_write
from macvo_ros.evaluation.environment import measured_with
from macvo_ros.evaluation.metrics import motion_error
from macvo_ros.evaluation.table import format_table
from macvo_ros.geometry.se3 import log_so3
from macvo_ros.sequences import Sequence, open_sequence

Float64 = npt.NDArray[np.float64]
SECONDS = (1.0, 5.0, 20.0)
AXES = ("right", "down", "ahead", "about right", "about down", "about ahead")
STILL = 3e-4  # metres in a second


def study(sequence: Sequence, matcher: str) -> str:
    """The tables of one sequence, millimetres and degrees."""
    assert sequence.ground_truth is not None
    paths = track(sequence, matcher)[0], run_baseline(sequence)[0]
    interval = float(np.median(np.diff(sequence.stamps))) * 1e-9
    rows = []
    for seconds in SECONDS:
        step = max(round(seconds / interval), 1)
        if step > len(sequence) // 3:
            break
        truth = over(sequence.ground_truth, step)
        ours, klt = (_centred(motion_error(over(poses, step), truth)) for poses in paths)
        # A stretch that the other lost says nothing of the truth.
        sane = np.abs(klt) < 10 * np.median(np.abs(klt), axis=0)
        for axis, name in enumerate(AXES):
            a, b = ours[sane[:, axis], axis], klt[sane[:, axis], axis]
            shared, own = np.sqrt(max(float(np.mean(a * b)), 0.0)), np.sqrt(np.mean((a - b) ** 2) / 2)
            figures = [float(np.sqrt(np.mean(a**2))), float(np.sqrt(np.mean(b**2))), float(shared), float(own)]
            unit, form = (1e3, ".1f") if axis < 3 else (np.degrees(1.0), ".3f")
            correlation = float(np.corrcoef(a, b)[0, 1])
            rows.append([f"{seconds:g} s", name, *(f"{unit * v:{form}}" for v in figures), f"{correlation:.2f}"])
    head = ["over", "axis", "ours", "KLT + PnP", "shared", "not shared", "correlation"]
    table = f"{sequence.name}, {len(sequence)} frames, {matcher}, mm and degrees\n{format_table(head, rows)}\n"
    return table + _still(paths[0], sequence.ground_truth, interval)


def _still(ours: Float64, truth: Float64, interval: float) -> str:
    """Of the longest stretch in which nothing moves by the images, root mean squares by what is said to have moved."""
    moved = np.linalg.norm(over(ours, round(1.0 / interval))[:, :3, 3], axis=1) > STILL
    ends = np.flatnonzero(np.concatenate(([True], moved, [True])))
    longest = int(np.argmax(np.diff(ends)))
    first, last = int(ends[longest]), int(ends[longest + 1]) - 1
    if (last - first) * interval < 2.0:
        return ""
    rows = []
    for seconds in (0.5, 1.0, 2.0, 4.0):
        step = round(seconds / interval)
        if last - first <= step:
            break
        changes = (over(poses[first:last], step) for poses in (truth, ours))
        figures = [
            float(np.sqrt(np.mean(part**2)))
            for each in changes
            for part in (1e3 * each[:, :3, 3], np.degrees([log_so3(turn) for turn in each[:, :3, :3]]))
        ]
        rows.append([f"{seconds:g} s", *(f"{figure:.4f}" for figure in figures)])
    head = ["over", "truth [mm]", "truth [deg]", "ours [mm]", "ours [deg]"]
    return f"standing still, frames {first} to {last}\n{format_table(head, rows)}\n"


def _centred(errors: Float64) -> Float64:
    return np.asarray(errors - np.median(errors, axis=0))


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sequences", nargs="+")
    parser.add_argument("--matcher", default="lite")
    args = parser.parse_args()
    text = "\n".join(study(open_sequence(path), args.matcher) for path in args.sequences)
    atomic_write(Path(__file__).parent / "results" / "truth_drift.txt", f"{text}\n{measured_with()}")
    print(text)


if __name__ == "__main__":
    main()
