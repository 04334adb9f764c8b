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

"""Small bags for the tests: a few stereo pairs of noise with camera_info, in any format a recorder leaves behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cv2
import numpy as np
from rosbags.rosbag1 import Writer as Ros1Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from macvo_ros.bags.convert import camera_info_message, image_message
from macvo_ros.bags.writer import BagWriter
from macvo_ros.geometry.camera import StereoCamera

CAMERA = StereoCamera(50.0, 50.0, 15.5, 11.5, 0.1, 32, 24)
PERIOD = 50_000_000
START = 1_700_000_000_123_456_789
TOPICS = {
    "left": "/stereo/left/image_rect",
    "right": "/stereo/right/image_rect",
    "left_info": "/stereo/left/camera_info",
    "right_info": "/stereo/right/camera_info",
}


def picture(index: int, side: str, *, colour: bool = False) -> np.ndarray:
    """The image of a frame: noise that belongs to this frame and side alone."""
    rng = np.random.default_rng([index, side == "right"])
    return rng.integers(0, 256, (24, 32, 3) if colour else (24, 32), dtype=np.uint8)


def write_ros2(
    path: Path,
    count: int = 6,
    *,
    storage: str = "mcap",
    topics: dict[str, str] | None = None,
    right_delay: int = 0,
    skip_right: tuple[int, ...] = (),
    info: bool = True,
    compressed: str | None = None,
    change=None,
) -> Path:
    """A ROS 2 bag; change(index, side, message) may alter or replace each image message."""
    names = {**TOPICS, **(topics or {})}
    with BagWriter(path, storage) as bag:
        for index in range(count):
            for side in ("left", "right"):
                if side == "right" and index in skip_right:
                    continue
                stamp = START + index * PERIOD + (right_delay if side == "right" else 0)
                frame = f"{side}_optical"
                if info:
                    bag.write(names[f"{side}_info"], stamp, camera_info_message(bag, CAMERA, side, stamp, frame))
                if compressed is not None:
                    data = cv2.imencode(f".{compressed}", picture(index, side))[1].reshape(-1)
                    message = bag.message(
                        "sensor_msgs/msg/CompressedImage",
                        header=bag.header(stamp, frame),
                        format=f"mono8; {compressed} compressed ",
                        data=data,
                    )
                else:
                    message = image_message(bag, picture(index, side), stamp, frame)
                if change is not None:
                    message = change(index, side, message) or message
                bag.write(names[side], stamp + 1000, message)
    return path


def write_ros1(
    path: Path,
    count: int = 6,
    compression: str | None = None,
    static: tuple[str, str, str, np.ndarray] | None = None,
) -> Path:
    """A ROS 1 bag of the same frames on EuRoC-like topics with camera_info.

    static: a /tf_static of this type with one transform, parent, child and (4, 4) pose (of an unturned child).
    """
    store = get_typestore(Stores.ROS1_NOETIC)
    types = store.types
    writer = Ros1Writer(path)
    if compression is not None:
        writer.set_compression(Ros1Writer.CompressionFormat[compression])
    with writer:
        connections = {
            name: writer.add_connection(TOPICS[name], f"sensor_msgs/msg/{kind}", typestore=store)
            for name, kind in (
                ("left", "Image"),
                ("right", "Image"),
                ("left_info", "CameraInfo"),
                ("right_info", "CameraInfo"),
            )
        }
        if static is not None:
            _write_static(writer, store, *static)
        for index in range(count):
            for side in ("left", "right"):
                at = START + index * PERIOD
                time = types["builtin_interfaces/msg/Time"](sec=at // 10**9, nanosec=at % 10**9)
                header = types["std_msgs/msg/Header"](seq=index, stamp=time, frame_id=f"{side}_optical")
                image = types["sensor_msgs/msg/Image"](header, 24, 32, "mono8", 0, 32, picture(index, side).reshape(-1))
                P = CAMERA.P_left if side == "left" else CAMERA.P_right
                region = types["sensor_msgs/msg/RegionOfInterest"](0, 0, 0, 0, False)
                info = types["sensor_msgs/msg/CameraInfo"](
                    header, 24, 32, "plumb_bob", np.zeros(5), P[:, :3].reshape(9), np.eye(3).reshape(9), P.reshape(12),
                    0, 0, region,
                )  # fmt: skip
                for name, message in ((f"{side}_info", info), (side, image)):
                    raw = store.serialize_ros1(message, message.__msgtype__)
                    writer.write(connections[name], at, raw)
    return path


def _write_static(writer: Ros1Writer, store: Any, kind: str, parent: str, child: str, pose: np.ndarray) -> None:
    store.register(get_types_from_msg("geometry_msgs/TransformStamped[] transforms\n", kind))
    types = store.types
    header = types["std_msgs/msg/Header"](0, types["builtin_interfaces/msg/Time"](1, 0), parent)
    place = types["geometry_msgs/msg/Vector3"](*pose[:3, 3])
    turn = types["geometry_msgs/msg/Quaternion"](0.0, 0.0, 0.0, 1.0)
    transform = types["geometry_msgs/msg/Transform"](place, turn)
    message = types[kind]([types["geometry_msgs/msg/TransformStamped"](header, child, transform)])
    connection = writer.add_connection("/tf_static", kind, typestore=store, latching=1)
    writer.write(connection, START, store.serialize_ros1(message, kind))
