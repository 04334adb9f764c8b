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

"""macvo bag: the odometry over a recorded bag, and datasets made into bags; no ROS installation needed."""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from macvo_ros.commands._options import (
    add_config_options,
    add_frame_options,
    add_output_option,
    add_rectify_option,
    add_strict_option,
    load_config_of,
    output_folder,
)
from macvo_ros.commands.run import exit_code, measured, summary, write_all, written_to
from macvo_ros.errors import SequenceError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from macvo_ros.evaluation.report import Evaluation
    from macvo_ros.sequences.bag import BagSequence
    from macvo_ros.settings.config import Config

DEFAULT_BASE_FRAME = "base_link"


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `macvo bag`."""
    parser = subparsers.add_parser(
        "bag",
        help="run the odometry over a ROS 1 or ROS 2 bag, or make a bag of a dataset",
        description="Run the odometry over every frame of a ROS 1 .bag or a ROS 2 db3 or mcap bag, without ROS. The "
        "stereo topics are found by their names, or named here. Writes trajectory, result.json and report.html and, "
        "with --output, a new bag with our topics.",
    )
    parser.add_argument("bag", metavar="BAG", nargs="?", type=Path, help=".bag, .db3 or .mcap file, or bag folder")
    parser.add_argument(
        "--convert",
        metavar=("FOLDER", "NEWBAG"),
        nargs=2,
        type=Path,
        help="make a ROS 2 bag of a dataset folder instead",
    )
    topics = parser.add_argument_group("where the images are (found by their names when left out)")
    for side in ("left", "right"):
        topics.add_argument(f"--{side}", metavar="TOPIC", help=f"{side} images, raw or compressed")
        topics.add_argument(f"--{side}-info", metavar="TOPIC", help=f"camera_info of the {side} images")
    topics.add_argument(
        "--approximate-sync", metavar="MS", type=_milliseconds, default=0,
        help="pair images up to this many milliseconds apart; equal stamps only when left out",
    )  # fmt: skip
    parser.add_argument("--calibration", metavar="FILE", type=Path, help="calibration for bags without camera_info")
    add_rectify_option(parser)
    add_frame_options(parser)
    add_config_options(parser)
    add_output_option(parser, "bag")
    parser.add_argument(
        "--output", metavar="NEWBAG", type=Path, help="write odometry, keypoints, status, /tf, /tf_static to a new bag"
    )
    parser.add_argument("--base-frame", metavar="FRAME", help="robot frame, found through the bag's /tf_static")
    parser.add_argument("--storage", choices=("mcap", "sqlite3"), default="mcap", help="format of the new bag")
    parser.add_argument("--layout", help="with --convert: tartanair, euroc, kitti or folder; recognised when left out")
    parser.add_argument("--sequence", metavar="NAME", help="with --convert: which one, where the folder holds several")
    add_strict_option(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run over a bag, or convert a dataset."""
    if (args.bag is None) == (args.convert is None):
        raise SequenceError("give either a BAG to run over, or --convert FOLDER NEWBAG")
    return _convert(args) if args.convert is not None else _run(args)


def _convert(args: argparse.Namespace) -> int:
    from macvo_ros.bags.convert import convert_sequence
    from macvo_ros.sequences import open_sequence

    folder, new_bag = args.convert
    sequence = open_sequence(
        folder, layout=args.layout, sequence=args.sequence, frames=args.frames, step=args.step, strict=args.strict
    )
    count = convert_sequence(sequence, new_bag, args.storage)
    print(f"{sequence.name}: {count} frames written to {new_bag}/")
    return 0


def _run(args: argparse.Namespace) -> int:
    from macvo_ros.sequences.bag import BagOptions, BagSequence

    if args.output is not None and args.output.exists():
        raise SequenceError(f"{args.output} exists already; choose another name or remove it first")
    config = load_config_of(args)
    options = BagOptions(
        left=args.left,
        right=args.right,
        left_info=args.left_info,
        right_info=args.right_info,
        calibration=args.calibration,
        rectify=args.rectify,
        tolerance=round(args.approximate_sync * 1e6),
    )
    with BagSequence(args.bag, options) as whole:
        print(f"{whole.topics.left} + {whole.topics.right}: {len(whole)} frames", file=sys.stderr)
        sequence = whole.sliced(args.frames, args.step)
        base_frame, base_from_camera = _base(sequence, args.base_frame, wanted=args.output is not None)
        for note in whole.notes:
            print(f"note: {note}", file=sys.stderr)
        evaluation = _track(sequence, config, base_frame, base_from_camera, args)
        directory = output_folder(args, sequence)
        write_all(directory, evaluation)
        print(summary(evaluation))
        print(written_to(directory))
        if args.output is not None:
            print(f"written to {args.output}/: a bag with our topics, odometry of {base_frame}")
    return exit_code(evaluation)


def _base(sequence: BagSequence, asked: str | None, *, wanted: bool) -> tuple[str, npt.NDArray[np.float64]]:
    """The frame the odometry is about, and the (4, 4) pose of the tracked camera in it.

    Asked for none, it is base_link where the bag's /tf_static knows the way to it, else the camera itself.
    """
    from macvo_ros.bags.static_transforms import base_from_frame

    tracked = sequence.input.raw_from_rectified
    try:
        name = asked or DEFAULT_BASE_FRAME
        return name, base_from_frame(sequence.bag, name, sequence.frame_id) @ tracked
    except SequenceError as error:
        if asked is not None:
            raise
        why = str(error).partition(";")[0]
    camera = sequence.frame_id or "left_camera"
    if wanted:
        print(
            f"warning: {why}: odometry is that of {camera}, in its optical axes (x right, y down, z forward), not that "
            "of a robot; name a frame that /tf_static connects by --base-frame",
            file=sys.stderr,
        )
    return camera, tracked


def _track(
    sequence: BagSequence,
    config: Config,
    base_frame: str,
    base_from_camera: npt.NDArray[np.float64],
    args: argparse.Namespace,
) -> Evaluation:
    """Track the whole sequence, writing the new bag on the way, and measure the error where the truth is known."""
    from contextlib import ExitStack

    from macvo_ros.bags.camera_tracker import CameraTracker
    from macvo_ros.bags.estimate_writer import EstimateWriter
    from macvo_ros.bags.static_transforms import static_transforms
    from macvo_ros.bags.writer import BagWriter
    from macvo_ros.evaluation.runner import run_sequence
    from macvo_ros.odometry.pipelined_odometry import make_odometry

    with ExitStack() as stack:
        writer = None
        if args.output is not None:
            writer = EstimateWriter(
                stack.enter_context(BagWriter(args.output, args.storage)),
                base_frame=base_frame,
                camera_frame=sequence.frame_id or "left_camera",
                raw_from_rectified=None if sequence.input.rectifier is None else sequence.input.raw_from_rectified,
                static=static_transforms(sequence.bag),
                unpaired=sequence.unpaired,
            )
        odometry = make_odometry(config, base_from_camera)
        tracker = CameraTracker(odometry, writer.write if writer is not None else lambda estimate: None)
        result = run_sequence(sequence, tracker)
        if writer is not None:
            writer.finish()
    return measured(sequence, result, config)


def _milliseconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not (math.isfinite(value) and 0 <= value < 1e6):
        raise argparse.ArgumentTypeError(f"expected milliseconds of at least 0, got {text!r}")
    return value
