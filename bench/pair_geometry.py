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

"""How far features of sound and of unsound stereo pairs lie from their rows: the bounds of `macvo doctor`.

    python -m bench.pair_geometry SEQUENCE... [--pairs N]

Each sample is N pairs (4), as the command takes them, of a rectified sequence; the same samples with the right image
some rows lower, with left and right exchanged, and, of EuRoC folders, as they are before rectification. Rendered
worlds, whose calibration is exact, are added. Writes bench/results/pair_geometry.txt.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from bench.accuracy import RESULTS
from macvo_ros.atomic_write import atomic_write
from macvo_ros.evaluation.environment import measured_with
from macvo_ros.evaluation.table import format_table
from macvo_ros.images.frame import Image
from macvo_ros.images.pair_geometry import PairGeometry, pair_geometry
from macvo_ros.rendering.sequence import RenderedSequence
from macvo_ros.sequences import open_sequence
from macvo_ros.sequences.image_files import StereoImageFiles
from macvo_ros.sequences.sequence import Sequence

SAMPLES = 12
"""Of each sequence."""
Pair = tuple[Image, Image]


def lowered(rows: int) -> Callable[[Pair], Pair]:
    """What lowers the right image by some rows."""
    return lambda pair: (pair[0], np.roll(pair[1], rows, axis=0))


FAULTS: dict[str, Callable[[Pair], Pair]] = {
    "sound": lambda pair: pair,
    "1 row lower": lowered(1),
    "2 rows lower": lowered(2),
    "exchanged": lambda pair: (pair[1], pair[0]),
}


def samples(sequence: Sequence, pairs: int) -> list[list[Pair]]:
    """The images of up to SAMPLES places in a sequence."""
    starts = np.unique(np.linspace(0, len(sequence) - pairs, SAMPLES).astype(int))
    frames = [[sequence[int(index)] for index in range(start, start + pairs)] for start in starts]
    return [[(frame.left, frame.right) for frame in sample] for sample in frames]


def row(name: str, found: list[PairGeometry]) -> list[str]:
    """A row of the table."""
    vertical = np.array([each.vertical for each in found if each.matches])
    backwards = np.array([each.backwards for each in found if each.matches])
    return [
        name,
        str(len(found)),
        *(f"{value:.2f}" for value in np.quantile(vertical, (0.0, 0.5, 1.0))),
        f"{backwards.min():.3f}",
        f"{backwards.max():.3f}",
        str(min(each.matches for each in found)),
    ]


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sequences", nargs="+", metavar="SEQUENCE")
    parser.add_argument("--pairs", type=int, default=4, help="pairs of a sample (4)")
    args = parser.parse_args()
    opened: list[Sequence] = [open_sequence(path) for path in args.sequences]
    opened += [RenderedSequence(world, SAMPLES, 701) for world in ("room", "street", "textureless", "dark")]
    rows = []
    for sequence in opened:
        sound = samples(sequence, args.pairs)
        for name, fault in FAULTS.items():
            found = [pair_geometry([fault(pair) for pair in sample]) for sample in sound]
            rows.append(row(f"{sequence.name}: {name}", found))
        if isinstance(sequence, StereoImageFiles) and sequence.rectifier is not None:
            raw = samples(replace(sequence, rectifier=None), args.pairs)
            rows.append(row(f"{sequence.name}: not rectified", [pair_geometry(sample) for sample in raw]))
    heading = ["", "samples", "off the row, least [px]", "median", "most", "backwards, least", "most", "least matches"]
    text = format_table(heading, rows)
    atomic_write(RESULTS / "pair_geometry.txt", f"{text}\n\n{measured_with()}")
    print(text)


if __name__ == "__main__":
    main()
