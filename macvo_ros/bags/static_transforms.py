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

"""Where the camera sits on the robot, from the /tf_static of a bag."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from macvo_ros.bags.bag import Bag
from macvo_ros.errors import SequenceError
from macvo_ros.geometry.se3 import inverse, rotation_from_quaternion, transform

Float64 = npt.NDArray[np.float64]

TF_TOPICS = ("/tf_static", "tf_static")


def base_from_frame(bag: Bag, base: str, frame: str) -> Float64:
    """(4, 4) pose of `frame` in `base`, metres, by the static transforms of the bag; SequenceError when unconnected."""
    base, frame = base.lstrip("/"), frame.lstrip("/")
    if base == frame:
        return np.eye(4)
    edges: dict[str, dict[str, Float64]] = {}
    for parent, child, pose in static_transforms(bag):
        edges.setdefault(parent, {})[child] = pose
        edges.setdefault(child, {})[parent] = inverse(pose)
    reached = {base: np.eye(4)}
    border = [base]
    while border:
        at = border.pop()
        for next_frame, pose in edges.get(at, {}).items():
            if next_frame not in reached:
                reached[next_frame] = reached[at] @ pose
                border.append(next_frame)
    if frame not in reached:
        raise SequenceError(
            f"{bag.path}: /tf_static does not connect {frame!r} to {base!r}; frames in it: "
            f"{', '.join(sorted(edges)) or 'none'}; choose another --base-frame, or none for the camera itself"
        )
    return reached[frame]


def static_transforms(bag: Bag) -> list[tuple[str, str, Float64]]:
    """(parent, child, (4, 4) pose of the child in the parent, metres) of the bag; the last word on a pair counts."""
    found: dict[tuple[str, str], Float64] = {}
    topics = bag.topics
    for message in bag.messages([name for name in TF_TOPICS if name in topics]):
        for item in bag.deserialize(message.raw, topics[message.topic].type).transforms:
            parent, child = item.header.frame_id.lstrip("/"), item.child_frame_id.lstrip("/")
            position, turn = item.transform.translation, item.transform.rotation
            quaternion = np.array([turn.x, turn.y, turn.z, turn.w])
            if not np.isfinite(quaternion).all() or not quaternion.any():
                continue  # tf2 leaves such transforms out too
            pose = transform(rotation_from_quaternion(quaternion), np.array([position.x, position.y, position.z]))
            found[parent, child] = pose
    return [(*frames, pose) for frames, pose in found.items()]
