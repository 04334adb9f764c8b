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

"""Write ROS 2 bags: standard messages and our own status, whole or not at all."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rosbags.interfaces import Qos, QosDurability, QosHistory, QosLiveliness, QosReliability, QosTime
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from macvo_ros.bags.status_definition import STATUS_DEFINITION, STATUS_TYPE
from macvo_ros.errors import SequenceError
from macvo_ros.geometry.se3 import quaternion
from macvo_ros.odometry.message_fields import split_stamp

Float64 = npt.NDArray[np.float64]

STORAGES = ("mcap", "sqlite3")
_FORMAT_VERSION = 8  # of metadata.yaml: read by Humble and everything after it
_FOREVER = QosTime(2147483647, 4294967295)
_LATCHED = Qos(
    QosHistory.KEEP_LAST,
    1,
    QosReliability.RELIABLE,
    QosDurability.TRANSIENT_LOCAL,
    _FOREVER,
    _FOREVER,
    QosLiveliness.AUTOMATIC,
    _FOREVER,
    False,
)


class BagWriter:
    """A new ROS 2 bag; use it in a `with`. It appears under its name when it is complete, not before."""

    def __init__(self, path: str | Path, storage: str = "mcap") -> None:
        """Begin a bag folder at `path`, which must not exist. storage: one of STORAGES."""
        self.path = Path(path)
        if self.path.exists():
            raise SequenceError(f"{self.path} exists already; choose another name or remove it first")
        if storage not in STORAGES:
            raise SequenceError(f"storage {storage!r} is not known; expected one of {', '.join(STORAGES)}")
        self._storage = StoragePlugin.MCAP if storage == "mcap" else StoragePlugin.SQLITE3
        self._partial = self.path.with_name(f".{self.path.name}.partial")
        self._types = get_typestore(Stores.ROS2_JAZZY)
        self._types.register(get_types_from_msg(STATUS_DEFINITION, STATUS_TYPE))
        self._connections: dict[str, Any] = {}

    def __enter__(self) -> BagWriter:
        if self._partial.exists():
            shutil.rmtree(self._partial)
        self._writer = Writer(self._partial / self.path.name, version=_FORMAT_VERSION, storage_plugin=self._storage)
        self._writer.open()
        return self

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        try:
            if kind is None:
                self._writer.close()
                (self._partial / self.path.name).rename(self.path)
        finally:
            shutil.rmtree(self._partial, ignore_errors=True)

    def message_type(self, type: str) -> Any:
        """The dataclass of a type such as "geometry_msgs/msg/Point"."""
        return self._types.types[type]

    def message(self, type: str, **fields: Any) -> Any:
        """A message of a type; every field must be named."""
        return self._types.types[type](**fields)

    def header(self, stamp: int, frame_id: str) -> Any:
        """std_msgs/Header; stamp in nanoseconds."""
        sec, nanosec = split_stamp(stamp)
        time = self.message("builtin_interfaces/msg/Time", sec=sec, nanosec=nanosec)
        return self.message("std_msgs/msg/Header", stamp=time, frame_id=frame_id)

    def vector(self, type: str, values: Float64 | Sequence[float]) -> Any:
        """A message of x, y, z and (for four numbers) w."""
        return self.message(type, **{name: float(value) for name, value in zip("xyzw", values, strict=False)})

    def pose(self, position: Float64, orientation: Float64) -> Any:
        """geometry_msgs/Pose of (3,) metres and (4,) quaternion x y z w."""
        return self.message(
            "geometry_msgs/msg/Pose",
            position=self.vector("geometry_msgs/msg/Point", position),
            orientation=self.vector("geometry_msgs/msg/Quaternion", orientation),
        )

    def transforms(self, stamp: int, edges: Sequence[tuple[str, str, Float64]]) -> Any:
        """tf2_msgs/TFMessage of (parent, child, (4, 4) pose of the child in the parent), metres."""
        stamped = [
            self.message(
                "geometry_msgs/msg/TransformStamped",
                header=self.header(stamp, parent),
                child_frame_id=child,
                transform=self.message(
                    "geometry_msgs/msg/Transform",
                    translation=self.vector("geometry_msgs/msg/Vector3", pose[:3, 3]),
                    rotation=self.vector("geometry_msgs/msg/Quaternion", quaternion(pose[:3, :3])),
                ),
            )
            for parent, child, pose in edges
        ]
        return self.message("tf2_msgs/msg/TFMessage", transforms=stamped)

    def write_static(self, stamp: int, edges: Sequence[tuple[str, str, Float64]]) -> None:
        """Write /tf_static: all transforms in one message, the only one that whoever comes late is given."""
        self.write("/tf_static", stamp, self.transforms(stamp, edges), latched=True)

    def write(self, topic: str, stamp: int, message: Any, *, latched: bool = False) -> None:
        """Store a message as recorded at `stamp` (nanoseconds); latched topics reach subscribers that come late."""
        if topic not in self._connections:
            self._connections[topic] = self._writer.add_connection(
                topic,
                message.__msgtype__,
                typestore=self._types,
                offered_qos_profiles=[_LATCHED] if latched else [],
            )
        data = self._types.serialize_cdr(message, message.__msgtype__)
        self._writer.write(self._connections[topic], int(stamp), data)
