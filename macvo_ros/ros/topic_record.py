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

"""What was seen on one topic, for the explanation of a silence."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from macvo_ros.ros.missed_messages import MissedMessages


@dataclass
class TopicRecord:
    """Counts of one subscription. role: as in "left image"; name: the resolved topic; kind: its message class.

    raw: messages are taken serialized.
    """

    role: str
    name: str
    kind: Any
    raw: bool = False
    asked: str = ""
    """The reliability we ask for: reliable or best effort."""
    received: int = 0
    lost: int = 0
    """Messages the middleware reports as sent and not delivered."""
    skipped: int = 0
    """Messages that gave way to newer ones while a pair was tracked, on purpose."""
    incompatible: str = ""
    """The QoS policy a publisher does not offer as we ask for it; empty when none."""
    last: float = 0.0
    """When the last message came, `time.monotonic` seconds."""
    content: str = ""
    """Size and encoding of the last image."""
    size: int = 0
    """Bytes of the last image."""
    missed: MissedMessages = field(default_factory=MissedMessages)
    """Messages that were sent and never came here, whatever the reason."""

    @property
    def overwritten(self) -> int:
        """Messages that arrived and gave way to newer ones although they were wanted."""
        return max(0, self.missed.count - self.lost - self.skipped)

    def saw(self) -> None:
        """A message came."""
        self.received += 1
        self.last = time.monotonic()

    def saw_image(self, message: Any) -> None:
        """An image came."""
        self.saw()
        self.size = len(message.data)
        if hasattr(message, "encoding"):
            self.content = f"{message.width}x{message.height} {message.encoding}"
        else:
            self.content = f"{message.format}"

    @property
    def type_name(self) -> str:
        """As the graph spells it: sensor_msgs/msg/Image."""
        return f"{self.kind.__module__.split('.')[0]}/msg/{self.kind.__name__}"


def event_callbacks(record: TopicRecord) -> Any:
    """Middleware events of a subscription, written into its record (where this rclpy and RMW know them)."""
    try:
        from rclpy.event_handler import SubscriptionEventCallbacks
    except ImportError:  # Humble
        from rclpy.qos_event import SubscriptionEventCallbacks

    def lost(event: Any) -> None:
        record.lost += int(event.total_count_change)  # the total begins anew with each subscription

    def incompatible(event: Any) -> None:
        record.incompatible = _policy_name(event.last_policy_kind)

    return SubscriptionEventCallbacks(message_lost=lost, incompatible_qos=incompatible)


def _policy_name(kind: Any) -> str:
    try:
        from rclpy.qos import qos_policy_name_from_kind

        return str(qos_policy_name_from_kind(kind))
    except Exception:  # the names moved between distributions; the number still tells
        return str(kind)
