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

"""macvo doctor: look at the machine and at a live camera, and say what is wrong and what to do."""

from __future__ import annotations

import argparse
import os
from importlib.util import find_spec
from typing import TYPE_CHECKING

from macvo_ros.commands._options import add_config_options, add_rectify_option, load_config_of
from macvo_ros.errors import ConfigError, SequenceError

if TYPE_CHECKING:
    from collections.abc import Callable

    from macvo_ros.ros.doctor.finding import Finding
    from macvo_ros.settings.config import Config

EXIT_WRONG = 1


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `macvo doctor`."""
    parser = subparsers.add_parser(
        "doctor",
        help="look at this machine and a live stereo camera, say what is wrong and what to do",
        description="Look at the machine, its DDS settings and the topics of a stereo camera: publishers, rates, QoS, "
        "stamps, camera_info, rectification, TF, and whether the odometry tracks it in time. Prints what is wrong and "
        "what to do; exit code 1 if something is. Run it where the node will run, with the same environment.",
    )
    parser.add_argument(
        "--topics", metavar="TOPIC", nargs="+",
        help="LEFT RIGHT, or LEFT RIGHT LEFT_INFO RIGHT_INFO; found by their names when left out",
    )  # fmt: skip
    parser.add_argument("--seconds", type=float, default=5.0, help="how long to listen (5)")
    parser.add_argument("--base-frame", metavar="FRAME", default="base_link", help="frame of the robot (base_link)")
    add_rectify_option(parser)
    add_config_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Look, print, and return whether something is wrong."""
    if args.topics is not None and len(args.topics) not in (2, 4):
        raise ConfigError(f"--topics: expected 2 names (left right) or 4 (with their camera_info), got {args.topics}")
    if not 0.5 <= args.seconds <= 600:
        raise ConfigError(f"--seconds: expected 0.5 to 600, got {args.seconds:g}")
    from macvo_ros.ros.doctor.finding import Finding, as_text
    from macvo_ros.ros.doctor.machine import look_at_machine

    config = load_config_of(args)
    wrong = 0

    def show(title: str, findings: list[Finding]) -> None:
        nonlocal wrong
        if findings:
            print(as_text(title, findings), flush=True)
            wrong += sum(finding.wrong for finding in findings)

    show("machine", look_at_machine())
    if find_spec("rclpy") is None:
        cure = "source /opt/ros/DISTRIBUTION/setup.bash and the workspace" if args.topics else ""
        show("ROS 2", [Finding("rclpy is not found: topics cannot be looked at", cure)])
    else:
        _look_at_camera(args, config, show)
    print(f"\n{_count(wrong)} wrong")
    return EXIT_WRONG if wrong else 0


def _count(wrong: int) -> str:
    return "nothing is" if not wrong else "one thing is" if wrong == 1 else f"{wrong} things are"


def _look_at_camera(args: argparse.Namespace, config: Config, show: Callable[[str, list[Finding]], None]) -> None:
    """Everything that takes ROS: one section after the other, as soon as it is known."""
    from rclpy.utilities import get_rmw_implementation_identifier

    from macvo_ros.ros.doctor.finding import Finding
    from macvo_ros.ros.doctor.images import look_at_images
    from macvo_ros.ros.doctor.listening import Listener
    from macvo_ros.ros.doctor.machine import look_at_dds
    from macvo_ros.ros.doctor.topics import look_at_calibration, look_at_stamps, look_at_topics, look_at_transform

    show("DDS", look_at_dds(os.environ, get_rmw_implementation_identifier()))
    with Listener() as listener:
        try:
            topics = listener.find(args.topics)
        except SequenceError as error:
            seen, _, cure = str(error).partition("; ")
            show("topics", [Finding(seen, cure)])
            return
        observation = listener.listen(topics, args.seconds, args.base_frame)
    rectify = args.rectify if args.rectify is not None else not topics.rectified
    show("topics", look_at_topics(observation, args.seconds))
    show("stamps", look_at_stamps(observation))
    findings, stereo = look_at_calibration(observation, rectify)
    show("calibration", findings)
    show("transforms", look_at_transform(observation, args.base_frame))
    show("images", look_at_images(observation, stereo, config))
