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

"""Subscriptions whose reliability follows their publishers: reliable where all offer it, best effort otherwise.

One that asks for more than is offered receives nothing; one that asks for less loses most large images of a sender with
little shared memory. Drivers start, end and change their minds, so the graph is looked at again and again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rclpy.callback_groups import CallbackGroup
from rclpy.lifecycle import LifecycleNode
from rclpy.qos import HistoryPolicy, QoSProfile, ReliabilityPolicy

from macvo_ros.ros.topic_record import TopicRecord, event_callbacks


class MatchedSubscription:
    """One topic of a node, subscribed to again when its publishers turn out to offer another reliability."""

    def __init__(
        self,
        node: LifecycleNode,
        record: TopicRecord,
        callback: Callable[..., None],
        choice: str,
        depth: int,
        group: CallbackGroup | None = None,
    ) -> None:
        """choice: the parameter `reliability`. depth: of the queue. Messages come serialized if `record.raw`.

        group: of the callbacks; None: the node's own.
        """
        self._node, self._record, self._callback, self._depth = node, record, callback, depth
        self._choice, self.group = choice, group
        self._asked = self._wanted()
        self._subscription = self._subscribe()

    def follow(self) -> bool:
        """Ask for what the publishers offer by now; whether that was something new."""
        wanted = self._wanted()
        if wanted == self._asked:
            return False
        self._asked = wanted
        self._record.missed.begin_anew()
        self._renew()
        return True

    def keep(self, depth: int) -> None:
        """Let the middleware keep so many messages from now on. Those that get lost by the change count as missed."""
        if depth != self._depth:
            self._depth = depth
            self._renew()

    def close(self) -> None:
        """Unsubscribe."""
        self._node.destroy_subscription(self._subscription)

    def _wanted(self) -> ReliabilityPolicy:
        publishers = self._node.get_publishers_info_by_topic(self._record.name)
        offered = [publisher.qos_profile.reliability for publisher in publishers]
        if not offered and self._record.asked:
            return self._asked  # nobody there at the moment: the same driver may come back
        return matching(self._choice, offered)

    def _renew(self) -> None:
        self._node.destroy_subscription(self._subscription)
        self._subscription = self._subscribe()

    def _subscribe(self) -> Any:
        record = self._record
        record.asked, record.incompatible = reliability_name(self._asked), ""
        qos = QoSProfile(depth=self._depth, reliability=self._asked, history=HistoryPolicy.KEEP_LAST)
        return self._node.create_subscription(
            record.kind,
            record.name,
            self._callback,
            qos,
            callback_group=self.group,
            event_callbacks=event_callbacks(record),
            raw=record.raw,
        )


def matching(choice: str, offered: Sequence[ReliabilityPolicy]) -> ReliabilityPolicy:
    """The reliability to ask for. choice: auto, reliable or best_effort; offered: by each publisher.

    Best effort fits every publisher, so it is what to begin with when there is none.
    """
    if choice == "auto":
        choice = "reliable" if offered and set(offered) == {ReliabilityPolicy.RELIABLE} else "best_effort"
    return ReliabilityPolicy.RELIABLE if choice == "reliable" else ReliabilityPolicy.BEST_EFFORT


def reliability_name(policy: ReliabilityPolicy) -> str:
    """In words: reliable, best effort."""
    return str(policy.name).lower().replace("_", " ")
