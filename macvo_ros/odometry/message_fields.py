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

"""The numbers of our ROS messages, computed once for the live node and for bags written offline.

Plain numpy: nothing here knows rclpy or rosbags, both only copy these fields into their own message classes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from macvo_ros.geometry.se3 import exp_so3, log_so3, quaternion, skew, transform
from macvo_ros.images.frame import Image
from macvo_ros.motion.landmarks import Landmarks
from macvo_ros.odometry.estimate import Estimate
from macvo_ros.odometry.status import Status
from macvo_ros.uncertainty.relative_motion import RelativeMotion
from macvo_ros.uncertainty.trajectory import symmetric_positive

Float64 = npt.NDArray[np.float64]

UNKNOWN_VARIANCE = 1e3
"""Variance of a velocity nobody measured, (m/s)^2 and (rad/s)^2; none larger is published, filters warn above this."""


CLOUD_FIELDS = ("x", "y", "z", "rgb", "cxx", "cxy", "cxz", "cyy", "cyz", "czz", "match_sigma")
"""Fields of `~/keypoints` and `~/map`, each a FLOAT32 (rgb: 0x00rrggbb in the bits of a float, as PCL and RViz do)."""

CLOUD_DTYPE = np.dtype([(name, "<f4") for name in CLOUD_FIELDS])

POINT_FIELD_FLOAT32 = 7
"""sensor_msgs/PointField.FLOAT32."""


@dataclass(frozen=True, eq=False)
class OdometryFields:
    """The fields of nav_msgs/Odometry (and of the pose and transform that repeat them).

    position: (3,) metres and orientation: (4,) quaternion x y z w with w >= 0, of the base frame in odom.
    pose_covariance: (36,) row-major, x y z and fixed-axis rotation about x y z of odom.
    linear, angular: (3,) m/s and rad/s in the axes of the base frame.
    twist_covariance: (36,) row-major, same axes.
    """

    position: Float64
    orientation: Float64
    pose_covariance: Float64
    linear: Float64
    angular: Float64
    twist_covariance: Float64


def is_published(status: Status) -> bool:
    """Whether a frame gets odometry: a lost one is silence, since no consumer understands "lost" in a pose."""
    return status is not Status.LOST


def odometry_fields(estimate: Estimate) -> OdometryFields:
    """Pose and twist of the base frame as nav_msgs/Odometry defines them.

    The twist is Log(dT) / dt, the constant body velocity that makes the motion of the last frame interval. Its
    covariance is that motion's, S / dt^2, brought to the axes of the current base frame (`twist_covariance`). Of what
    nobody measured, all of it at the first frame, the velocity is 0 +- sqrt(UNKNOWN_VARIANCE) (`measured_velocity`).
    """
    velocity, velocity_covariance = np.zeros(6), UNKNOWN_VARIANCE * np.eye(6)
    relative = estimate.relative_base
    if relative is not None and estimate.elapsed > 0:
        velocity = np.concatenate(twist(relative.motion, estimate.elapsed))
        velocity, velocity_covariance = measured_velocity(velocity, twist_covariance(relative, estimate.elapsed))
    return OdometryFields(
        position=estimate.pose[:3, 3].copy(),
        orientation=quaternion(estimate.pose[:3, :3]),
        pose_covariance=message_covariance(estimate.covariance),
        linear=velocity[:3],
        angular=velocity[3:],
        twist_covariance=message_covariance(velocity_covariance),
    )


def measured_velocity(velocity: Float64, covariance: Float64) -> tuple[Float64, Float64]:
    """A velocity (6,) and its covariance (6, 6) without what is less certain than UNKNOWN_VARIANCE.

    Along each principal axis of the covariance with a larger variance (after a doubted motion, or from two stamps
    hardly apart) nobody measured anything: the velocity there is 0 and its variance UNKNOWN_VARIANCE.
    """
    values, axes = np.linalg.eigh(0.5 * (covariance + covariance.T))
    if values[-1] <= UNKNOWN_VARIANCE:
        return velocity, covariance
    known = values < UNKNOWN_VARIANCE
    # A little below the limit, which rounding must not bring a variance above.
    kept = (axes * np.where(known, values, (1 - 1e-9) * UNKNOWN_VARIANCE)) @ axes.T
    return (axes * known) @ axes.T @ velocity, kept


def message_covariance(covariance: Float64) -> Float64:
    """(6, 6) to the (36,) row-major field: exactly symmetric, and positive definite down to MINIMUM_VARIANCE."""
    flat: Float64 = symmetric_positive(covariance).reshape(36)
    return flat


def twist(motion: Float64, elapsed: float) -> tuple[Float64, Float64]:
    """Constant body velocity (linear m/s, angular rad/s) that makes `motion` (4, 4) in `elapsed` seconds: Log / dt."""
    phi, translation = log_so3(motion[:3, :3]), motion[:3, 3]
    angle = float(np.linalg.norm(phi))
    half = 0.5 * angle
    curvature = 1 / 12 if angle < 1e-4 else (1 - half / np.tan(half)) / angle**2
    hat = skew(phi)
    rho = translation - 0.5 * hat @ translation + curvature * hat @ hat @ translation
    return rho / elapsed, phi / elapsed


def twist_covariance(relative: RelativeMotion, elapsed: float) -> Float64:
    """(6, 6) covariance of `twist`, (m/s)^2 and (rad/s)^2, axes of the current frame: J A S A^T J^T / dt^2.

    A = blockdiag(dR^T, dR^T) turns the error of the motion into the current axes; J is the inverse right Jacobian of
    SE(3) at xi = Log(dT), I + ad/2 + ad^2/12 - ad^4/720 + ad^6/30240 (Bernoulli series, exact to 1 % at half a turn).
    J matters: half the distance travelled times the error of the rotation is an error of the linear velocity.
    """
    to_twist = _twist_jacobian(relative.motion, elapsed)
    covariance: Float64 = to_twist @ relative.covariance @ to_twist.T
    return covariance


def motion_of_twist(linear: Float64, angular: Float64, covariance: Float64, elapsed: float) -> RelativeMotion:
    """The motion of the last `elapsed` seconds that a published twist and its (6, 6) covariance stand for."""
    rho, phi = linear * elapsed, angular * elapsed
    angle = float(np.linalg.norm(phi))
    hat = skew(phi)
    a = 0.5 if angle < 1e-4 else (1 - np.cos(angle)) / angle**2
    b = 1 / 6 if angle < 1e-4 else (angle - np.sin(angle)) / angle**3
    motion = transform(exp_so3(phi), rho + a * hat @ rho + b * hat @ hat @ rho)
    from_twist = np.linalg.inv(_twist_jacobian(motion, elapsed))
    return RelativeMotion(motion, from_twist @ covariance @ from_twist.T)


def _twist_jacobian(motion: Float64, elapsed: float) -> Float64:
    """(6, 6) from the error of a motion (earlier axes) to that of the twist (current axes): J A / dt."""
    rho, phi = twist(motion, 1.0)
    ad = np.zeros((6, 6))
    ad[:3, :3] = ad[3:, 3:] = skew(phi)
    ad[:3, 3:] = skew(rho)
    squared = ad @ ad
    fourth = squared @ squared
    jacobian = np.eye(6) + ad / 2 + squared / 12 - fourth / 720 + fourth @ squared / 30240
    axes = np.zeros((6, 6))
    axes[:3, :3] = axes[3:, 3:] = motion[:3, :3].T
    return np.asarray(jacobian @ axes / elapsed)


def status_fields(estimate: Estimate) -> dict[str, int | float | str]:
    """The fields of msg/Status that follow from the estimate alone; counters and latencies are the node's."""
    fields: dict[str, int | float | str] = {
        "state": int(estimate.status),
        "reason": estimate.reason,
        "keypoints": 0,
        "inliers": 0,
        "median_match_sigma": float("nan"),
        "median_point_sigma": float("nan"),
        "chi2": float(estimate.chi2),
        "position_sigma": _largest_sigma(estimate.covariance[:3, :3]),
        "rotation_sigma": _largest_sigma(estimate.covariance[3:, 3:]),
        "core_time": float(estimate.timings.get("total", 0.0)),
    }
    for stage in ("match", "select", "covariance", "pose"):
        fields[f"{stage}_time"] = float(estimate.timings.get(stage, 0.0))
    if estimate.landmarks is not None:
        inlier = estimate.landmarks.inlier
        fields["keypoints"], fields["inliers"] = len(inlier), int(np.count_nonzero(inlier))
        if inlier.any():
            fields["median_match_sigma"] = float(np.median(estimate.landmarks.match_sigma[inlier]))
            variances = np.linalg.eigvalsh(estimate.landmarks.covariance[inlier])[:, 2]
            fields["median_point_sigma"] = float(np.median(np.sqrt(np.maximum(variances, 0))))
    return fields


def _largest_sigma(covariance: Float64) -> float:
    """Root of the largest eigenvalue."""
    return float(np.sqrt(max(np.linalg.eigvalsh(covariance)[-1], 0.0)))


def split_stamp(stamp: int) -> tuple[int, int]:
    """Nanoseconds to the (sec, nanosec) of builtin_interfaces/Time."""
    return divmod(int(stamp), 1_000_000_000)


def join_stamp(sec: int, nanosec: int) -> int:
    """The (sec, nanosec) of builtin_interfaces/Time to nanoseconds."""
    return int(sec) * 1_000_000_000 + int(nanosec)


def keypoint_cloud(landmarks: Landmarks | None, left: Image) -> npt.NDArray[np.void]:
    """The inlier keypoints of a frame as a structured array of CLOUD_DTYPE, ready to be PointCloud2 data.

    left: (H, W) or (H, W, 3) current left image, uint8, for the colours. Points are in the left optical frame.
    """
    if landmarks is None:
        return np.zeros(0, CLOUD_DTYPE)
    keep = landmarks.inlier
    cloud = np.zeros(int(keep.sum()), CLOUD_DTYPE)
    _write_points(cloud, landmarks.point[keep], landmarks.covariance[keep])
    cloud["match_sigma"] = landmarks.match_sigma[keep]
    column, row = np.rint(landmarks.pixel[keep]).astype(np.intp).T
    colour = left[np.clip(row, 0, left.shape[0] - 1), np.clip(column, 0, left.shape[1] - 1)].astype(np.uint32)
    red, green, blue = (colour, colour, colour) if colour.ndim == 1 else colour.T
    cloud["rgb"] = (red << 16 | green << 8 | blue).astype(np.uint32).view(np.float32)
    return cloud


def transform_cloud(cloud: npt.NDArray[np.void], transform: Float64) -> npt.NDArray[np.void]:
    """A copy of `cloud` in other axes: p -> R p + t, C -> R C R^T. transform: (4, 4), metres."""
    rotation = transform[:3, :3]
    covariance = rotation @ cloud_covariance(cloud) @ rotation.T
    moved: npt.NDArray[np.void] = cloud.copy()
    _write_points(moved, cloud_points(cloud) @ rotation.T + transform[:3, 3], covariance)
    return moved


def cloud_points(cloud: npt.NDArray[np.void]) -> Float64:
    """(N, 3) points of a cloud, metres."""
    return np.stack([cloud[name] for name in ("x", "y", "z")], axis=1).astype(np.float64)


def cloud_covariance(cloud: npt.NDArray[np.void]) -> Float64:
    """(N, 3, 3) covariances of a cloud, metres^2."""
    order = ("cxx", "cxy", "cxz", "cxy", "cyy", "cyz", "cxz", "cyz", "czz")
    return np.stack([cloud[name] for name in order], axis=1).astype(np.float64).reshape(-1, 3, 3)


def _write_points(cloud: npt.NDArray[np.void], point: Float64, covariance: Float64) -> None:
    cloud["x"], cloud["y"], cloud["z"] = point.T
    for name, row, column in (("cxx", 0, 0), ("cxy", 0, 1), ("cxz", 0, 2), ("cyy", 1, 1), ("cyz", 1, 2), ("czz", 2, 2)):
        cloud[name] = covariance[:, row, column]
