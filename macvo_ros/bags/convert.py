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

"""Turn a stereo sequence of any layout into a ROS 2 bag that the node, `ros2 bag play` and `macvo bag` understand."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from macvo_ros.bags.stereo_index import GROUND_TRUTH_TOPIC
from macvo_ros.bags.writer import BagWriter
from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.geometry.se3 import quaternion
from macvo_ros.images.frame import Image
from macvo_ros.sequences.sequence import Sequence

Float64 = npt.NDArray[np.float64]

NAMESPACE = "/stereo"
LEFT_FRAME, RIGHT_FRAME = "left_camera_optical_frame", "right_camera_optical_frame"
BODY_FRAME = "base_link"
BODY_FROM_OPTICAL = np.array([[0.0, 0, 1, 0], [-1, 0, 0, 0], [0, -1, 0, 0], [0, 0, 0, 1]])
"""(4, 4): optical axes (x right, y down, z forward) in a body of x forward, y left, z up (REP 103)."""

FIRST_STAMP = 1_000_000_000
"""Nanoseconds. Many nodes take a stamp of zero for "unset", so sequences that begin there are moved by this much."""


def convert_sequence(sequence: Sequence, path: str | Path, storage: str = "mcap", *, progress: bool = True) -> int:
    """Write `sequence` to a new bag at `path`; returns the number of frames.

    Topics: /stereo/{left,right}/image_rect (mono8 or rgb8, rectified), /stereo/{left,right}/camera_info,
    /ground_truth/pose (of the left optical frame in `world`) where it is known, and /tf_static with the cameras on a
    base_link in the place of the left one: a datasets's camera has no robot.
    """
    from tqdm import tqdm

    shift = FIRST_STAMP if len(sequence) and sequence.stamps[0] < FIRST_STAMP else 0
    with BagWriter(path, storage) as bag:
        bar = tqdm(range(len(sequence)), desc="convert", unit="frame", delay=2.0, disable=not progress, file=sys.stderr)
        for index in bar:
            frame = sequence[index]
            stamp = frame.stamp + shift
            if index == 0:
                _write_frames(bag, stamp, frame.camera)
            sides = (("left", frame.left, LEFT_FRAME), ("right", frame.right, RIGHT_FRAME))
            for side, image, frame_id in sides:
                info = camera_info_message(bag, frame.camera, side, stamp, frame_id)
                bag.write(f"{NAMESPACE}/{side}/camera_info", stamp, info)
                bag.write(f"{NAMESPACE}/{side}/image_rect", stamp, image_message(bag, image, stamp, frame_id))
            if sequence.ground_truth is not None:
                pose = sequence.ground_truth[index]
                message = bag.message(
                    "geometry_msgs/msg/PoseStamped",
                    header=bag.header(stamp, "world"),
                    pose=bag.pose(pose[:3, 3], quaternion(pose[:3, :3])),
                )
                bag.write(GROUND_TRUTH_TOPIC, stamp, message)
    return len(sequence)


def image_message(bag: BagWriter, image: Image, stamp: int, frame_id: str) -> Any:
    """sensor_msgs/Image of (H, W) grey or (H, W, 3) RGB uint8."""
    return bag.message(
        "sensor_msgs/msg/Image",
        header=bag.header(stamp, frame_id),
        height=image.shape[0],
        width=image.shape[1],
        encoding="mono8" if image.ndim == 2 else "rgb8",
        is_bigendian=0,
        step=image.shape[1] * (1 if image.ndim == 2 else 3),
        data=np.ascontiguousarray(image).reshape(-1),
    )


def camera_info_message(bag: BagWriter, camera: StereoCamera, side: str, stamp: int, frame_id: str) -> Any:
    """sensor_msgs/CameraInfo of one eye of a rectified camera. side: "left" or "right"."""
    P = camera.P_left if side == "left" else camera.P_right
    region = bag.message(
        "sensor_msgs/msg/RegionOfInterest", x_offset=0, y_offset=0, height=0, width=0, do_rectify=False
    )
    return bag.message(
        "sensor_msgs/msg/CameraInfo",
        header=bag.header(stamp, frame_id),
        height=camera.height,
        width=camera.width,
        distortion_model="plumb_bob",
        d=np.zeros(5),
        k=P[:, :3].reshape(9),
        r=np.eye(3).reshape(9),
        p=P.reshape(12),
        binning_x=0,
        binning_y=0,
        roi=region,
    )


def _write_frames(bag: BagWriter, stamp: int, camera: StereoCamera) -> None:
    right = np.eye(4)
    right[0, 3] = camera.baseline
    bag.write_static(stamp, [(BODY_FRAME, LEFT_FRAME, BODY_FROM_OPTICAL), (LEFT_FRAME, RIGHT_FRAME, right)])
