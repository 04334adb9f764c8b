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

"""The topics the node listens to: images and calibration in, stereo pairs out."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from rclpy.clock import Clock, ClockType
from rclpy.lifecycle import LifecycleNode
from sensor_msgs.msg import CameraInfo as CameraInfoMessage
from sensor_msgs.msg import CompressedImage, Image

from macvo_ros.errors import ImageError
from macvo_ros.ros.camera_info_pair import CameraInfoPair
from macvo_ros.ros.counters import Counters
from macvo_ros.ros.image_gate import ImageGate
from macvo_ros.ros.matched_subscription import MatchedSubscription
from macvo_ros.ros.missed_messages import NUMBERED
from macvo_ros.ros.optional_packages import ApproximateTimeSynchronizer, SimpleFilter, TimeSynchronizer
from macvo_ros.ros.overload import Overload
from macvo_ros.ros.pairing import SIDES, PairingRecord
from macvo_ros.ros.parameters import NodeConfig
from macvo_ros.ros.serialized_image import read_image
from macvo_ros.ros.skipped_pairs import SkippedPairs
from macvo_ros.ros.stereo_messages import StereoMessages, stamp_of
from macvo_ros.ros.topic_record import TopicRecord

QUEUE = 8
"""Images of each side that wait for a partner: a quarter of a second at 30 Hz."""

FOLLOW_PERIOD = 0.25
"""Seconds between two looks at what the publishers offer, 0.1 ms each."""


class StereoInputs:
    """Subscriptions of an active node. All callbacks run on the executor and only hand over."""

    def __init__(
        self,
        node: LifecycleNode,
        config: NodeConfig,
        counters: Counters,
        deliver: Callable[[StereoMessages], None],
        refuse: Callable[[str, str], None],
        wanted: Callable[[], bool] = lambda: True,
    ) -> None:
        """deliver: takes a pair. refuse: takes kind and reason of a pair that cannot even be handed over.

        wanted: whether a pair would be tracked at once; under overload, images stay in the middleware while not.
        """
        self.pairing = PairingRecord(QUEUE)
        self.topics: dict[str, TopicRecord] = {}
        self.paused = False
        self._node, self._config, self._counters = node, config, counters
        self._deliver, self._refuse = deliver, refuse
        self._infos = CameraInfoPair(config.sync_tolerance if config.approximate_sync else 0.0)
        self._held: StereoMessages | None = None
        self._subscriptions: list[MatchedSubscription] = []
        self._connect()
        # Calibration first: of what has arrived, the executor serves subscriptions in the order of their creation.
        if not config.calibration_file:
            for side in SIDES:
                name = f"{side}/camera_info"
                self._subscribe(f"{side} camera_info", name, CameraInfoMessage, partial(self._info, side))
        self._gate, self._overload = ImageGate(wanted), Overload(counters.snapshot())
        for side in SIDES:
            topic = image_topic(node, side, config)
            take = partial(self._image, side) if NUMBERED else partial(self._image, side, info={})
            self._subscribe(f"{side} image", topic, self._image_type, take, self._gate)
        self._skipped = SkippedPairs(*(self.topics[f"{side} image"] for side in SIDES))
        # A clock of its own: simulated time may stand still while publishers come.
        clock = Clock(clock_type=ClockType.STEADY_TIME)
        self._timer = node.create_timer(FOLLOW_PERIOD, self._follow_publishers, clock=clock)
        self._tell()

    def close(self) -> None:
        """Unsubscribe. A pair still held back counts as dropped."""
        self._node.destroy_timer(self._timer)
        for subscription in self._subscriptions:
            subscription.close()
        self._subscriptions.clear()
        if self._held is not None:
            self._counters.add(received=1, dropped=1)
            self._held = None

    @property
    def gated(self) -> bool:
        """Whether images wait in the middleware until a pair is wanted."""
        return self._gate.in_use

    @property
    def _image_type(self) -> Any:
        return CompressedImage if self._config.compressed else Image

    def _connect(self) -> None:
        """A fresh synchronizer: after stamps went back, the old queues would keep every new image from pairing."""
        self._filters = {side: SimpleFilter() for side in SIDES}
        filters = [self._filters[side] for side in SIDES]
        if self._config.approximate_sync:
            synchronizer = ApproximateTimeSynchronizer(filters, QUEUE, self._config.sync_tolerance)
        else:
            synchronizer = TimeSynchronizer(filters, QUEUE)
        synchronizer.registerCallback(self._pair)
        self._synchronizer = synchronizer

    def _subscribe(
        self, role: str, name: str, kind: Any, take: Callable[..., None], gate: ImageGate | None = None
    ) -> None:
        record = TopicRecord(role, self._node.resolve_topic_name(name), kind, raw=kind is not CameraInfoMessage)
        self.topics[role] = record
        subscription = MatchedSubscription(self._node, record, take, self._config.reliability, QUEUE, gate)
        self._subscriptions.append(subscription)

    def _follow_publishers(self) -> None:
        changed = [subscription.follow() for subscription in self._subscriptions]
        if any(changed):
            self._tell()
        if NUMBERED and self._gate.in_use != self._overload.update(self._counters.snapshot()):
            self._use_gate(self._overload.lasts)

    def _use_gate(self, in_use: bool) -> None:
        """Behind the gate one image of each side waits, the newest: older ones would have to be taken before it."""
        self._gate.in_use = in_use
        for subscription in self._subscriptions:
            if subscription.group is self._gate:
                subscription.keep(1 if in_use else QUEUE)
        self._skipped.busy()  # what comes between the old subscriptions and the new is not taken, either

    def _tell(self) -> None:
        names = ", ".join(f"{topic.name} ({topic.asked})" for topic in self.topics.values())
        self._node.get_logger().info(f"listening to {names}")

    def _image(self, side: str, content: bytes, info: Any) -> None:
        """content: the serialized message. info: what the middleware says of it, a mapping."""
        record = self.topics[f"{side} image"]
        self._skipped.saw(side, record.missed.saw(info))
        try:
            message = read_image(content, self._image_type)
        except ImageError as error:
            self._counters.add(received=1)
            self._refuse("image", f"{side} {error}")
            return
        stamp = stamp_of(message)
        record.saw_image(message)
        if self.paused:
            return
        if self.pairing.went_back(side, stamp):
            self._counters.add(unpaired=self.pairing.forget())
            self._connect()
        self._skipped.took(side, stamp)
        gone = self.pairing.saw(side, stamp, arrival(info))
        if gone:
            self._counters.add(unpaired=gone)
        self._filters[side].signalMessage(message)

    def _info(self, side: str, message: Any) -> None:
        self.topics[f"{side} camera_info"].saw()
        self._infos.take(side, message)
        if self._infos.whole:
            self._hand_over_held()

    def _pair(self, left: Any, right: Any) -> None:
        stamps = dict(zip(SIDES, (stamp_of(left), stamp_of(right)), strict=True))
        pair = StereoMessages(left, right, None, None, self.pairing.paired(**stamps))
        skipped = self._skipped.paired(**stamps)
        if skipped.pairs:
            self._counters.add(received=skipped.pairs, dropped=skipped.pairs)
        for side, count in skipped.partners.items():
            self.pairing.excuse(side, stamps[side], count)
        if self._held is not None and not self._infos.accept():
            self._held = None
            self._counters.add(received=1)
            self._refuse("camera_info", self._why_held())
        if self._config.calibration_file or self._infos.whole:
            self._hand_over_held()
            self._hand_over(pair)
        else:
            self._held = pair

    def _why_held(self) -> str:
        names = {side: self.topics[f"{side} camera_info"].name for side in SIDES}
        if self._infos.missing:
            missing = " and ".join(names[side] for side in self._infos.missing)
            return (
                f"images arrive but no camera_info on {missing}: publish it, remap the topic, or give calibration_file"
            )
        changed = self._infos.changed
        other = names[SIDES[1 - SIDES.index(changed)]]
        return (
            f"camera_info on {names[changed]} changed but none that fits it came on {other} since: "
            "let the driver publish both when it changes resolution or calibration"
        )

    def _hand_over_held(self) -> None:
        if self._held is not None:
            held, self._held = self._held, None
            self._hand_over(held)

    def _hand_over(self, pair: StereoMessages) -> None:
        left_info, right_info = self._infos.infos
        if self._gate.in_use:
            self._skipped.busy()
        self._deliver(StereoMessages(pair.left, pair.right, left_info, right_info, pair.arrived))


def arrival(info: Any) -> float:
    """When an image reached this process, `time.monotonic` seconds; now where the middleware does not say."""
    now, reached = time.monotonic(), info.get("received_timestamp", 0)
    return now - max(0.0, (time.time_ns() - reached) * 1e-9) if reached else now


def image_topic(node: LifecycleNode, side: str, config: NodeConfig) -> str:
    """Full name of an image topic: SIDE/image_rect, or SIDE/image_raw with `rectify`, and /compressed of it.

    As with image_transport, remapping the image topic moves its compressed topic along; the latter may also be
    remapped itself.
    """
    base = f"{side}/{'image_raw' if config.rectify else 'image_rect'}"
    if not config.compressed:
        return str(node.resolve_topic_name(base))
    name = f"{base}/compressed"
    if node.resolve_topic_name(name) != node.resolve_topic_name(name, only_expand=True):
        return str(node.resolve_topic_name(name))
    return f"{node.resolve_topic_name(base)}/compressed"
