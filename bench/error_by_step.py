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

"""What kind of error is it? Relative motions over 1 to 16 frames against the truth (docs/covariance.md).

    python -m bench.error_by_step [DATA] [--matchers NAME ...]

Three kinds look different. Noise of the estimate: the error of a step does not know the one before (correlation near 0)
and grows with the root of the step. Noise of the truth's positions: the error of a step is taken back by the next
(correlation near -0.5), and the error stays the same at every step length. An error of scale, alignment or clocks is a
share of the motion itself: as large a part of it at every step length, and the same from one step to the next.

Columns: RMS error of the translation; its share of the RMS motion; how much of the mean square is a constant in the
camera's axes; correlation of what is left with that of the step that follows; how much of what is left is a linear
function of the rotation. Then RMS error of the rotation, and its correlation. Below, what our errors have in common
with those of a quite different estimator: the truth or the calibration. Writes bench/results/error_by_step.txt.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bench.accuracy import RESULTS, ROOT, find_sequences
from bench.klt_pnp_baseline import run_baseline
from macvo_ros.atomic_write import atomic_write
from macvo_ros.evaluation.environment import measured_with
from macvo_ros.evaluation.metrics import inverse, motion_error
from macvo_ros.evaluation.table import format_table
from macvo_ros.geometry.se3 import log_so3
from macvo_ros.odometry.stereo_odometry import StereoOdometry
from macvo_ros.sequences import Sequence
from macvo_ros.settings.config import load_config

Float64 = npt.NDArray[np.float64]
STEPS = (1, 2, 4, 8, 16)


def track(sequence: Sequence, matcher: str) -> tuple[Float64, float]:
    """(N, 4, 4) poses of the left camera, and the mean chi-square of the keypoints' residuals."""
    odometry = StereoOdometry(load_config(assignments=[f"matcher={matcher}"]))
    estimates = [odometry.track(sequence[index]) for index in range(len(sequence))]
    return np.stack([estimate.pose for estimate in estimates]), float(np.mean([e.chi2 for e in estimates[1:]]))


def over(poses: Float64, step: int) -> Float64:
    """(N - step, 4, 4) motions over so many frames."""
    return np.asarray(inverse(poses[:-step]) @ poses[step:])


def explained(error: Float64, cause: Float64) -> float:
    """Share of the variance of (N, 3) errors that a linear function of the (N, 3) cause explains."""
    centred, given = error - error.mean(axis=0), cause - cause.mean(axis=0)
    fitted = given @ np.linalg.lstsq(given, centred, rcond=None)[0]
    return float(1 - ((centred - fitted) ** 2).sum() / (centred**2).sum())


def with_next(error: Float64, step: int) -> float:
    """Correlation of (N, 3) errors, less their mean, with those of the step that follows."""
    centred = error - error.mean(axis=0)
    return float((centred[step:] * centred[:-step]).sum() / (centred**2).sum()) if len(error) > step else np.nan


def agreement(truth: Float64, one: Float64, other: Float64, step: int = 4) -> list[float]:
    """Correlation of two estimates' errors, of translation and rotation: what they share is not their noise."""
    errors = [motion_error(over(poses, step), over(truth, step)) for poses in (one, other)]
    return [float(np.corrcoef(*(e[:, part].ravel() for e in errors))[0, 1]) for part in (slice(3), slice(3, 6))]


def study(sequence: Sequence, matcher: str) -> str:
    """A table of one sequence."""
    assert sequence.ground_truth is not None
    poses, chi2 = track(sequence, matcher)
    rows = []
    for step in STEPS:
        if step > len(poses) // 3:
            break
        true, found = over(sequence.ground_truth, step), over(poses, step)
        error = motion_error(found, true)
        shift, turn = error[:, :3], error[:, 3:]
        rms, turned_rms, moved = (float(np.sqrt(np.mean(np.sum(v**2, axis=1)))) for v in (shift, turn, true[:, :3, 3]))
        turned = np.stack([log_so3(rotation) for rotation in true[:, :3, :3]])
        rows.append(
            [
                str(step), f"{1e3 * rms:.2f}", f"{rms / moved:.1%}", f"{np.sum(shift.mean(axis=0) ** 2) / rms**2:.0%}",
                f"{with_next(shift, step):+.2f}", f"{explained(shift, turned):.0%}",
                f"{np.degrees(turned_rms):.4f}", f"{with_next(turn, step):+.2f}",
            ]
        )  # fmt: skip
    heading = ["step", "error [mm]", "of motion", "constant", "with next", "by rotation", "error [deg]", "with next"]
    title = f"{sequence.name}, {len(poses)} frames, {matcher}; chi-square of the keypoints {chi2:.2f}"
    shared = ", ".join(f"{c:.2f}" for c in agreement(sequence.ground_truth, poses, run_baseline(sequence)[0]))
    last = f"correlation with the errors of KLT + PnP over 4 frames (translation, rotation): {shared}"
    return f"{title}\n{format_table(heading, rows)}\n{last}\n"


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--matchers", nargs="+", default=["lite", "classic"])
    args = parser.parse_args()
    text = "\n".join(study(sequence, name) for sequence in find_sequences(args.data) for name in args.matchers)
    atomic_write(RESULTS / "error_by_step.txt", f"{text}\n{measured_with()}")
    print(text)


if __name__ == "__main__":
    main()
