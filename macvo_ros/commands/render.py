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

"""`macvo render WORLD`: write a synthetic stereo sequence with ground truth as a plain folder."""

from __future__ import annotations

import argparse
import dataclasses
import re
from pathlib import Path
from typing import TYPE_CHECKING

from macvo_ros.errors import SequenceError

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

NAMES = (
    "room",
    "corridor",
    "street",
    "park",
    "drone",
    "shapes",
    "dark",
    "textureless",
    "dynamic",
    "blurred",
    "mixture",
    "near",
    "landing",
    "motorway",
)


def add_parser(subparsers: Subparsers) -> None:
    """Add `render` to the command line."""
    parser = subparsers.add_parser(
        "render",
        help="render a synthetic stereo sequence with ground truth",
        description="Render a synthetic world and write left/ right/ calib.yaml times.txt groundtruth.txt.",
    )
    parser.add_argument("world", metavar="WORLD", help=", ".join(NAMES))
    parser.add_argument(
        "--out", type=Path, required=True, metavar="FOLDER", help="where to write; must not hold images"
    )
    parser.add_argument("--frames", type=int, default=100, metavar="N", help="how many stereo pairs (100)")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="same seed, same bytes (0)")
    parser.add_argument("--rate", type=float, default=15.0, metavar="HZ", help="frames a second (15)")
    parser.add_argument("--size", metavar="WxH", help="image size; the field of view across stays (the world's own)")
    parser.add_argument("--light", type=float, metavar="SHARE", help="share of full light, e.g. 0.05 at night")
    parser.add_argument("--still", action="store_true", help="the camera stays at its first pose")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Render and write."""
    from tqdm import tqdm

    from macvo_ros.rendering.sequence import RenderedSequence
    from macvo_ros.rendering.worlds import build
    from macvo_ros.sequences.folder import write_folder

    world = build(args.world, args.seed)
    camera = world.camera
    if args.size is not None:
        match = re.fullmatch(r"(\d+)x(\d+)", args.size)
        if match is None or min(int(size) for size in match.groups()) < 16:
            raise SequenceError(f"--size wants WIDTHxHEIGHT of at least 16x16, such as 640x480, got {args.size!r}")
        width, height = int(match[1]), int(match[2])
        scale = width / camera.width
        camera = dataclasses.replace(
            camera,
            fx=camera.fx * scale,
            fy=camera.fy * scale,
            cx=(camera.cx + 0.5) * scale - 0.5,
            cy=(camera.cy + 0.5 - camera.height / 2) * scale + height / 2 - 0.5,
            width=width,
            height=height,
        )
    if args.light is not None:
        if not args.light > 0:
            raise SequenceError(f"--light wants a positive share of full light, got {args.light}")
        world = dataclasses.replace(world, sensor=world.sensor.in_light(args.light))
    sequence = RenderedSequence(
        world, args.frames, args.seed, camera=camera, rate=args.rate, still=args.still, name=args.world
    )
    with tqdm(total=len(sequence), unit="frame", desc=f"rendering {args.world}") as bar:
        write_folder(args.out, sequence, progress=lambda index: bar.update(1))
    print(f"{args.out}: {len(sequence)} stereo pairs of {camera.width}x{camera.height} with ground truth")
    return 0
