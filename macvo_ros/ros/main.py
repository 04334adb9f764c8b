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

"""`ros2 run macvo_ros macvo_node`: start, autostart, spin, and end in order whatever happens."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import traceback
from types import FrameType
from typing import Any

import rclpy
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.signals import SignalHandlerOptions

from macvo_ros.errors import MacvoError
from macvo_ros.ros.core_log import forward_core_log
from macvo_ros.ros.node import MacvoNode
from macvo_ros.ros.repeated_log import RepeatedLog


def main(arguments: list[str] | None = None) -> int:
    """Run the node until SIGINT or SIGTERM; returns the exit code (2: a parameter is wrong, 1: cannot configure)."""
    initialise(arguments)
    stop: list[int] = []

    def on_signal(number: int, frame: FrameType | None) -> None:
        stop.append(number)  # a second one must not interrupt the clean end

    signal.signal(signal.SIGINT, on_signal)
    signal.signal(signal.SIGTERM, on_signal)
    try:
        node = MacvoNode(command_line=sys.argv if arguments is None else arguments)
    except MacvoError as error:
        print(f"macvo_node: {error}", file=sys.stderr)
        rclpy.try_shutdown()
        return 2
    forward_core_log(node.get_logger())
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    try:
        if node.config.autostart and not start(node):
            return 1
        failures = RepeatedLog(lambda text: node.get_logger().error(text))
        while rclpy.ok() and not stop:
            spin_once(executor, failures)
    finally:
        node.release()
        executor.remove_node(node)
        node.destroy_node()
        rclpy.try_shutdown()
    return 0


def initialise(arguments: list[str] | None) -> None:
    """rclpy.init with our own signal handling; where no log can be written, log to a temporary folder."""
    try:
        rclpy.init(args=arguments, signal_handler_options=SignalHandlerOptions.NO)
    except Exception as error:
        if "log" not in str(error).lower() or "ROS_LOG_DIR" in os.environ:
            raise
        os.environ["ROS_LOG_DIR"] = tempfile.mkdtemp(prefix="macvo_ros_log_")
        print(f"macvo_node: the log folder is not writable, logging to {os.environ['ROS_LOG_DIR']}", file=sys.stderr)
        rclpy.try_shutdown()
        rclpy.init(args=arguments, signal_handler_options=SignalHandlerOptions.NO)


def start(node: MacvoNode) -> bool:
    """Configure and activate."""
    success = TransitionCallbackReturn.SUCCESS
    return bool(node.trigger_configure() == success and node.trigger_activate() == success)


def spin_once(executor: Any, failures: RepeatedLog) -> None:
    """One callback at most. An error in it is reported, not fatal."""
    try:
        executor.spin_once(timeout_sec=0.1)
    except (KeyboardInterrupt, ExternalShutdownException):
        raise
    except Exception as error:
        failures.say("a callback failed", f"{type(error).__name__}: {error}\n{traceback.format_exc()}")
