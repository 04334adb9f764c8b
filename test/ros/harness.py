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

"""The real node in a process of its own, and a peer that talks to it over DDS on loopback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
DEADLINE = 120.0
"""Seconds after which a wait is a failure; every wait ends as soon as what it waits for has happened."""
PATIENCE = 10.0
"""Seconds of waiting after which what may have been lost on the way is sent again."""


def ros_environment(log_folder: Path) -> dict[str, str]:
    """Loopback only, a domain of this test run's own, our DDS profile."""
    profile = str(ROOT / "config" / "fastdds.xml")
    return {
        "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
        "ROS_DOMAIN_ID": str(1 + os.getpid() % 100),
        "FASTRTPS_DEFAULT_PROFILES_FILE": profile,
        "FASTDDS_DEFAULT_PROFILES_FILE": profile,
        "ROS_LOG_DIR": str(log_folder),
        "OMP_NUM_THREADS": "1",
        "RCUTILS_COLORIZED_OUTPUT": "0",
    }


class NodeProcess:
    """`macvo_node` in the namespace `name`, with parameters and remappings as on a command line."""

    def __init__(self, name: str, log: Path, remap: dict[str, str] | None = None, **parameters: Any) -> None:
        self.name = f"/{name}/macvo"
        self.log = log
        words = ["--ros-args", "-r", f"__ns:=/{name}"]
        for file in parameters.pop("params_files", ()):
            words += ["--params-file", str(file)]
        for key, value in parameters.items():
            text = str(value).lower() if isinstance(value, bool) else str(value)
            words += ["-p", f"{key.replace('__', '.')}:={text}"]
        for old, new in (remap or {}).items():
            words += ["-r", f"{old}:={new}"]
        self._output = log.open("w")
        self._process = subprocess.Popen(
            [sys.executable, str(ROOT / "scripts" / "macvo_node"), *words],
            stdout=self._output,
            stderr=subprocess.STDOUT,
            cwd=ROOT,
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def alive(self) -> bool:
        return self._process.poll() is None

    def output(self) -> str:
        return self.log.read_text()

    def wait(self, timeout: float = DEADLINE) -> int:
        """Exit code of a node that ends by itself."""
        return self._process.wait(timeout)

    def stop(self, how: signal.Signals = signal.SIGINT) -> int:
        """Ask it to end; returns the exit code."""
        if self.alive():
            self._process.send_signal(how)
        try:
            return self._process.wait(DEADLINE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise
        finally:
            self._output.close()


class Inbox(list[Any]):
    """Messages received on a topic, in order, with the time each arrived."""

    def __init__(self) -> None:
        super().__init__()
        self.arrived: list[float] = []

    def take(self, message: Any) -> None:
        self.append(message)
        self.arrived.append(time.monotonic())


class Peer:
    """The other side: publishes cameras, receives what the node says, calls its services."""

    def __init__(self, name: str) -> None:
        import rclpy
        from rclpy.executors import SingleThreadedExecutor

        self.namespace = name
        self.node = rclpy.create_node("peer", namespace=f"/{name}")
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(self.node)
        self.watched: NodeProcess | None = None
        """The node whose end ends every wait."""

    def close(self) -> None:
        self._executor.remove_node(self.node)
        self.node.destroy_node()

    def until(self, condition: Callable[[], Any], what: str, again: Callable[[], Any] | None = None) -> Any:
        """Spin until `condition()` is true and return it; `again` is called every PATIENCE seconds of waiting."""
        now = time.monotonic()
        end, repeat = now + DEADLINE, now + PATIENCE
        while not (result := condition()):
            now = time.monotonic()
            if now > end:
                raise AssertionError(f"waited {DEADLINE:.0f} s in vain for {what}")
            if self.watched is not None and not self.watched.alive():
                raise AssertionError(f"the node ended while {what} was waited for: {self.watched.output()[-2000:]}")
            if again is not None and now > repeat:
                again()
                repeat = now + PATIENCE
            self._executor.spin_once(timeout_sec=0.05)
        return result

    def drain(self, seconds: float) -> None:
        """Take in whatever arrives in the next moment; for showing that something does *not* arrive."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self._executor.spin_once(timeout_sec=left)

    def listen(self, kind: Any, topic: str, qos: Any = 100) -> Inbox:
        """Subscribe; returns once the publisher is known here. The publisher may know us later: see `meet`."""
        inbox = Inbox()
        self.node.create_subscription(kind, topic, inbox.take, qos)
        self.until(lambda: self.node.count_publishers(topic), f"a publisher of {topic}")
        return inbox

    def publisher(self, kind: Any, topic: str, qos: Any = 10, wait: bool = True) -> Any:
        publisher = self.node.create_publisher(kind, topic, qos)
        if wait:
            self.until(publisher.get_subscription_count, f"a subscriber of {topic}")
        return publisher

    def meet(self, node: str) -> Inbox:
        """Wait until the node's publishers know our subscriptions, and return its diagnostics from now on.

        Each side tells of its endpoints in the order of their creation, and diagnostics come last on both: whoever
        receives them misses nothing from then on of what was subscribed to before.
        """
        from diagnostic_msgs.msg import DiagnosticArray

        inbox = self.listen(DiagnosticArray, "/diagnostics")
        name = f"{node.strip('/')}: "
        self.until(
            lambda: any(status.name.startswith(name) for message in inbox for status in message.status),
            f"diagnostics of {node}",
        )
        return inbox

    def call(self, kind: Any, service: str, request: Any = None, unless: Callable[[], Any] = lambda: False) -> Any:
        """Call a service and return its answer, or None once `unless()` is true before there is one.

        DDS matches the two directions of a service one after the other, and a node drops the answer to a client whose
        reader it has not met within 100 ms; on a busy machine that happens, so an unanswered request is sent again.
        """
        client = self.node.create_client(kind, service)
        self.until(client.service_is_ready, f"the service {service}")
        sent: list[Any] = []

        def send() -> None:
            sent.append(client.call_async(request or kind.Request()))

        def answer() -> Any:
            return next((future for future in sent if future.done()), None)

        send()
        self.until(lambda: answer() or unless(), f"an answer of {service}", again=send)
        result = future.result() if (future := answer()) else None
        self.node.destroy_client(client)
        return result

    def get_state(self, node: str) -> str:
        from lifecycle_msgs.srv import GetState

        return str(self.call(GetState, f"{node}/get_state").current_state.label)

    def change_state(self, node: str, label: str) -> bool:
        """Ask for a transition; true when the node is where it leads, even if the answer itself was lost."""
        from lifecycle_msgs.msg import Transition
        from lifecycle_msgs.srv import ChangeState

        number, goal = {
            "configure": (Transition.TRANSITION_CONFIGURE, "inactive"),
            "cleanup": (Transition.TRANSITION_CLEANUP, "unconfigured"),
            "activate": (Transition.TRANSITION_ACTIVATE, "active"),
            "deactivate": (Transition.TRANSITION_DEACTIVATE, "inactive"),
        }[label]
        request = ChangeState.Request(transition=Transition(id=number))
        client = self.node.create_client(ChangeState, f"{node}/change_state")
        self.until(client.service_is_ready, f"the service {node}/change_state")
        future = client.call_async(request)  # never twice: the second would find the node elsewhere
        reached: list[bool] = []
        self.until(
            lambda: future.done() or any(reached),
            f"the transition {label}",
            again=lambda: reached.append(self.get_state(node) == goal),
        )
        success = bool(future.result().success) if future.done() else True
        self.node.destroy_client(client)
        return success

    def set_parameter(self, node: str, name: str, value: Any) -> Any:
        from rcl_interfaces.srv import SetParameters
        from rclpy.parameter import Parameter

        request = SetParameters.Request(parameters=[Parameter(name, value=value).to_parameter_msg()])
        return self.call(SetParameters, f"{node}/set_parameters", request).results[0]


def matrix(transform: Any) -> np.ndarray:
    """(4, 4) of a geometry_msgs Pose or Transform."""
    from macvo_ros.geometry.se3 import rotation_from_quaternion

    t = getattr(transform, "position", None) or transform.translation
    q = getattr(transform, "orientation", None) or transform.rotation
    pose = np.eye(4)
    pose[:3, :3] = rotation_from_quaternion(np.array([q.x, q.y, q.z, q.w]))
    pose[:3, 3] = t.x, t.y, t.z
    return pose
