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

"""Arguments that several commands share: which sequence, which part of it, which configuration."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING

from macvo_ros.errors import SequenceError

if TYPE_CHECKING:
    from macvo_ros.sequences.sequence import Sequence
    from macvo_ros.settings.config import Config

RENDERED = "render:"
RENDERED_FRAMES = 90  # unless --frames asks for more


def add_sequence_options(parser: argparse.ArgumentParser) -> None:
    """Which sequence, and which of its frames."""
    parser.add_argument("path", metavar="SEQUENCE", help="folder of a sequence, a bag, or render:NAME (render:room)")
    parser.add_argument("--layout", help="tartanair, euroc, kitti or folder; recognised when left out")
    parser.add_argument("--sequence", metavar="NAME", help="which one, where the folder holds several (KITTI: 00)")
    add_strict_option(parser)
    add_frame_options(parser)


def add_strict_option(parser: argparse.ArgumentParser) -> None:
    """What to do about missing images."""
    parser.add_argument(
        "--strict", action="store_true",
        help="refuse a folder in which an image is missing or cut short; left out, such pairs are skipped and counted",
    )  # fmt: skip


def add_frame_options(parser: argparse.ArgumentParser) -> None:
    """Which frames of a sequence."""
    parser.add_argument("--frames", metavar="A:B", type=_frames, help="frames A up to, not including, B")
    parser.add_argument("--step", metavar="N", type=_step, default=1, help="every Nth of these frames")


def add_output_option(parser: argparse.ArgumentParser, of: str = "sequence") -> None:
    """Where results go; of: what the folder is named after, see `output_folder`."""
    parser.add_argument("--out", metavar="DIR", type=Path, help=f"where to write; output/<{of}> when left out")


def add_rectify_option(parser: argparse.ArgumentParser) -> None:
    """Whether images are raw."""
    parser.add_argument(
        "--rectify", action=argparse.BooleanOptionalAction, default=None,
        help="the images are raw (or not); judged by the topic's name when left out",
    )  # fmt: skip


def add_config_options(parser: argparse.ArgumentParser) -> None:
    """How the odometry is set up."""
    parser.add_argument("--config", metavar="FILE", type=Path, help="YAML file with configuration keys")
    parser.add_argument("--matcher", metavar="NAME", help="who matches images (the configuration key matcher)")
    parser.add_argument(
        "--set", metavar="KEY=VALUE", action="append", default=[], dest="assignments",
        help="any configuration key, repeatable: --set keypoints.count=300",
    )  # fmt: skip


def open_input(args: argparse.Namespace) -> Sequence:
    """The sequence named on the command line."""
    if args.path.startswith(RENDERED):
        from macvo_ros.rendering.sequence import RenderedSequence
        from macvo_ros.sequences.part import PartOfSequence

        if args.layout is not None or args.sequence is not None:
            raise SequenceError(f"{args.path} is rendered: --layout and --sequence do not apply")
        last = args.frames[1] if args.frames else None
        count = last if last is not None and last > 0 else RENDERED_FRAMES
        return PartOfSequence(RenderedSequence(args.path[len(RENDERED) :], count), args.frames, args.step)
    from macvo_ros.sequences import open_sequence

    return open_sequence(
        args.path,
        layout=args.layout,
        sequence=args.sequence,
        frames=args.frames,
        step=args.step,
        strict=args.strict,
    )


def output_folder(args: argparse.Namespace, sequence: Sequence) -> Path:
    """Where results of a sequence go."""
    return args.out or Path("output") / sequence.name.replace(" ", "_").replace("/", "_")


def load_config_of(args: argparse.Namespace) -> Config:
    """The configuration: file, then --set, then --matcher."""
    from macvo_ros.settings.config import load_config

    matcher = [f"matcher={args.matcher}"] if args.matcher is not None else []
    return load_config(args.config, [*args.assignments, *matcher])


def _frames(text: str) -> tuple[int | None, int | None]:
    found = re.fullmatch(r"(-?\d+)?:(-?\d+)?", text)
    if not found:
        raise argparse.ArgumentTypeError(f"expected A:B, for example 0:60, 100: or :60, got {text!r}")
    first, last = (int(part) if part is not None else None for part in found.groups())
    return first, last


def _step(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1, got {text!r}")
    return int(text)
