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

"""macvo view: watch the odometry work, in rerun's viewer or in a file for it."""

from __future__ import annotations

import argparse
import os
import sys
from importlib.util import find_spec
from pathlib import Path

from macvo_ros.commands._options import add_config_options, add_sequence_options, load_config_of, open_input
from macvo_ros.errors import MacvoError

SUFFIX = ".rrd"


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `macvo view`."""
    parser = subparsers.add_parser(
        "view",
        help="show the odometry at work in rerun: images, uncertainty, points, trajectory",
        description="Run the odometry over a sequence or bag and show images, uncertainty, keypoints with 3-sigma "
        'ellipsoids and the trajectory in rerun, while it runs or later. Needs: pip install "macvo_ros[view]".',
    )
    add_sequence_options(parser)
    add_config_options(parser)
    parser.add_argument(
        "--save", metavar="FILE", type=Path, help="write a .rrd file instead of opening the viewer (see it: rerun FILE)"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run, and show every frame."""
    _check(args.save)
    from macvo_ros.bags.camera_tracker import CameraTracker
    from macvo_ros.evaluation.rerun_scene import RerunScene, open_recording
    from macvo_ros.evaluation.runner import run_sequence
    from macvo_ros.odometry.pipelined_odometry import make_odometry
    from macvo_ros.odometry.status import Status

    config = load_config_of(args)
    sequence = open_input(args)
    odometry = make_odometry(config)
    unfinished = args.save.with_name(f".{args.save.name}.unfinished") if args.save is not None else None
    try:
        recording = open_recording(sequence.name, unfinished)
        result = run_sequence(sequence, CameraTracker(odometry, RerunScene(recording, sequence).add))
        recording.disconnect()  # writes what is still on its way
        if unfinished is not None:
            os.replace(unfinished, args.save)
    finally:
        if unfinished is not None:
            unfinished.unlink(missing_ok=True)
    counts = [f"{int((result.status == state).sum())} {state.name.lower()}" for state in Status]
    print(f"{sequence.name}: {len(result.poses)} frames, {', '.join(counts)}")
    if args.save is not None:
        print(f"written to {args.save} ({args.save.stat().st_size / 1e6:.1f} MB); look at it: rerun {args.save}")
    return 0


def _check(save: Path | None) -> None:
    """Say what is missing before anything is computed."""
    if find_spec("rerun") is None:
        raise MacvoError(
            'macvo view needs rerun: pip install "macvo_ros[view]" (or rerun-sdk); without it, macvo run writes a '
            "report.html that any browser shows"
        )
    if save is not None:
        if save.suffix != SUFFIX:
            raise MacvoError(f"--save: expected a file name that ends with {SUFFIX}, got {save}")
        if not save.parent.is_dir():
            raise MacvoError(f"--save: the folder {save.parent} does not exist; make it first")
    elif sys.platform == "linux" and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        raise MacvoError("there is no display to open rerun's viewer on; write a file with --save run.rrd")
