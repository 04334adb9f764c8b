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

Errors of the translation over 1, 5 and 20 s in the camera's axes at the start (right, down, ahead), less their median:
of ours, of KLT + PnP, what both share (the root of their covariance) and what they do not (of their difference, as if
both were alike). What is shared is the truth's, or that of the calibration, which both use; of these
only the truth changes from place to place. Writes bench/results/truth_drift.txt.
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
from macvo_ros.evaluation.table import format_table
from macvo_ros.sequences import Sequence, open_sequence

Float64 = npt.NDArray[np.float64]
SECONDS = (1.0, 5.0, 20.0)
AXES = ("right", "down", "ahead")


def study(sequence: Sequence, matcher: str) -> str:
    """A table of one sequence, millimetres."""
    assert sequence.ground_truth is not None
    paths = track(sequence, matcher)[0], run_baseline(sequence)[0]
    interval = float(np.median(np.diff(sequence.stamps))) * 1e-9
    rows = []
    for seconds in SECONDS:
        step = max(round(seconds / interval), 1)
        if step > len(sequence) // 3:
            break
        truth = over(sequence.ground_truth, step)[:, :3, 3]
        ours, klt = (_centred(over(poses, step)[:, :3, 3] - truth) for poses in paths)
        # A stretch that the other lost says nothing of the truth.
        sane = np.abs(klt) < 10 * np.median(np.abs(klt), axis=0)
        for axis, name in enumerate(AXES):
            a, b = ours[sane[:, axis], axis], klt[sane[:, axis], axis]
            shared, own = np.sqrt(max(float(np.mean(a * b)), 0.0)), np.sqrt(np.mean((a - b) ** 2) / 2)
            figures = [float(np.sqrt(np.mean(a**2))), float(np.sqrt(np.mean(b**2))), float(shared), float(own)]
            correlation = float(np.corrcoef(a, b)[0, 1])
            rows.append([f"{seconds:g} s", name, *(f"{1e3 * v:.1f}" for v in figures), f"{correlation:.2f}"])
    head = ["over", "axis", "ours [mm]", "KLT + PnP", "shared", "not shared", "correlation"]
    return f"{sequence.name}, {len(sequence)} frames, {matcher}\n{format_table(head, rows)}\n"


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
