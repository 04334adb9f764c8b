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

"""Does a truth's attitude fit its own positions? Two paths by images say so, that need nothing of it.

    python -m bench.truth_attitude SEQUENCE ... [--seconds 20] [--log NAME]

Ours and that of KLT + PnP are each put onto the true positions as a whole, by one rotation and translation. Then, every
so many seconds: by how much the path's attitude differs from the truth's, and by what rotation more the true positions
of the seconds around would have the path turned, in the truth's axes. If the path itself had turned, both would be
alike; where only the first grows, it is the truth's attitude that turns against its positions. Writes
bench/results/NAME.txt (truth_attitude).
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bench.klt_pnp_baseline import run_baseline
from macvo_ros.atomic_write import atomic_write
from macvo_ros.evaluation.environment import measured_with
from macvo_ros.evaluation.runner import run_sequence
from macvo_ros.evaluation.table import format_table
from macvo_ros.geometry.se3 import log_so3
from macvo_ros.odometry.stereo_odometry import StereoOdometry
from macvo_ros.sequences import Sequence, open_sequence
from macvo_ros.settings.config import load_config

Float64 = npt.NDArray[np.float64]


def rotation_onto(path: Float64, truth: Float64) -> tuple[Float64, float]:
    """(3, 3) that turns (N, 3) positions onto the true ones best, and the root mean square that is left, metres."""
    centred, wanted = path - path.mean(axis=0), truth - truth.mean(axis=0)
    u, _, v = np.linalg.svd(wanted.T @ centred)
    rotation = u @ np.diag([1.0, 1.0, np.sign(np.linalg.det(u @ v))]) @ v
    left = centred @ rotation.T - wanted
    return rotation, float(np.sqrt((left**2).sum(axis=1).mean()))


def study(sequence: Sequence, seconds: float) -> str:
    """The tables of one sequence."""
    assert sequence.ground_truth is not None
    truth = np.array(sequence.ground_truth)
    step = max(round(seconds * 1e9 / float(np.median(np.diff(sequence.stamps)))), 1)
    parts = []
    ours = run_sequence(sequence, StereoOdometry(load_config(assignments=["matcher=lite"])), progress=False).poses
    for name, path in (("ours", ours), ("KLT + PnP", run_baseline(sequence)[0])):
        whole, left = rotation_onto(path[:, :3, 3], truth[:, :3, 3])
        rows, squares = [], []
        for middle in range(step // 2, len(truth) - step // 2, step):
            attitude = np.degrees(log_so3(whole @ path[middle, :3, :3] @ truth[middle, :3, :3].T))
            around = slice(middle - step // 2, middle + step // 2)
            here, near = rotation_onto(path[around, :3, 3], truth[around, :3, 3])
            needs = np.degrees(log_so3(here @ whole.T))
            rows.append([f"{middle / step * seconds:.0f} s", _degrees(attitude), _degrees(needs), f"{1e3 * near:.1f}"])
            squares.append((attitude**2, needs**2))
        size = np.sqrt(np.mean(squares, axis=(0, 2)))
        parts.append(
            f"{sequence.name}, {len(truth)} frames, {name}: {1e3 * left:.1f} mm from the true positions as a whole\n"
            + format_table(["at", "attitude differs [deg]", "positions would turn it by [deg]", "left [mm]"], rows)
            + f"\nroot mean square of a component: {size[0]:.2f} and {size[1]:.2f} deg"
        )
    return "\n\n".join(parts)


def _degrees(vector: Float64) -> str:
    return " ".join(f"{value:+.2f}" for value in vector)


def main() -> None:
    """Read the arguments, run, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sequences", nargs="+")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--log", default="truth_attitude")
    args = parser.parse_args()
    text = "\n\n".join(study(open_sequence(path), args.seconds) for path in args.sequences)
    print(text)
    atomic_write(Path(__file__).parent / "results" / f"{args.log}.txt", f"{text}\n\n{measured_with()}\n")


if __name__ == "__main__":
    main()
