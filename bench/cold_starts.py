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


"""Starts of a run at speed: how many of the first five motions are LOST or DEGRADED, or wrong by their own sigma.

    python -m bench.cold_starts SEQUENCE:FIRST:LAST:EVERY:STEPS ... [--rendered WORLD:SEED ...] [--log cold_starts]

SEQUENCE:FIRST:LAST:EVERY:STEPS: a folder, the frames to start at, and the steps between frames, for example
KITTI/09:0:1500:50:1,2,3. --rendered: the first frames of a rendered scene. A motion is wrong that is beyond three sigma
of its own and also beyond what the truth is good for (a tenth of its length and 3 cm together, or half a degree).
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

import numpy as np

from bench.sound_frames import is_wrong
from macvo_ros.atomic_write import atomic_write
from macvo_ros.evaluation.environment import measured_with
from macvo_ros.evaluation.table import format_table
from macvo_ros.geometry.se3 import difference, inverse
from macvo_ros.odometry.status import Status
from macvo_ros.odometry.stereo_odometry import StereoOdometry
from macvo_ros.rendering.sequence import RenderedSequence
from macvo_ros.sequences import Sequence, open_sequence

RESULTS = Path(__file__).parent / "results"
MOTIONS = 5
THREE_SIGMA = 20.06
"""99.73 % point of a chi-square variable with six degrees of freedom."""


def first_motions(sequence: Sequence, name: str) -> tuple[Counter[str], list[str]]:
    """How many motions of a start are LOST, DEGRADED, wrong or published, and a line for each that is not sound."""
    odometry, counts, lines = StereoOdometry(), Counter[str](), []
    for index in range(min(len(sequence), MOTIONS + 1)):
        estimate = odometry.track(sequence[index])
        if index == 0:
            continue
        counts["motions"] += 1
        counts[estimate.status.name] += 1
        said = [f"{estimate.status.name}: {estimate.reason}"] if estimate.reason else []
        if estimate.status is not Status.LOST and estimate.relative is not None:
            counts["published"] += 1
            assert sequence.ground_truth is not None
            first = int(np.argmin(np.abs(sequence.stamps - (sequence.stamps[index] - round(1e9 * estimate.elapsed)))))
            truth = inverse(sequence.ground_truth[first]) @ sequence.ground_truth[index]
            error = difference(truth, estimate.relative.motion)
            squared = float(error @ np.linalg.solve(estimate.relative.covariance, error))
            if squared > THREE_SIGMA and is_wrong(truth, estimate.relative.motion):
                counts["wrong"] += 1
                said.append(f"wrong by {np.linalg.norm(error[:3]):.2f} m of {np.linalg.norm(truth[:3, 3]):.2f} m")
        lines += [f"{name}, motion {index}: {each}" for each in said]
    return counts, lines


def main() -> None:
    """Run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sequences", nargs="*")
    parser.add_argument("--rendered", nargs="*", default=[])
    parser.add_argument("--log", default="cold_starts")
    args = parser.parse_args()
    head = ["starts", "number", "motions", "published", "DEGRADED", "LOST", "wrong"]
    rows, lines = [], []

    def add(kind: str, starts: list[tuple[str, Sequence]]) -> None:
        total = Counter[str]()
        for name, sequence in starts:
            counts, said = first_motions(sequence, name)
            total += counts
            lines.extend(said)
            print(*said, sep="\n", end="\n" if said else "", flush=True)
        rows.append([kind, str(len(starts)), *(str(total[key]) for key in head[2:])])

    for each in args.sequences:
        path, first, last, every, steps = each.rsplit(":", 4)
        for step in map(int, steps.split(",")):
            kind = f"{open_sequence(path).name}, step {step}"
            starts = range(int(first), int(last) + 1, int(every))
            parts = ((start, start + MOTIONS * step + 1) for start in starts)
            add(kind, [(f"{kind}, from {part[0]}", open_sequence(path, step=step, frames=part)) for part in parts])
    for each in args.rendered:
        world, seed = each.split(":")
        add(each, [(each, RenderedSequence(world, MOTIONS + 1, int(seed)))])
    text = "\n".join([format_table(head, rows), "", *lines, "", measured_with(), ""])
    print(format_table(head, rows))
    atomic_write((RESULTS / args.log).with_suffix(".txt"), text)


if __name__ == "__main__":
    main()
