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

"""The first pass over a bag: which images it holds and when they were taken, camera_info and ground truth."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from macvo_ros.bags.bag import Bag, Message
from macvo_ros.bags.stereo_topics import COMPRESSED_IMAGE, StereoTopics
from macvo_ros.errors import ImageError, SequenceError
from macvo_ros.images.camera_info import CameraInfo
from macvo_ros.images.image_decoding import check_image, decode_compressed

GROUND_TRUTH_TOPIC = "/ground_truth/pose"
"""geometry_msgs/PoseStamped of the left rectified optical frame, as `macvo bag --convert` writes it."""

STAMP_DISORDER = 1_000_000_000
"""Nanoseconds by which stamps may go back (late messages are put in order); more is another recording in the bag."""


@dataclass(frozen=True)
class StoredImage:
    """A usable image: when it was recorded (nanoseconds, where to seek) and its size in pixels."""

    recorded: int
    size: tuple[int, int]


@dataclass
class StereoIndex:
    """What the first pass found.

    images: topic to stamp (nanoseconds) to image, usable ones only. refused: why others are not usable, with counts.
    infos: topic to CameraInfo. truth: stamp to PoseStamped message. frame_id: of the first left image.
    repeated: images whose stamp another image of the topic had already.
    """

    images: dict[str, dict[int, StoredImage]]
    infos: dict[str, CameraInfo] = field(default_factory=dict)
    truth: dict[int, Any] = field(default_factory=dict)
    refused: Counter[str] = field(default_factory=Counter)
    repeated: int = 0
    frame_id: str = ""

    def notes(self) -> list[str]:
        """What was left out and why, in sentences."""
        notes = [f"{count} images were left out: {reason}" for reason, count in self.refused.most_common()]
        if self.repeated:
            notes.append(f"{self.repeated} images repeat the stamp of another and were left out")
        return notes


def read_stereo_index(bag: Bag, topics: StereoTopics) -> StereoIndex:
    """Read the whole bag once. Raw images are only looked at; compressed ones are decoded, to know that they can be."""
    index = StereoIndex({topics.left: {}, topics.right: {}})
    types = {name: topic.type for name, topic in bag.topics.items()}
    first_info: dict[str, bytes] = {}
    latest: dict[str, int] = {}
    wanted = (topics.left, topics.right, topics.left_info, topics.right_info, GROUND_TRUTH_TOPIC)
    for message in bag.messages([name for name in wanted if name is not None]):
        stamp = bag.stamp(message.raw)
        if message.topic in index.images:
            newest = latest.setdefault(message.topic, stamp)
            if stamp < newest - STAMP_DISORDER:
                raise SequenceError(
                    f"{bag.path}: stamps on {message.topic} go back by {(newest - stamp) / 1e9:.1f} s, so the bag "
                    "holds more than one run; split it first"
                )
            latest[message.topic] = max(stamp, newest)
            _add_image(index, bag, message, stamp, types[message.topic], is_left=message.topic == topics.left)
        elif message.topic == GROUND_TRUTH_TOPIC:
            index.truth[stamp] = bag.deserialize(message.raw, types[message.topic])
        elif message.topic not in first_info:
            first_info[message.topic] = message.raw
            index.infos[message.topic] = CameraInfo.from_message(bag.deserialize(message.raw, types[message.topic]))
        elif first_info[message.topic][12:] != message.raw[12:]:  # all but the stamp (and ROS 1's counter)
            raise SequenceError(
                f"{bag.path}: the calibration on {message.topic} changes during the bag; split it first"
            )
    return index


def _add_image(index: StereoIndex, bag: Bag, message: Message, stamp: int, type: str, *, is_left: bool) -> None:
    if stamp in index.images[message.topic]:
        index.repeated += 1
        return
    try:
        fields = bag.deserialize(message.raw, type)
        if type == COMPRESSED_IMAGE:
            height, width = decode_compressed(fields.data, fields.format).shape[:2]
        else:
            height, width = fields.height, fields.width
            check_image(len(fields.data), fields.encoding, height, width, fields.step)
    except (ImageError, SequenceError) as error:
        index.refused[str(error)] += 1
        return
    if is_left and not index.frame_id:
        index.frame_id = str(fields.header.frame_id)
    index.images[message.topic][stamp] = StoredImage(message.recorded, (int(height), int(width)))
