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

"""A node under test with what it says about itself: status, odometry, diagnostics."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from camera_messages import CameraDriver, info_messages, stamp_of


@contextmanager
def supervised(process: Any, camera: Any) -> Iterator[SupervisedNode]:
    """A node with a peer in its namespace; in the end it must still live, stop when told, and show no traceback."""
    from harness import Peer

    peer = Peer(process.name.split("/")[1])
    yield SupervisedNode(process, peer, camera)
    assert process.alive()
    assert process.stop() == 0
    assert "Traceback" not in process.output()
    peer.close()


class SupervisedNode:
    """Feeds a node and reads its status and diagnostics."""

    def __init__(self, node: Any, peer: Any, camera: Any, **driver: Any) -> None:
        from nav_msgs.msg import Odometry

        from macvo_ros.msg import Status

        self.node, self.peer = node, peer
        peer.watched = node
        self.status = peer.listen(Status, f"{node.name}/status")
        self.odometry = peer.listen(Odometry, f"{node.name}/odometry")
        self.driver = CameraDriver(peer, camera, **driver)
        self._stamp = 1_790_000_000_000_000_007

    def next_stamp(self, seconds: float = 0.066) -> int:
        self._stamp += round(seconds * 1e9)
        return self._stamp

    def calibrate(self, *messages: Any) -> None:
        """Publish camera_info (left, right; the driver's own when none are given) and wait until the node has it."""
        for side, message in enumerate(messages or info_messages(self.driver.camera, 0)):
            self.calibrate_side(side, message)

    def calibrate_side(self, side: int, message: Any) -> None:
        """Publish the camera_info of the left (0) or right (1) camera and wait until the node has it."""
        publisher = self.driver.infos[side]
        self.refresh()
        before = self.received(publisher.topic_name)
        publisher.publish(message)
        self.peer.until(
            lambda: self.received(publisher.topic_name) > before,
            "camera_info",
            again=lambda: publisher.publish(message),
        )

    def refresh(self) -> None:
        """Wait for diagnostics that tell of everything the node did before this call."""
        now = time.time_ns()
        name = f"{self.node.name.strip('/')}: "

        def newer() -> bool:
            newest = next((a for a in reversed(self.driver.diagnostics) if a.status[0].name.startswith(name)), None)
            return newest is not None and stamp_of(newest) > now

        self.peer.until(newer, f"newer diagnostics of {name}")

    def received(self, topic: str) -> int:
        """Messages the node has seen on a topic, by its diagnostics."""
        seen = next((value for key, value in self.values().items() if key.endswith(topic)), "")
        return int(found[1]) if (found := re.search(r"(\d+) messages", seen)) else 0

    def track(self, frame: Any, **how: Any) -> Any:
        """Send a frame with the next stamp and return the status that answers it."""
        stamp = how.pop("stamp", None) or self.next_stamp()
        before = len(self.status)
        self.driver.send(frame, stamp=stamp, **how)
        return self.peer.until(
            lambda: next((status for status in self.status[before:] if stamp_of(status) == stamp), None),
            "the status of a good pair",
        )

    def newest_odometry(self) -> Any:
        """The odometry that belongs to the newest status; it may arrive a moment after it."""
        stamp = self.status[-1].header.stamp
        self.peer.until(lambda: self.odometry and self.odometry[-1].header.stamp == stamp, "odometry")
        return self.odometry[-1]

    def values(self, part: str = "input") -> dict[str, str]:
        """Keys and values of the newest diagnostics of this node."""
        name = f"{self.node.name.strip('/')}: {part}"
        for array in reversed(self.driver.diagnostics):
            for status in array.status:
                if status.name == name:
                    return {
                        "message": status.message,
                        "level": status.level,
                        **{value.key: value.value for value in status.values},
                    }
        return {}

    def count(self, name: str) -> int:
        return int(self.values().get(name, 0))

    def refusals(self, kind: str) -> tuple[int, str]:
        """How many pairs of a kind were refused, and why the last one was."""
        count, _, last = self.values().get(f"refused, {kind}", "0, last: ").partition(", last: ")
        return int(count), last

    def wait_refusal(self, kind: str, words: str, before: int) -> None:
        """Wait until one more pair of a kind was refused, for a reason that contains `words`."""
        self.peer.until(lambda: self.refusals(kind)[0] == before + 1, f"a refusal ({kind}): {words}")
        assert words in self.refusals(kind)[1]
        assert self.node.alive()
