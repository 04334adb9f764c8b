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

"""How often sound frames are called DEGRADED or LOST: false alarms, with 95 % confidence intervals.

    python -m bench.false_alarms SEQUENCE [SEQUENCE ...] [--step 1] [--matcher lite] [--rendered N] [--first-seed 901]
                                 [--worlds dynamic ...] [--keep FOLDER] [--append] [--log false_alarms]

SEQUENCE: folders of fault-free real sequences. --rendered: frames of rendered worlds, thirty a scene, of seeds that
nothing was measured on. --keep: rendered images are kept in this folder, and read from there in another run. --log:
name of the files in bench/results, written after every sequence. --append: go on with what the log holds.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from scipy.stats import beta

from macvo_ros.atomic_write import atomic_write
from macvo_ros.evaluation.environment import measured_with
from macvo_ros.evaluation.runner import run_sequence
from macvo_ros.evaluation.table import format_table
from macvo_ros.images.frame import StereoFrame
from macvo_ros.odometry.status import Status
from macvo_ros.odometry.stereo_odometry import StereoOdometry
from macvo_ros.rendering.sequence import RenderedSequence
from macvo_ros.rendering.worlds import WORLDS
from macvo_ros.sequences import Sequence, open_sequence
from macvo_ros.settings.config import load_config

RESULTS = Path(__file__).parent / "results"
SCENE = 30
HEAD = ["fault-free frames", "number", "DEGRADED (95 % interval)", "LOST (95 % interval)"]
Row = dict[str, Any]


class Kept:
    """A rendered scene whose images are kept in a folder, if one is named."""

    def __init__(self, world: str, seed: int, folder: Path | None) -> None:
        self._sequence = RenderedSequence(world, SCENE, seed)
        self.name, self.camera, self.stamps = self._sequence.name, self._sequence.camera, self._sequence.stamps
        self.ground_truth, self._folder = self._sequence.ground_truth, folder

    def __len__(self) -> int:
        return SCENE

    def __getitem__(self, index: int) -> StereoFrame:
        if self._folder is None:
            return self._sequence[index]
        files = [self._folder / f"{self.name} {index} {side}.png" for side in ("left", "right")]
        if not all(file.exists() for file in files):
            frame = self._sequence[index]
            for file, image in zip(files, (frame.left, frame.right), strict=True):
                atomic_write(file, cv2.imencode(".png", image, [cv2.IMWRITE_PNG_COMPRESSION, 1])[1].tobytes())
        left, right = (np.asarray(cv2.imread(str(file), cv2.IMREAD_UNCHANGED)) for file in files)
        return StereoFrame(left, right, int(self.stamps[index]), self.camera)


def interval(found: int, of: int) -> str:
    """Share and 95 % interval (Clopper and Pearson) of `found` among `of`, as text."""
    low = beta.ppf(0.025, found, of - found + 1) if found else 0.0
    high = beta.ppf(0.975, found + 1, of - found) if found < of else 1.0
    return f"{found} ({100 * low:.2f} .. {100 * high:.2f} %)"


def rendered(worlds: list[str], frames: int, first_seed: int) -> Iterator[tuple[str, int]]:
    """World and seed of scenes of the worlds in turn, until there are so many frames."""
    for number, seed in zip(range(-(-frames // SCENE)), count(first_seed), strict=False):
        yield worlds[number % len(worlds)], seed


def row_of(kind: str, name: str, sequence: Sequence, matcher: str) -> Row:
    """What is kept of a sequence: motions, and those that are not TRACKING, with the reason; prints the latter."""
    run = run_sequence(sequence, StereoOdometry(load_config(assignments=[f"matcher={matcher}"])), progress=False)
    alarms = [[index, Status(int(run.status[index])).name, reason] for index, reason in run.reasons]
    for index, status, reason in alarms:
        print(f"  {name} {index} {status}: {reason}", flush=True)
    counts = {s.name: int(np.sum(run.status[1:] == int(s))) for s in (Status.DEGRADED, Status.LOST)}
    return {"kind": kind, "name": name, "motions": len(run.status) - 1, **counts, "alarms": alarms}


def table(rows: list[Row]) -> str:
    """A line a kind."""
    lines = []
    for kind in dict.fromkeys(row["kind"] for row in rows):
        motions, degraded, lost = (
            sum(row[key] for row in rows if row["kind"] == kind) for key in ("motions", "DEGRADED", "LOST")
        )
        lines.append([kind, str(motions), interval(degraded, motions), interval(lost, motions)])
    return format_table(HEAD, lines)


def write(log: Path, title: str, rows: list[Row]) -> None:
    """The table, every alarm, and all of it for another run to go on with."""
    alarms = [f"{row['name']} {' '.join(map(str, alarm))}" for row in rows for alarm in row["alarms"]]
    scenes = sum(row["kind"] == "rendered" for row in rows)
    text = "\n".join([f"{title}; {scenes} rendered scenes", table(rows), "", *alarms, "", measured_with(), ""])
    atomic_write(log.with_suffix(".txt"), text)
    atomic_write(log.with_suffix(".json"), json.dumps(rows, indent=1) + "\n")


def main() -> None:
    """Run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sequences", nargs="*")
    parser.add_argument("--step", nargs="+", type=int, default=[1])
    parser.add_argument("--matcher", default="lite")
    parser.add_argument("--rendered", type=int, default=0)
    parser.add_argument("--first-seed", type=int, default=901)
    parser.add_argument("--worlds", nargs="+", default=list(WORLDS))
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--append", action="store_true")
    parser.add_argument("--log", default="false_alarms")
    args = parser.parse_args()
    log = RESULTS / (args.log if args.matcher == "lite" else f"{args.log}_{args.matcher}")
    rows: list[Row] = json.loads(log.with_suffix(".json").read_text()) if args.append else []
    title = f"false alarms, {args.matcher}" + (f", rendered seeds from {args.first_seed}" if args.rendered else "")
    done = {row["name"] for row in rows}
    for path in args.sequences:
        for step in args.step:
            sequence = open_sequence(path, step=step)
            name = sequence.name if step == 1 else f"{sequence.name}, every {step}th"
            if name not in done:
                rows.append(row_of(name, name, sequence, args.matcher))
                write(log, title, rows)
    for world, seed in rendered(args.worlds, args.rendered, args.first_seed):
        if f"rendered {world} {seed}" not in done:
            scene = Kept(world, seed, args.keep)
            rows.append(row_of("rendered", scene.name, scene, args.matcher))
            write(log, title, rows)
    print(table(rows))


if __name__ == "__main__":
    main()
