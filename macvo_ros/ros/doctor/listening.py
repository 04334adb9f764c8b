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

"""Listens to a stereo camera for a few seconds and keeps what a diagnosis needs: facts, and the last few pairs."""

from __future__ import annotations

import os
import tempfile
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import HistoryPolicy, QoSProfile, ReliabilityPolicy
from rclpy.time import Time
from sensor_msgs.msg import CameraInfo as CameraInfoMessage
from sensor_msgs.msg import CompressedImage, Image

from macvo_ros.bags.bag import Topic
from macvo_ros.bags.stereo_topics import StereoTopics, find_stereo_topics
from macvo_ros.errors import ImageError, SequenceError
from macvo_ros.images.camera_info import CameraInfo
from macvo_ros.ros.optional_packages import Buffer, TransformException, TransformListener
from macvo_ros.ros.serialized_image import read_image
from macvo_ros.ros.stereo_messages import stamp_of
from macvo_ros.ros.topic_record import TopicRecord, event_callbacks
from macvo_ros.ros.transforms import transform_matrix

DISCOVERY = 5.0
"""Seconds that topics are waited for: a process of another DDS participant is known after about 3."""
_KEPT = 12
"""Images of each side that are kept."""
_NAMES = ("left", "right", "left_info", "right_info")
_TYPES = {"sensor_msgs/msg/Image": Image, "sensor_msgs/msg/CompressedImage": CompressedImage}


@dataclass
class Heard:
    """One topic as it was heard.

    record: counts. publishers: (node, message type, reliability) of each. stamps, arrivals: nanoseconds of the headers,
    and of this machine's clock when they came. frame_id: of the last message. kept: the last images as they came.
    """

    record: TopicRecord
    publishers: list[tuple[str, str, str]] = field(default_factory=list)
    stamps: list[int] = field(default_factory=list)
    arrivals: list[int] = field(default_factory=list)
    frame_id: str = ""
    kept: deque[Any] = field(default_factory=lambda: deque(maxlen=_KEPT))
    info: CameraInfo | None = None
    trouble: str = ""

    @property
    def reliable(self) -> bool:
        """Whether every publisher offers reliable delivery."""
        return bool(self.publishers) and all(reliability == "RELIABLE" for _, _, reliability in self.publishers)


@dataclass
class Observation:
    """What was heard of a camera: topics by role ("left image", "right camera_info"), TF, and other image topics.

    transform: (4, 4) pose of the left image's frame in the base frame, None where TF does not say, and why not.
    simulated: somebody publishes /clock.
    """

    topics: dict[str, Heard]
    rectified: bool
    elsewhere: list[str]
    simulated: bool = False
    transform: Any = None
    no_transform: str = ""


class Listener:
    """A node of its own context; use it in a `with`."""

    def __init__(self) -> None:
        self._context = rclpy.Context()

    def __enter__(self) -> Listener:
        try:
            rclpy.init(context=self._context)
        except Exception as error:  # where no log can be written, it goes to a temporary folder, as the node's does
            if "log" not in str(error).lower() or "ROS_LOG_DIR" in os.environ:
                raise
            os.environ["ROS_LOG_DIR"] = tempfile.mkdtemp(prefix="macvo_ros_log_")
            self._context = rclpy.Context()
            rclpy.init(context=self._context)
        self._node = rclpy.create_node("macvo_doctor", context=self._context)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self._node)
        return self

    def __exit__(self, *exception: object) -> None:
        self._executor.remove_node(self._node)
        self._node.destroy_node()
        rclpy.try_shutdown(context=self._context)

    def find(self, names: list[str] | None) -> StereoTopics:
        """The topics of the camera: those named (left, right and their camera_info), the others by their names.

        Waits for publishers; SequenceError with what is published where no stereo pair is among it.
        """
        if names is not None and len(names) == 4:
            self._until(lambda: all(map(self._node.count_publishers, names)), DISCOVERY)
            wanted = {name: Topic(name, kind, 1) for name, kind in self._wanted(names)}
            return find_stereo_topics(wanted, **dict(zip(_NAMES, names, strict=True)))
        left, right = names or (None, None)

        def found() -> StereoTopics | None:
            try:
                pair = find_stereo_topics(self._published(), left=left, right=right)
            except SequenceError:
                return None
            return pair if pair.left_info and pair.right_info else None

        pair: StereoTopics | None = self._until(found, DISCOVERY)
        if pair is None:
            published = self._published()
            images = [name for name, topic in published.items() if topic.type in _TYPES]
            if left is None or right is None or left not in published or right not in published:
                raise SequenceError(
                    f"no stereo pair is published ({', '.join(images) or 'no image topics'}); start the camera, or "
                    "name the topics: --topics LEFT RIGHT [LEFT_INFO RIGHT_INFO]"
                )
            pair = find_stereo_topics(published, left=left, right=right)
        return pair

    def listen(self, topics: StereoTopics, seconds: float, base_frame: str) -> Observation:
        """Hear the topics for some seconds."""
        published = self._published()
        roles = {"left image": topics.left, "right image": topics.right}
        roles |= {"left camera_info": topics.left_info or "", "right camera_info": topics.right_info or ""}
        heard = {role: self._heard(role, name, published) for role, name in roles.items() if name}
        buffer = Buffer()
        listener = TransformListener(buffer, self._node)
        subscriptions = [self._subscribe(role, each) for role, each in heard.items()]
        self._until(lambda: None, seconds)
        for each in heard.values():
            self._ask_publishers(each)
        images = [name for name, topic in self._published().items() if topic.type in _TYPES]
        observation = Observation(
            heard, topics.rectified, [name for name in images if name not in (topics.left, topics.right)],
            simulated=self._node.count_publishers("/clock") > 0,
        )  # fmt: skip
        frame = heard["left image"].frame_id
        try:
            found = buffer.lookup_transform(base_frame, frame, Time()) if frame else None
            observation.transform = None if found is None else transform_matrix(found.transform)
        except TransformException as error:
            observation.no_transform = str(error)
        listener.unregister()
        for subscription in subscriptions:
            self._node.destroy_subscription(subscription)
        return observation

    @staticmethod
    def _wanted(names: list[str]) -> list[tuple[str, str]]:
        kind = "sensor_msgs/msg/CompressedImage" if names[0].endswith("/compressed") else "sensor_msgs/msg/Image"
        info = "sensor_msgs/msg/CameraInfo"
        return list(zip(names, (kind, kind, info, info), strict=True))

    def _published(self) -> dict[str, Topic]:
        topics = self._node.get_topic_names_and_types()
        counted = {name: (kinds, self._node.count_publishers(name)) for name, kinds in topics}
        return {name: Topic(name, kinds[0], count) for name, (kinds, count) in counted.items() if count and kinds}

    def _heard(self, role: str, name: str, published: dict[str, Topic]) -> Heard:
        kind: Any = CameraInfoMessage
        if role.endswith("image"):
            stored = published[name].type if name in published else ""
            kind = _TYPES.get(stored, CompressedImage if name.endswith("/compressed") else Image)
        heard = Heard(TopicRecord(role, name, kind))
        self._ask_publishers(heard)
        return heard

    def _ask_publishers(self, heard: Heard) -> None:
        infos = self._node.get_publishers_info_by_topic(heard.record.name)
        if infos:
            heard.publishers = [
                (f"{info.node_namespace.rstrip('/')}/{info.node_name}", info.topic_type,
                 info.qos_profile.reliability.name)
                for info in infos
            ]  # fmt: skip

    def _subscribe(self, role: str, heard: Heard) -> Any:
        reliability = ReliabilityPolicy.RELIABLE if heard.reliable else ReliabilityPolicy.BEST_EFFORT
        qos = QoSProfile(depth=_KEPT, reliability=reliability, history=HistoryPolicy.KEEP_LAST)
        is_image = role.endswith("image")
        callback: Callable[[Any], None] = partial(_take_image if is_image else _take_info, heard)
        record = heard.record
        events = event_callbacks(record)
        return self._node.create_subscription(
            record.kind, record.name, callback, qos, event_callbacks=events, raw=is_image
        )

    def _until(self, condition: Callable[[], Any], seconds: float) -> Any:
        end = time.monotonic() + seconds
        while not (result := condition()):
            left = end - time.monotonic()
            if left <= 0:
                return None
            self._executor.spin_once(timeout_sec=min(left, 0.1))
        return result


def _take_image(heard: Heard, content: bytes) -> None:
    try:
        message = read_image(content, heard.record.kind)
    except ImageError as error:
        heard.trouble = str(error)
        return
    heard.record.saw_image(message)
    _note(heard, message)
    heard.kept.append(message)


def _take_info(heard: Heard, message: Any) -> None:
    heard.record.saw()
    _note(heard, message)
    heard.info = CameraInfo.from_message(message)


def _note(heard: Heard, message: Any) -> None:
    heard.stamps.append(stamp_of(message))
    heard.arrivals.append(time.time_ns())
    heard.frame_id = str(message.header.frame_id).removeprefix("/")
