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


"""Motions over a gap in which nothing is seen: how many are wrong and sure of it, and how many places look alike.

    python -m bench.gaps [SEQUENCE:EVERY ...] [--worlds room ...] [--seeds 201 202 203 204] [--off] [--log gaps]

SEQUENCE:EVERY: a folder of a real sequence, and from which of its frames a gap begins. Of a rendered scene (about
64 000 pixels, 15 Hz) gaps begin at four frames. Four frames are tracked, then the next after 0.5, 1.4 and 3.4 s. A
motion is wrong that is beyond three sigma of its own and also beyond what the truth is good for. --off: with doubt
switched off. Then those that are wrong although their keypoints are found as well as on sound frames (`flow_sigma`) are
motions to other places that look alike; their 95 % bound over the cubic metres that the camera may have come to is the
number `_LOOK_ALIKES` of `doubt/whose_motion.py`. (It is taken from real sequences: rendered textures are tiles, which
repeat to the pixel.)
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import cv2
import numpy as np
from scipy.stats import chi2

from bench.cold_starts import THREE_SIGMA
from bench.sound_frames import is_wrong
from macvo_ros.atomic_write import atomic_write
from macvo_ros.doubt.sound_frames import usual
from macvo_ros.evaluation.environment import measured_with
from macvo_ros.evaluation.table import format_table
from macvo_ros.geometry.se3 import difference, inverse
from macvo_ros.odometry.status import Status
from macvo_ros.odometry.stereo_odometry import StereoOdometry
from macvo_ros.rendering.sequence import RenderedSequence
from macvo_ros.rendering.worlds import build
from macvo_ros.sequences import Sequence, open_sequence
from macvo_ros.settings.config import load_config

RESULTS = Path(__file__).parent / "results"
GAPS = (0.5, 1.4, 3.4)
BEFORE = 4
"""Frames that are tracked before the gap."""
PIXELS, REACH = 64_000, {"park": 40.0, "drone": 40.0}
"""Size of rendered images, and metres away at which disparity is one pixel at least, as in test/faults/run_all.py."""
WORLDS = ("room", "corridor", "park", "shapes", "drone", "street", "dark", "mixture")


@dataclass(frozen=True)
class Bridged:
    """What came of a gap. known: keypoints are found as well as on sound frames; room: where the camera may be, m^3."""

    seconds: float
    status: Status
    wrong: bool
    known: bool
    room: float
    line: str


def bridged(sequence: Sequence, first: int, settings: list[str]) -> Iterator[Bridged]:
    """The motion over each gap that begins after some frames from `first` on."""
    last = first + BEFORE - 1
    before = [sequence[index] for index in range(first, min(last + 1, len(sequence)))]
    for seconds in GAPS:
        after = int(np.searchsorted(sequence.stamps, before[-1].stamp + round(1e9 * seconds)))
        config = load_config(assignments=settings)
        odometry = StereoOdometry(config)
        states = [odometry.track(frame).status for frame in before]
        if after >= len(sequence) or states[-1] is not Status.TRACKING:
            continue
        estimate = odometry.track(sequence[after])
        line, wrong = f"{sequence.name}, frames {last} to {after}: {estimate.status.name}", False
        if estimate.status is not Status.LOST and estimate.relative is not None:
            assert sequence.ground_truth is not None
            truth = inverse(sequence.ground_truth[last]) @ sequence.ground_truth[after]
            error = difference(truth, estimate.relative.motion)
            squared = float(error @ np.linalg.solve(estimate.relative.covariance, error))
            wrong = squared > THREE_SIGMA and is_wrong(truth, estimate.relative.motion)
            line += f", wrong by {np.linalg.norm(error[:3]):.2f} m, {squared**0.5:.0f} sigma"
        known = estimate.checks.get("flow_sigma", 1.0) <= usual(config.matcher, "flow_sigma")
        elapsed = (sequence.stamps[after] - sequence.stamps[last]) * 1e-9
        yield Bridged(seconds, estimate.status, wrong, known, (config.motion_prior.speed * elapsed) ** 3, line)


def small_scene(world: str, seed: int) -> RenderedSequence:
    """A rendered scene in small images."""
    built = build(world, seed, 512)
    camera, scale = built.camera, (PIXELS / (built.camera.width * built.camera.height)) ** 0.5
    camera = camera.resized(round(camera.width * scale), round(camera.height * scale))
    camera = replace(camera, baseline=max(camera.baseline, REACH.get(world, 0.0) / camera.fx))
    return RenderedSequence(built, 84, seed, camera=camera, name=world)


def main() -> None:
    """Run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sequences", nargs="*")
    parser.add_argument("--worlds", nargs="*", default=WORLDS)
    parser.add_argument("--seeds", nargs="+", type=int, default=[201, 202, 203, 204])
    parser.add_argument("--off", action="store_true")
    parser.add_argument("--log", default="gaps")
    args = parser.parse_args()
    cv2.setNumThreads(1)
    settings = ["doubt.prior=0"] if args.off else []
    found: list[tuple[str, Bridged]] = []
    for each in args.sequences:
        path, _, every = each.rpartition(":")
        sequence = open_sequence(path)
        for first in range(0, len(sequence), int(every)):
            found += [(sequence.name, each) for each in bridged(sequence, first, settings)]
    for world in args.worlds:
        for seed in args.seeds:
            scene = small_scene(world, seed)
            found += [("rendered", each) for first in (1, 8, 15, 22) for each in bridged(scene, first, settings)]
    states = (Status.TRACKING, Status.DEGRADED, Status.LOST)
    head, rows = ["gap", "seconds", "number", *(status.name for status in states), "wrong"], []
    for kind in dict.fromkeys(kind for kind, _ in found):
        for seconds in GAPS:
            of = [each for name, each in found if name == kind and each.seconds == seconds]
            states = [
                str(sum(each.status is s for each in of)) for s in (Status.TRACKING, Status.DEGRADED, Status.LOST)
            ]
            rows.append([kind, str(seconds), str(len(of)), *states, str(sum(each.wrong for each in of))])
    lines = [format_table(head, rows), "", *(each.line for _, each in found if each.wrong), ""]
    if args.off:
        known = [each for _, each in found if each.known]
        alike, room = sum(each.wrong for each in known), sum(each.room for each in known)
        most = chi2.ppf(0.95, 2 * alike + 2) / 2 / room
        lines.append(f"{alike} places that look alike in {room:.0f} m^3: at most {most:.1e} in one (95 % sure)\n")
    print("\n".join(lines))
    atomic_write((RESULTS / args.log).with_suffix(".txt"), "\n".join([*lines, measured_with(), ""]))


if __name__ == "__main__":
    main()
