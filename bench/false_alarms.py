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
                                 [--worlds dynamic ...] [--log false_alarms]

SEQUENCE: folders of fault-free real sequences. --rendered: frames of rendered worlds, thirty a scene, of seeds that
nothing was measured on. --log: name of the file in bench/results.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import numpy as np
from scipy.stats import beta

from macvo_ros.atomic_write import atomic_write
from macvo_ros.evaluation.environment import measured_with
from macvo_ros.evaluation.runner import run_sequence
from macvo_ros.evaluation.table import format_table
from macvo_ros.odometry.status import Status
from macvo_ros.odometry.stereo_odometry import StereoOdometry
from macvo_ros.rendering.sequence import RenderedSequence
from macvo_ros.rendering.worlds import WORLDS
from macvo_ros.sequences import Sequence, open_sequence
from macvo_ros.settings.config import load_config

SCENE = 30


def interval(found: int, of: int) -> str:
    """Share and 95 % interval (Clopper and Pearson) of `found` among `of`, as text."""
    low = beta.ppf(0.025, found, of - found + 1) if found else 0.0
    high = beta.ppf(0.975, found + 1, of - found) if found < of else 1.0
    return f"{found} ({100 * low:.2f} .. {100 * high:.2f} %)"


def rendered(worlds: list[str], frames: int, first_seed: int) -> Iterator[Sequence]:
    """Scenes of the worlds in turn, until there are so many frames."""
    for number, seed in zip(range(-(-frames // SCENE)), count(first_seed), strict=False):
        yield RenderedSequence(worlds[number % len(worlds)], SCENE, seed)


def states(sequence: Sequence, matcher: str) -> np.ndarray:
    """Status of every frame but the first; prints what is not TRACKING."""
    run = run_sequence(sequence, StereoOdometry(load_config(assignments=[f"matcher={matcher}"])), progress=False)
    for index, reason in run.reasons:
        print(f"  {sequence.name} {index} {Status(int(run.status[index])).name}: {reason}", flush=True)
    return run.status[1:]


def main() -> None:
    """Run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sequences", nargs="*")
    parser.add_argument("--step", nargs="+", type=int, default=[1])
    parser.add_argument("--matcher", default="lite")
    parser.add_argument("--rendered", type=int, default=0)
    parser.add_argument("--first-seed", type=int, default=901)
    parser.add_argument("--worlds", nargs="+", default=list(WORLDS))
    parser.add_argument("--log", default="false_alarms")
    args = parser.parse_args()
    found: dict[str, list[np.ndarray]] = {}
    for path in args.sequences:
        for step in args.step:
            sequence = open_sequence(path, step=step)
            name = sequence.name if step == 1 else f"{sequence.name}, every {step}th"
            found[name] = [states(sequence, args.matcher)]
    for sequence in rendered(args.worlds, args.rendered, args.first_seed):
        found.setdefault("rendered", []).append(states(sequence, args.matcher))
    rows = []
    for name, parts in found.items():
        status = np.concatenate(parts)
        degraded, lost = (int(np.sum(status == int(s))) for s in (Status.DEGRADED, Status.LOST))
        rows.append([name, str(len(status)), interval(degraded, len(status)), interval(lost, len(status))])
    head = ["fault-free frames", "number", "DEGRADED (95 % interval)", "LOST (95 % interval)"]
    seeds = f", rendered seeds from {args.first_seed}" if args.rendered else ""
    text = f"false alarms, {args.matcher}{seeds}\n{format_table(head, rows)}\n"
    name = args.log if args.matcher == "lite" else f"{args.log}_{args.matcher}"
    atomic_write(Path(__file__).parent / "results" / f"{name}.txt", f"{text}\n{measured_with()}\n")
    print(text)


if __name__ == "__main__":
    main()
