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

"""How large the figures of the checks are on sound frames: writes macvo_ros/doubt/sound_frames.json.

    python -m bench.sound_frames REAL [REAL ...] [--matcher lite classic] [--seeds 701 702] [--frames 40]
                                 [--most N] [--steps N ...] [--checks NAME ...] [--set KEY=VALUE ...] [--show]

REAL: folders of fault-free real sequences (for development: KITTI 09, EuRoC MH_01; never those that results are
reported on), run at every frame and, for those faster than 15 Hz, also every 2nd, 4th and 6th; and once more at 320
columns. --steps: only every so manyth instead. Rendered: all worlds, two seeds, or none. Doubt is switched off while
measuring, and frames whose motion the ground truth shows to be wrong are left out: these are what should be doubted.
Written are the figure that 99 % of the frames stay below with every real camera and in all rendered worlds together,
and the mean excess of the others. --checks: only of these. --show prints without writing.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np

from macvo_ros.atomic_write import atomic_write
from macvo_ros.doubt.checks import Checks
from macvo_ros.doubt.sound_frames import TABLE, USUAL, scaled
from macvo_ros.evaluation.environment import versions
from macvo_ros.evaluation.table import format_table
from macvo_ros.geometry.se3 import difference, inverse
from macvo_ros.images.frame import StereoFrame
from macvo_ros.odometry.status import Status
from macvo_ros.odometry.stereo_odometry import StereoOdometry
from macvo_ros.rendering.sequence import RenderedSequence
from macvo_ros.rendering.worlds import WORLDS
from macvo_ros.sequences import Sequence, open_sequence
from macvo_ros.settings.config import load_config

KEY = "usual and excess"
SMALL = 320
FAST = 15.0
WRONG = (0.1, 0.03, 0.5)
"""A motion is wrong beyond this share of its length and so many metres together, or so many degrees."""


class Smaller:
    """A sequence with its images scaled down to so many columns."""

    def __init__(self, sequence: Sequence, columns: int) -> None:
        self._sequence = sequence
        camera = sequence.camera
        self.camera = camera.resized(columns, round(camera.height * columns / camera.width))
        self.name, self.stamps, self.ground_truth = f"{sequence.name} {columns}", sequence.stamps, sequence.ground_truth

    def __len__(self) -> int:
        return len(self._sequence)

    def __getitem__(self, index: int) -> StereoFrame:
        frame, size = self._sequence[index], (self.camera.width, self.camera.height)
        left, right = (cv2.resize(i, size, interpolation=cv2.INTER_AREA) for i in (frame.left, frame.right))
        return StereoFrame(left, right, frame.stamp, self.camera)


def real_sequences(folder: str, most: int | None = None, steps: list[int] | None = None) -> Iterator[Sequence]:
    """A real sequence at its own rate, at lower ones where it is fast, and small; its first `most` frames.

    steps: only every so manyth frame instead.
    """
    if steps:
        yield from (open_sequence(folder, step=step, frames=(0, most)) for step in steps)
        return
    whole = open_sequence(folder)
    rate = 1e9 / float(np.median(np.diff(whole.stamps)))
    for step in (1, 2, 4, 6) if rate > FAST else (1,):
        yield open_sequence(folder, step=step, frames=(0, most))
    yield Smaller(open_sequence(folder, step=2 if rate > FAST else 1, frames=(0, min(most or 600, 600))), SMALL)


def figures(sequence: Sequence, settings: list[str]) -> np.ndarray:
    """(N, C) of the checks on every measured frame."""
    odometry = StereoOdometry(load_config(assignments=[*settings, "doubt.prior=0"]))
    found = []
    for index in range(len(sequence)):
        estimate = odometry.track(sequence[index])
        if not estimate.checks or estimate.status is Status.LOST or estimate.relative is None:
            continue
        assert sequence.ground_truth is not None
        truth = inverse(sequence.ground_truth[index - 1]) @ sequence.ground_truth[index]
        if not is_wrong(truth, estimate.relative.motion):
            found.append([estimate.checks[name] for name in Checks.names()])
    return np.array(found).reshape(-1, len(Checks.names()))


def is_wrong(truth: np.ndarray, motion: np.ndarray) -> bool:
    """Whether a (4, 4) motion is far from the true one."""
    error = difference(motion, truth)
    share, metres, degrees = WRONG
    too_far = np.linalg.norm(error[:3]) > share * np.linalg.norm(truth[:3, 3]) + metres
    return bool(too_far or np.degrees(np.linalg.norm(error[3:])) > degrees)


def usual_and_excess(check: str, groups: list[np.ndarray]) -> list[float]:
    """What 99 % of the frames are below in *every* group of (N,) figures, and the mean excess on its tail's scale.

    Cameras and places differ more than frames do: a figure that is usual with one of them must not be an alarm there.
    The excess is that of each group over its own 99 %, groups weighed alike.
    """
    highest = [float(np.quantile(values, USUAL)) for values in groups]
    beyond = [
        float(np.mean([scaled(check, x) - scaled(check, usual) for x in values if x > usual]))
        for values, usual in zip(groups, highest, strict=True)
        if (values > usual).any() and usual > 0
    ]
    return [max(highest), float(np.mean(beyond))]


def measure(
    matcher: str, real: list[Iterator[Sequence]], seeds: list[int], frames: int, settings: list[str]
) -> dict[str, list[float]]:
    """Quantiles of every check; prints those of each sequence."""
    collected: dict[int, list[np.ndarray]] = {}
    rows = []
    rendered = (RenderedSequence(world, frames, seed) for world in WORLDS for seed in seeds)
    for kind, sequences in enumerate([*real, rendered]):
        for sequence in sequences:
            found = figures(sequence, [f"matcher={matcher}", *settings])
            if len(found):
                collected.setdefault(kind, []).append(found)
                rows.append([sequence.name, str(len(found)), *(f"{q:.4g}" for q in np.quantile(found, 0.99, axis=0))])
                print("  ".join(rows[-1]), flush=True)
    groups = [np.concatenate(each) for each in collected.values()]
    table = {name: usual_and_excess(name, [each[:, i] for each in groups]) for i, name in enumerate(Checks.names())}
    for row, label in enumerate(("every", "mean excess")):
        rows.append([label, str(sum(map(len, groups))), *(f"{table[name][row]:.4g}" for name in Checks.names())])
    print(f"\n{matcher}: 99 % of the frames are below\n{format_table(['sequence', 'frames', *Checks.names()], rows)}")
    return table


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("real", nargs="+")
    parser.add_argument("--matcher", nargs="+", default=["lite", "classic"])
    parser.add_argument("--seeds", nargs="*", type=int, default=[701, 702])
    parser.add_argument("--frames", type=int, default=40)
    parser.add_argument("--most", type=int, help="frames of each real sequence, at most")
    parser.add_argument("--steps", nargs="+", type=int)
    parser.add_argument("--checks", nargs="+", default=Checks.names())
    parser.add_argument("--set", nargs="+", default=[], metavar="KEY=VALUE")
    parser.add_argument("--show", action="store_true")
    args = parser.parse_args()
    content = json.loads(TABLE.read_text()) if TABLE.exists() else {KEY: {}, "commands": {}}
    for matcher in args.matcher:
        real = [real_sequences(folder, args.most, args.steps) for folder in args.real]
        table = measure(matcher, real, args.seeds, args.frames, args.set)
        known = content[KEY].setdefault(matcher, {})
        known.update({name: [float(f"{q:.4g}") for q in table[name]] for name in args.checks})
        words = (Path(word).name for word in sys.argv[1:])
        which = matcher if len(args.checks) == len(Checks.names()) else f"{matcher}, {', '.join(args.checks)}"
        content["commands"][which] = " ".join(["python -m bench.sound_frames", *words])
    content["versions"] = versions()
    if not args.show:
        atomic_write(TABLE, json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
