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

"""Sends transforms and looks up static ones where tf2_ros is not installed: same names, same behaviour."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from macvo_ros.geometry.se3 import inverse, quaternion, rotation_from_quaternion, transform

Float64 = npt.NDArray[np.float64]


class TransformException(Exception):
    """A transform that cannot be looked up (tf2's name for it)."""


class TransformBroadcaster:
    """Publishes transforms on /tf."""

    def __init__(self, node: Any) -> None:
        from rclpy.qos import QoSProfile
        from tf2_msgs.msg import TFMessage

        self._message = TFMessage
        self.pub_tf = node.create_publisher(TFMessage, "/tf", QoSProfile(depth=100))

    def sendTransform(self, transform: Any) -> None:
        """Send a geometry_msgs/TransformStamped, or several."""
        transforms = list(transform) if isinstance(transform, Sequence) else [transform]
        self.pub_tf.publish(self._message(transforms=transforms))


class Buffer:
    """Remembers the newest transform of each frame to its parent, and chains them."""

    def __init__(self) -> None:
        self._parent: dict[str, tuple[str, Float64]] = {}

    def set_transform_static(self, transform: Any, authority: str) -> None:
        """Take a geometry_msgs/TransformStamped; one that is not a transform (NaN, zero quaternion) is left out."""
        parent, child = _name(transform.header.frame_id), _name(transform.child_frame_id)
        pose = transform_matrix(transform.transform)
        if pose is not None and parent and child and parent != child:
            self._parent[child] = (parent, pose)

    def lookup_transform(self, target_frame: str, source_frame: str, time: Any, timeout: Any = None) -> Any:
        """geometry_msgs/TransformStamped of `source_frame` in `target_frame`; TransformException when unconnected.

        time, timeout: as in tf2; a static transform holds at all times and is there or not.
        """
        from geometry_msgs.msg import TransformStamped

        target, source = self._to_root(_name(target_frame)), self._to_root(_name(source_frame))
        common = next((frame for frame in source if frame in target), None)
        if common is None:
            raise TransformException(
                f"no chain of static transforms connects {source_frame!r} to {target_frame!r}; known frames: "
                f"{', '.join(sorted(self._frames())) or 'none'}"
            )
        pose = inverse(target[common]) @ source[common]
        message = TransformStamped()
        message.header.frame_id, message.child_frame_id = target_frame, source_frame
        write_transform(message.transform, pose)
        return message

    def _to_root(self, frame: str) -> dict[str, Float64]:
        """Pose of `frame` in itself, its parent, its parent's parent and so on; empty for a frame nobody named."""
        if frame not in self._frames():
            return {}
        chain = {frame: np.eye(4)}
        pose = np.eye(4)
        while frame in self._parent:
            frame, step = self._parent[frame]
            if frame in chain:
                raise TransformException(f"the static transforms form a loop through {frame!r}; mend their publishers")
            pose = step @ pose
            chain[frame] = pose
        return chain

    def _frames(self) -> set[str]:
        known = dict(self._parent)  # a copy: the executor adds to it while the worker looks up
        return set(known) | {parent for parent, _ in known.values()}


class TransformListener:
    """Feeds a Buffer from /tf_static."""

    def __init__(self, buffer: Buffer, node: Any) -> None:
        from rclpy.qos import DurabilityPolicy, QoSProfile
        from tf2_msgs.msg import TFMessage

        self._buffer, self._node = buffer, node
        latched = QoSProfile(depth=100, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self._subscription = node.create_subscription(TFMessage, "/tf_static", self._take, latched)

    def unregister(self) -> None:
        """Stop listening."""
        self._node.destroy_subscription(self._subscription)

    def _take(self, message: Any) -> None:
        for item in message.transforms:
            self._buffer.set_transform_static(item, "default_authority")


def transform_matrix(message: Any) -> Float64 | None:
    """(4, 4) of a geometry_msgs/Transform, metres; None when it is not a transform."""
    q = np.array([message.rotation.x, message.rotation.y, message.rotation.z, message.rotation.w])
    t = np.array([message.translation.x, message.translation.y, message.translation.z])
    if not (np.isfinite(q).all() and np.isfinite(t).all()) or abs(float(q @ q) - 1.0) > 1e-2:
        return None
    return transform(rotation_from_quaternion(q), t)


def write_transform(message: Any, pose: Float64) -> None:
    """Fill a geometry_msgs/Transform with a (4, 4) pose."""
    message.translation.x, message.translation.y, message.translation.z = (float(v) for v in pose[:3, 3])
    x, y, z, w = (float(v) for v in quaternion(pose[:3, :3]))
    message.rotation.x, message.rotation.y, message.rotation.z, message.rotation.w = x, y, z, w


def _name(frame: str) -> str:
    return frame.removeprefix("/")
