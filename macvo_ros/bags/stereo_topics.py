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

"""Find the stereo pair among the topics of a bag: by the names drivers and datasets give them, or by flags."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from macvo_ros.bags.bag import Topic
from macvo_ros.errors import SequenceError

IMAGE = "sensor_msgs/msg/Image"
COMPRESSED_IMAGE = "sensor_msgs/msg/CompressedImage"
CAMERA_INFO = "sensor_msgs/msg/CameraInfo"

# How left becomes right in a topic name: whole words between / and _ (ZED, KITTI, Isaac, stereo_image_proc, ours),
# EuRoC and TUM-VI, RealSense, numbered cameras.
_SIDES = (("left", "right"), ("cam0", "cam1"), ("infra1", "infra2"), ("camera0", "camera1"), ("cam_0", "cam_1"))
_NOT_A_CAMERA = re.compile(
    r"depth|disparity|confidence|mask|segment|debug|sigma|flow|heatmap|stereo_merged|theora|ffmpeg"
)


@dataclass(frozen=True)
class StereoTopics:
    """Where a bag keeps its stereo pair.

    left, right: image topics. left_info, right_info: their camera_info, None where the bag has none.
    rectified: what the names say of the images.
    """

    left: str
    right: str
    left_info: str | None
    right_info: str | None
    rectified: bool


def find_stereo_topics(
    topics: Mapping[str, Topic],
    *,
    left: str | None = None,
    right: str | None = None,
    left_info: str | None = None,
    right_info: str | None = None,
) -> StereoTopics:
    """The stereo pair of a bag. What is named is taken, the rest is found; doubt is an error that lists the choices."""
    for name, types in ((left, (IMAGE, COMPRESSED_IMAGE)), (right, (IMAGE, COMPRESSED_IMAGE))):
        _check_named(topics, name, types)
    for name in (left_info, right_info):
        _check_named(topics, name, (CAMERA_INFO,))
    if left is None or right is None:
        found = _find_pair(topics, left, right)
    else:
        found = StereoTopics(left, right, None, None, _is_rectified(left))
    return replace(
        found,
        left_info=left_info or _find_info(topics, found.left),
        right_info=right_info or _find_info(topics, found.right),
    )


def _find_pair(topics: Mapping[str, Topic], left: str | None, right: str | None) -> StereoTopics:
    pairs = [
        (name, partner)
        for name, topic in topics.items()
        if topic.type in (IMAGE, COMPRESSED_IMAGE) and topic.count and not _NOT_A_CAMERA.search(name)
        for partner in _partners(name)
        if partner in topics and topics[partner].type == topic.type and topics[partner].count
        if left in (None, name) and right in (None, partner)
    ]
    if not pairs:
        images = [topic.name for topic in topics.values() if topic.type in (IMAGE, COMPRESSED_IMAGE) and topic.count]
        seen = f"image topics: {', '.join(images)}" if images else f"topics: {', '.join(topics) or 'none'}"
        raise SequenceError(
            f"no stereo pair of image topics found in the bag ({seen}); name them by --left and --right"
        )
    ranked = sorted((_rank(pair[0], topics), pair) for pair in pairs)
    if len(ranked) > 1 and ranked[0][0] == ranked[1][0]:
        same = [f"{pair[0]} + {pair[1]}" for rank, pair in ranked if rank == ranked[0][0]]
        raise SequenceError(
            f"the bag holds more than one stereo pair ({'; '.join(same)}); choose by --left and --right"
        )
    name, partner = ranked[0][1]
    return StereoTopics(name, partner, None, None, _is_rectified(name))


def _partners(left: str) -> list[str]:
    """Names the right topic may have, given the left one."""
    partners = []
    for one, other in _SIDES:
        swapped = re.sub(rf"(?<![a-z0-9]){one}(?![a-z0-9])", other, left)
        if swapped != left:
            partners.append(swapped)
    return partners


def _is_rectified(name: str) -> bool:
    """What a name says of its images: `rect` is (RealSense's image_rect_raw too), `raw` and `unrectified` are not.

    KITTI's raw_synced recordings are rectified although their topics are called image_raw.
    """
    words = re.split(r"[/_]", name.lower())
    if "rect" in words or "rectified" in words:
        return True
    return "kitti" in words or not ({"raw", "unrectified"} & set(words) or "cam0" in words)


def _rank(name: str, topics: Mapping[str, Topic]) -> tuple[int, ...]:
    """Lower is better: rectified, lossless, with camera_info, not a half-size copy, grey (enough, and cheaper)."""
    words = set(re.split(r"[/_]", name.lower()))
    return (
        not _is_rectified(name),
        topics[name].type == COMPRESSED_IMAGE,
        "raw" in words and "rect" not in words,
        _find_info(topics, name) is None,
        not ({"gray", "grey", "mono"} & words),
    )


def _find_info(topics: Mapping[str, Topic], image: str) -> str | None:
    """The camera_info beside an image topic, as image_transport and the known drivers place it."""
    name = image.removesuffix("/compressed")
    parent, _, last = name.rpartition("/")
    candidates = [f"{parent}/camera_info", f"{name}/camera_info"]
    if "rect" in last:
        candidates.insert(0, f"{parent}/camera_info_rect")
    grandparent = parent.rpartition("/")[0]
    candidates.append(f"{grandparent}/camera_info")
    return next((c for c in candidates if c in topics and topics[c].type == CAMERA_INFO and topics[c].count), None)


def _check_named(topics: Mapping[str, Topic], name: str | None, types: tuple[str, ...]) -> None:
    if name is None:
        return
    if name not in topics:
        raise SequenceError(f"the bag has no topic {name}; it has {', '.join(topics) or 'none'}")
    if topics[name].type not in types:
        raise SequenceError(f"topic {name} is a {topics[name].type}; expected {' or '.join(types)}")
    if not topics[name].count:
        raise SequenceError(f"topic {name} has no messages in this bag; choose another or record it again")
