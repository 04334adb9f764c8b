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

"""How far stereo matches leave their row: what the calibration of a sequence is off by (docs/covariance.md).

    python -m bench.vertical_disparity [DATA] [--every N]

DATA: a folder of sequences, `../shared/data` when left out; a rendered room, whose calibration is exact, is added.
Writes bench/results/vertical_disparity.txt.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from bench.accuracy import RESULTS, ROOT, find_sequences
from macvo_ros.atomic_write import atomic_write
from macvo_ros.evaluation.environment import measured_with
from macvo_ros.evaluation.table import format_table
from macvo_ros.matching.matcher import make_matcher
from macvo_ros.rendering.sequence import RenderedSequence
from macvo_ros.sequences import Sequence
from macvo_ros.settings.config import load_config

MATCHERS = ("classic", "lite")


def vertical(sequence: Sequence, matcher: str, every: int) -> float:
    """Root mean square of the smooth vertical part of stereo matches, pixels, over every n-th frame."""
    found = make_matcher(load_config(assignments=[f"matcher={matcher}"]))
    frames = range(0, len(sequence), every)
    return float(np.sqrt(np.mean([found.match(None, sequence[index]).row_check().epipolar_var for index in frames])))


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--every", type=int, default=5, help="frames between those looked at (5)")
    args = parser.parse_args()
    sequences = [*find_sequences(args.data), RenderedSequence("room", frames=16, seed=1)]
    rows = [
        [sequence.name, *(f"{vertical(sequence, matcher, args.every):.3f}" for matcher in MATCHERS)]
        for sequence in sequences
    ]
    text = format_table(["vertical part of stereo matches [px]", *MATCHERS], rows)
    atomic_write(RESULTS / "vertical_disparity.txt", f"{text}\n\n{measured_with()}")
    print(text)


if __name__ == "__main__":
    main()
