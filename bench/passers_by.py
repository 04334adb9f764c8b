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

"""How much of the view people and cars fill that pass by: the truth of rendered scenes, whatever odometry makes of it.

    python -m bench.passers_by [--worlds room street ...] [--first-seed 5201] [--scenes 12]

So many scenes of each world (all but `near`, whose gripper moves with the camera, if none is named), fifteen views of
each, in images of 160 columns. Prints quantiles of the share of pixels that see something that moves, of each world and
of all. `doubt/whose_motion.py` takes from it by how much the 99 % quantile of all exceeds the 90 % one. Writes
bench/results/passers_by.txt.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from macvo_ros.atomic_write import atomic_write
from macvo_ros.evaluation.environment import measured_with
from macvo_ros.evaluation.table import format_table
from macvo_ros.rendering.sequence import RenderedSequence
from macvo_ros.rendering.worlds import WORLDS, build

RESULTS = Path(__file__).parent / "results" / "passers_by.txt"
FRAMES, COLUMNS = 15, 160
LEVELS = (0.5, 0.9, 0.99, 0.999)


def filled(world: str, seed: int) -> list[float]:
    """Share of each view of a scene that sees something that moves."""
    built = build(world, seed, 64)
    rows = round(built.camera.height * COLUMNS / built.camera.width)
    sequence = RenderedSequence(built, FRAMES, seed, rate=7.5, camera=built.camera.resized(COLUMNS, rows))
    return [float(sequence.truth(index).moving.mean()) for index in range(FRAMES)]


def row(name: str, shares: list[float]) -> list[str]:
    """Of the table."""
    return [name, str(len(shares)), *(f"{q:.3f}" for q in np.quantile(shares, LEVELS))]


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", nargs="+", default=[world for world in WORLDS if world != "near"])
    parser.add_argument("--first-seed", type=int, default=5201)
    parser.add_argument("--scenes", type=int, default=12)
    args = parser.parse_args()
    seeds = range(args.first_seed, args.first_seed + args.scenes)
    found = {world: [share for seed in seeds for share in filled(world, seed)] for world in args.worlds}
    rows = [row(world, shares) for world, shares in found.items()]
    rows.append(row("all", [share for shares in found.values() for share in shares]))
    rare, rarer = np.quantile([share for shares in found.values() for share in shares], (0.9, 0.99))
    text = format_table(["world", "views", *(f"{100 * level:g} %" for level in LEVELS)], rows)
    text += f"\n\nten times as rare: {rarer - rare:.2f} more of the view"
    print(text)
    atomic_write(RESULTS, f"share of the view that moves\n{text}\n\n{measured_with()}\n")


if __name__ == "__main__":
    main()
