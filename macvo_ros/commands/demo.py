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

"""macvo demo: the main job without any data of one's own."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from macvo_ros.commands._options import RENDERED_FRAMES, add_config_options, load_config_of
from macvo_ros.commands.run import measured, run_and_measure, summary, write_all

if TYPE_CHECKING:
    from macvo_ros.evaluation.report import Evaluation
    from macvo_ros.sequences.sequence import Sequence
    from macvo_ros.settings.config import Config


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `macvo demo`."""
    parser = subparsers.add_parser(
        "demo",
        help="render a short stereo sequence and play it through the real ROS 2 node",
        description="Render what a hand-held ZED-X sees in a room, publish it over DDS under the driver's topic names "
        "to the real ROS 2 node in a process of its own, evaluate what the node publishes, and leave the trajectory "
        "and a report page with plots.",
    )
    add_config_options(parser)
    parser.add_argument("--offline", action="store_true", help="run the core in this process, without ROS 2")
    parser.add_argument("--out", metavar="DIR", type=Path, default=Path("output/demo"), help="where to write")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Render, run, measure, write."""
    from macvo_ros.rendering.sequence import RenderedSequence

    config = load_config_of(args)
    sequence = RenderedSequence("room", RENDERED_FRAMES)
    live = not args.offline and _ros_is_here()
    evaluation = _through_the_node(sequence, config, args.out) if live else run_and_measure(sequence, config)
    write_all(args.out, evaluation)
    print(summary(evaluation))
    how = "played over DDS to macvo_node and taken from what it published" if live else "run in this process"
    print(f"\n{len(sequence)} stereo pairs, {how}.")
    print(f"Open {args.out / 'report.html'} in a browser; the trajectory is {args.out / 'trajectory.txt'}")
    return 0


def _ros_is_here() -> bool:
    try:
        import rclpy  # noqa: F401

        from macvo_ros.msg import Status  # noqa: F401
    except ImportError as error:
        print(f"macvo: without the ROS 2 node ({error}; `make build` builds it)", file=sys.stderr)
        return False
    return True


def _through_the_node(sequence: Sequence, config: Config, out: Path) -> Evaluation:
    from macvo_ros.evaluation.runner import run_sequence
    from macvo_ros.ros.live_odometry import LiveOdometry

    out.mkdir(parents=True, exist_ok=True)
    with LiveOdometry(config, out / "node.log") as odometry:
        return measured(sequence, run_sequence(sequence, odometry, title="node"), config)
