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

"""From estimates to ROS messages. The numbers come from `macvo_ros.odometry.message_fields`; this only fills fields."""

from __future__ import annotations

import array
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
from geometry_msgs.msg import PoseStamped, PoseWithCovarianceStamped, TransformStamped
from nav_msgs.msg import Odometry
from sensor_msgs.msg import Image, PointCloud2, PointField
from std_msgs.msg import Header

from macvo_ros.geometry.se3 import quaternion
from macvo_ros.matching.full_size import at_full_size
from macvo_ros.motion.landmarks import Landmarks
from macvo_ros.odometry.estimate import Estimate
from macvo_ros.odometry.message_fields import (
    CLOUD_DTYPE,
    CLOUD_FIELDS,
    POINT_FIELD_FLOAT32,
    OdometryFields,
    split_stamp,
)

Float64 = npt.NDArray[np.float64]


def header(stamp: int, frame_id: str) -> Header:
    """std_msgs/Header; stamp in nanoseconds."""
    message = Header(frame_id=frame_id)
    message.stamp.sec, message.stamp.nanosec = split_stamp(stamp)
    return message


def fill_pose(message: Any, fields: OdometryFields) -> None:
    """Fill a geometry_msgs/Pose."""
    message.position.x, message.position.y, message.position.z = map(float, fields.position)
    o = message.orientation
    o.x, o.y, o.z, o.w = map(float, fields.orientation)


def odometry_message(fields: OdometryFields, head: Header, base_frame: str) -> Odometry:
    """nav_msgs/Odometry of the base frame in the header's frame."""
    message = Odometry(header=head, child_frame_id=base_frame)
    fill_pose(message.pose.pose, fields)
    message.pose.covariance = fields.pose_covariance
    linear, angular = message.twist.twist.linear, message.twist.twist.angular
    linear.x, linear.y, linear.z = map(float, fields.linear)
    angular.x, angular.y, angular.z = map(float, fields.angular)
    message.twist.covariance = fields.twist_covariance
    return message


def pose_message(fields: OdometryFields, head: Header) -> PoseWithCovarianceStamped:
    """geometry_msgs/PoseWithCovarianceStamped of the base frame."""
    message = PoseWithCovarianceStamped(header=head)
    fill_pose(message.pose.pose, fields)
    message.pose.covariance = fields.pose_covariance
    return message


def path_pose_message(fields: OdometryFields, head: Header) -> PoseStamped:
    """One pose of nav_msgs/Path."""
    message = PoseStamped(header=head)
    fill_pose(message.pose, fields)
    return message


def correct_path_pose(message: PoseStamped, pose: Float64) -> None:
    """Put another (4, 4) pose in place of that of nav_msgs/Path, at the same time."""
    p, q = message.pose.position, message.pose.orientation
    p.x, p.y, p.z = map(float, pose[:3, 3])
    q.x, q.y, q.z, q.w = map(float, quaternion(pose[:3, :3]))


def path_pose_stamp(message: PoseStamped) -> int:
    """Nanoseconds."""
    return int(message.header.stamp.sec) * 1_000_000_000 + int(message.header.stamp.nanosec)


def transform_message(fields: OdometryFields, head: Header, base_frame: str) -> TransformStamped:
    """geometry_msgs/TransformStamped of the base frame in the header's frame."""
    message = TransformStamped(header=head, child_frame_id=base_frame)
    t, r = message.transform.translation, message.transform.rotation
    t.x, t.y, t.z = map(float, fields.position)
    r.x, r.y, r.z, r.w = map(float, fields.orientation)
    return message


def cloud_message(cloud: npt.NDArray[np.void], head: Header) -> PointCloud2:
    """sensor_msgs/PointCloud2 of a structured array of CLOUD_DTYPE."""
    message = PointCloud2(header=head, height=1, width=len(cloud), is_bigendian=False, is_dense=True)
    message.fields = [
        PointField(name=name, offset=4 * i, datatype=POINT_FIELD_FLOAT32, count=1)
        for i, name in enumerate(CLOUD_FIELDS)
    ]
    message.point_step = CLOUD_DTYPE.itemsize
    message.row_step = message.point_step * len(cloud)
    message.data = byte_array(cloud)
    return message


def image_message(image: npt.NDArray[Any], encoding: str, head: Header) -> Image:
    """sensor_msgs/Image of a (H, W) or (H, W, C) array in the given encoding."""
    image = np.ascontiguousarray(image)
    message = Image(header=head, height=image.shape[0], width=image.shape[1], encoding=encoding)
    message.step = image.strides[0]
    message.data = byte_array(image)
    return message


def byte_array(values: npt.NDArray[Any]) -> array.array[int]:
    """The bytes of an array in the one form that every rclpy assigns without a check per byte."""
    data = array.array("B")
    data.frombytes(np.ascontiguousarray(values).tobytes())
    return data


def depth_maps(estimate: Estimate) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]] | None:
    """Depth and its standard deviation, (H, W) float32 metres; inf where the disparity says "behind infinity".

    sigma_z = z^2 / (fx b) sigma_d, first order.
    """
    if estimate.match is None:
        return None
    camera = estimate.frame.camera
    match = at_full_size(estimate.match, camera)
    shift = match.disparity.cpu().numpy() - np.float32(camera.disparity_offset)
    sigma = np.sqrt(match.disparity_var.cpu().numpy())
    with np.errstate(divide="ignore", invalid="ignore"):
        depth = np.where(shift > 0, np.float32(camera.fx * camera.baseline) / shift, np.float32(np.inf))
        depth_sigma = depth * depth / np.float32(camera.fx * camera.baseline) * sigma
    return depth.astype(np.float32), depth_sigma.astype(np.float32)


def flow_sigma_map(estimate: Estimate) -> npt.NDArray[np.float32] | None:
    """Standard deviation of the flow, (H, W) float32 pixels: root of the mean of the variances of both axes."""
    if estimate.match is None or estimate.match.flow_var is None:
        return None
    flow_var = at_full_size(estimate.match, estimate.frame.camera).flow_var
    assert flow_var is not None
    sigma: npt.NDArray[np.float32] = np.sqrt(flow_var.mean(dim=0).cpu().numpy()).astype(np.float32)
    return sigma


def keypoint_image(landmarks: Landmarks | None, left: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """The left image (H, W, 3) RGB with its keypoints: green (certain) to red (uncertain), rejected ones blue.

    left: (H, W) or (H, W, 3) RGB, uint8; it stays as it is.
    """
    image = cv2.cvtColor(left, cv2.COLOR_GRAY2RGB) if left.ndim == 2 else left.copy()
    if landmarks is not None and len(landmarks.pixel):
        sigma = landmarks.match_sigma
        low, high = np.percentile(sigma, [5, 95])
        share = np.clip((sigma - low) / max(high - low, 1e-9), 0, 1)
        for (u, v), s, inlier in zip(landmarks.pixel, share, landmarks.inlier, strict=True):
            colour = (int(255 * s), int(255 * (1 - s)), 0) if inlier else (0, 0, 255)
            cv2.circle(image, (round(u), round(v)), 3, colour, 1, cv2.LINE_AA)
    return np.asarray(image, dtype=np.uint8)
