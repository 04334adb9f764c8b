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

"""What looks like a knock where there was none? The distributions behind `knock_watch.py` and `row_knock.py`.

    python -m bench.knocks SEQUENCE ... [--frames A:B] [--log NAME]

Real sequences whose cameras nobody knocked. As they are: what the right camera seems to have turned by within four
seconds, in degrees and in the sigmas that a knock must exceed. With right images that are one and three frames late:
how long one turn explains that matches leave their rows. Writes bench/results/NAME.txt (knocks).
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np

from macvo_ros.atomic_write import atomic_write
from macvo_ros.commands._options import add_frame_options
from macvo_ros.doubt.checks import epipolar_error
from macvo_ros.doubt.posterior import unusual
from macvo_ros.doubt.sound_frames import tail_of
from macvo_ros.evaluation.environment import measured_with
from macvo_ros.images.work_size import reduced
from macvo_ros.matching.matcher import make_matcher
from macvo_ros.odometry.camera_pair import CameraPair
from macvo_ros.odometry.stereo_odometry import StereoOdometry
from macvo_ros.sequences import Sequence, open_sequence
from macvo_ros.settings.config import load_config

LATE = (1, 3)
SOUND = 50
"""Frames from whose rows it is learned what is usual, before images are late."""


def turned(sequence: Sequence) -> str:
    """What the right camera of a sequence seems to turn by."""
    odometry = StereoOdometry(load_config(assignments=["matcher=lite"]))
    looks, last = [], None
    for index in range(len(sequence)):
        odometry.track(sequence[index])
        seen = [] if odometry.calibration is None else odometry.calibration.turned_lately
        if seen and seen is not last:
            looks.append(seen)
            last = seen
    assert odometry.calibration is not None
    change, sigma = np.moveaxis(np.array(looks), 2, 0)
    size, sigmas = np.degrees(np.sqrt((change**2).mean(axis=0))), np.abs(change) / sigma
    largest = np.degrees(np.abs(change).max(axis=0))
    lines = [f"{sequence.name}, {len(sequence)} frames, {len(looks)} looks, {odometry.calibration.knocks} knocks"]
    for which, of in enumerate(("half a second", "a second")):
        for axis, name in enumerate(("pitch", "yaw", "roll")):
            here = sigmas[:, which, axis]
            lines.append(
                f"  {of}, {name}: root mean square {size[which, axis]:.4f}, "
                f"largest {largest[which, axis]:.3f} deg; sigmas: root mean square "
                f"{np.sqrt((here**2).mean()):.2f}, 99 % below {np.quantile(here, 0.99):.2f}, "
                f"largest {here.max():.2f}"
            )
    return "\n".join(lines)


def late(sequence: Sequence, frames: int) -> str:
    """How long one turn explains the rows of doubted frames, where right images are some frames late."""
    config = load_config(assignments=["matcher=lite"])
    matcher = make_matcher(config)
    cameras: CameraPair | None = None
    spans, doubted = [0.0], 0

    def usual(figure: float) -> bool:
        return not unusual(config.doubt, tail_of(matcher.name, "epipolar_error", figure))

    for index in range(len(sequence)):
        given = sequence[index]
        if index >= SOUND:
            given = replace(given, right=sequence[index - frames].right)
        frame = reduced(given, matcher.work_pixels)
        matcher.reset()
        match = matcher.match(None, frame)
        if cameras is None:
            cameras = CameraPair.first_seen(frame, match, np.eye(4), config.calibration)
        elif index < SOUND:
            cameras.learn_rows(match)
        elif usual(epipolar_error(match.row_check().epipolar_var, cameras.rectification.epipolar_variance)):
            cameras.row_knock.restart()
        else:
            doubted += 1
            seconds = float(sequence.stamps[index] - sequence.stamps[index - 1]) * 1e-9
            cameras.turned(frame, match, seconds, usual)
            spans.append(cameras.row_knock.seconds or 0.0)
    longest = f"one turn explains them for {max(spans):.2f} s at most"
    return f"  right images {frames} frames late: {doubted} of {len(sequence) - SOUND} doubted, {longest}"


def main() -> None:
    """Read the arguments, run, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sequences", nargs="+")
    parser.add_argument("--log", default="knocks")
    add_frame_options(parser)
    args = parser.parse_args()
    lines = []
    for path in args.sequences:
        sequence = open_sequence(path, frames=args.frames)
        for text in (turned(sequence), *(late(sequence, frames) for frames in LATE)):
            print(text, flush=True)
            lines.append(text)
    atomic_write(Path(__file__).parent / "results" / f"{args.log}.txt", "\n".join(lines) + f"\n\n{measured_with()}\n")


if __name__ == "__main__":
    main()
