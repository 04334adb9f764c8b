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

"""The real node in a process of its own, fed over DDS like a camera would, its answers taken as estimates.

`LiveOdometry.track` publishes a stereo pair under the topic names of a ZED (bgra8), waits for what the node publishes
about it and builds the `Estimate` from those messages alone, so everything that evaluates the core evaluates the node.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import torch

from macvo_ros.errors import MacvoError
from macvo_ros.geometry.se3 import rotation_from_quaternion, transform
from macvo_ros.images.frame import Image, StereoFrame
from macvo_ros.matching.matcher import FlowMatch, Match, StereoMatch
from macvo_ros.motion.landmarks import Landmarks
from macvo_ros.odometry.estimate import Estimate
from macvo_ros.odometry.message_fields import CLOUD_DTYPE, motion_of_twist, split_stamp
from macvo_ros.odometry.status import Status
from macvo_ros.settings.config import Config
from macvo_ros.settings.declaration import to_flat

_CAMERA = "/zed/zed_node"
_FRAME = "zed_left_camera_frame_optical"
_START_TIMEOUT, _ANSWER_TIMEOUT = 60.0, 60.0
_REPEAT = 3.0
"""Seconds after which an unanswered pair is published once more (some are lost while endpoints connect)."""


class LiveOdometry:
    """A tracker for `evaluation.runner.run_sequence`; use it as a context, it ends the node."""

    def __init__(self, config: Config, log: Path, domain: int = 77) -> None:
        """config: of the core, passed on as parameters. log: file for the node's output. domain: ROS_DOMAIN_ID."""
        self._log = log
        self._environment = dds_environment(domain)
        words = ["-p", "camera_at_base:=true", "-p", "reliability:=reliable"]
        for side in ("left", "right"):
            for ours, theirs in (("image_rect", "image"), ("camera_info", "camera_info")):
                words += ["-r", f"{side}/{ours}:={_CAMERA}/{side}/color/rect/{theirs}"]
        default = to_flat(Config())
        for key, value in to_flat(config).items():
            if value != default[key]:
                words += ["-p", f"{key}:={str(value).lower() if isinstance(value, bool) else value}"]
        self._words = words
        self._received: dict[str, dict[int, Any]] = {}
        self._last_stamp = 0
        self._place = (np.eye(4), np.eye(6))

    def __enter__(self) -> LiveOdometry:
        import rclpy
        from rclpy.executors import SingleThreadedExecutor

        os.environ.update(self._environment)
        start = "from macvo_ros.ros.main import main; raise SystemExit(main())"
        with self._log.open("w") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-c", start, "--ros-args", *self._words], stdout=output, stderr=subprocess.STDOUT
            )
        rclpy.init()
        self._node = rclpy.create_node("camera", namespace="/zed")
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(self._node)
        try:
            self._connect()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        import rclpy

        self._node.destroy_node()
        rclpy.try_shutdown()
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(20.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def track(self, frame: StereoFrame) -> Estimate:
        """Publish a pair and wait for the node's word on it."""
        self._publish(frame)
        published = started = time.monotonic()
        while frame.stamp not in self._received["status"]:
            self._spin()
            if time.monotonic() - published > _REPEAT:
                self._publish(frame)
                published = time.monotonic()
            if time.monotonic() - started > _ANSWER_TIMEOUT:
                raise MacvoError(f"the node did not answer a stereo pair for {_ANSWER_TIMEOUT:.0f} s; see {self._log}")
        lost = self._received["status"][frame.stamp].state == int(Status.LOST)
        wanted = [] if lost else ["odometry"]
        with contextlib.suppress(TimeoutError):
            self._until(lambda: all(frame.stamp in self._received[name] for name in wanted), "odometry", _REPEAT)
        self._until_quiet(frame.stamp)
        estimate = self._estimate(frame)
        self._last_stamp = frame.stamp
        for inbox in self._received.values():
            inbox.clear()
        return estimate

    def flush(self) -> Estimate | None:
        """Nothing waits: every pair was answered."""
        return None

    def _connect(self) -> None:
        from nav_msgs.msg import Odometry
        from sensor_msgs.msg import CameraInfo, PointCloud2
        from sensor_msgs.msg import Image as ImageMessage

        from macvo_ros.msg import Status as StatusMessage

        self._images = [
            self._node.create_publisher(ImageMessage, f"{_CAMERA}/{side}/color/rect/image", 10)
            for side in ("left", "right")
        ]
        self._infos = [
            self._node.create_publisher(CameraInfo, f"{_CAMERA}/{side}/color/rect/camera_info", 10)
            for side in ("left", "right")
        ]
        topics: list[tuple[str, Any, Any]] = [("odometry", Odometry, 10), ("status", StatusMessage, 10)]
        topics += [("keypoints", PointCloud2, 10)]
        topics += [(name, ImageMessage, 10) for name in ("depth", "depth_sigma", "flow_sigma")]
        for name, kind, qos in topics:
            inbox = self._received[name] = {}
            self._node.create_subscription(
                kind, f"/macvo/{name}", lambda message, inbox=inbox: inbox.__setitem__(_stamp(message), message), qos
            )
        self._until(
            lambda: (
                all(p.get_subscription_count() for p in [*self._images, *self._infos])
                and self._node.count_publishers("/macvo/odometry")
            ),
            "the node to start",
            _START_TIMEOUT,
        )

    def _publish(self, frame: StereoFrame) -> None:
        from sensor_msgs.msg import CameraInfo

        from macvo_ros.ros.messages import image_message

        head = _header(frame.stamp)
        for publisher, image in zip(self._images, (frame.left, frame.right), strict=True):
            publisher.publish(image_message(_bgra(image), "bgra8", head))
        camera = frame.camera
        for publisher, projection in zip(self._infos, (camera.P_left, camera.P_right), strict=True):
            message = CameraInfo(header=head, height=camera.height, width=camera.width, distortion_model="plumb_bob")
            message.d = [0.0] * 5
            message.k, message.r, message.p = projection[:, :3].ravel(), np.eye(3).ravel(), projection.ravel()
            publisher.publish(message)

    def _estimate(self, frame: StereoFrame) -> Estimate:
        status = self._received["status"][frame.stamp]
        odometry = self._received["odometry"].get(frame.stamp)
        elapsed = (frame.stamp - self._last_stamp) * 1e-9 if self._last_stamp else 0.0
        relative = None
        if odometry is not None:
            pose, twist = odometry.pose, odometry.twist
            q, t = pose.pose.orientation, pose.pose.position
            matrix = transform(rotation_from_quaternion(np.array([q.x, q.y, q.z, q.w])), np.array([t.x, t.y, t.z]))
            self._place = (matrix, np.array(pose.covariance).reshape(6, 6))
            if elapsed > 0:
                linear, angular = (np.array([v.x, v.y, v.z]) for v in (twist.twist.linear, twist.twist.angular))
                relative = motion_of_twist(linear, angular, np.array(twist.covariance).reshape(6, 6), elapsed)
        return Estimate(
            frame,
            Status(status.state),
            *self._place,
            reason=status.reason,
            relative=relative,
            relative_base=relative,
            elapsed=elapsed,
            landmarks=self._landmarks(frame, int(status.inliers)),
            chi2=status.chi2,
            match=self._match(frame),
            timings={stage: getattr(status, f"{stage}_time") for stage in ("match", "select", "covariance", "pose")}
            | {"total": status.core_time},
        )

    def _landmarks(self, frame: StereoFrame, inliers: int) -> Landmarks | None:
        cloud = self._received["keypoints"].get(frame.stamp)
        if cloud is None:
            return None
        rows = np.frombuffer(cloud.data, CLOUD_DTYPE)
        point = np.column_stack([rows[name] for name in "xyz"]).astype(np.float64)
        order = ("cxx", "cxy", "cxz", "cxy", "cyy", "cyz", "cxz", "cyz", "czz")
        covariance = np.column_stack([rows[name] for name in order]).reshape(-1, 3, 3).astype(np.float64)
        image = point @ frame.camera.K.T
        inlier = np.arange(len(rows)) < (inliers or len(rows))
        return Landmarks(
            pixel=image[:, :2] / image[:, 2:],
            point=point,
            covariance=covariance,
            match_sigma=rows["match_sigma"].astype(np.float64),
            weight=np.ones(len(rows)),
            inlier=inlier,
        )

    def _match(self, frame: StereoFrame) -> Match | None:
        maps = [self._received[name].get(frame.stamp) for name in ("depth", "depth_sigma", "flow_sigma")]
        if any(message is None for message in maps):
            return None
        depth, depth_sigma, flow_sigma = (
            np.frombuffer(message.data, np.float32).reshape(message.height, message.width)  # type: ignore[union-attr]
            for message in maps
        )
        disparity = frame.camera.fx * frame.camera.baseline / np.maximum(depth, 1e-3)
        known = np.isfinite(depth) & np.isfinite(depth_sigma)
        sigma = np.where(known, np.where(known, depth_sigma, 0.0) * disparity / np.maximum(depth, 1e-3), 1e3)
        variance = torch.from_numpy(np.square(flow_sigma))
        stereo = StereoMatch(
            torch.from_numpy((disparity + frame.camera.disparity_offset).astype(np.float32)),
            torch.from_numpy(np.square(sigma).astype(np.float32)),
        )
        return Match(stereo, FlowMatch(torch.zeros((2, *depth.shape)), torch.stack((variance, variance))))

    def _until(self, condition: Any, what: str, timeout: float) -> None:
        end = time.monotonic() + timeout
        while not condition():
            if self._process.poll() is not None:
                raise MacvoError(f"the node ended while the demo waited for {what}: {_tail(self._log)}")
            if time.monotonic() > end:
                raise (
                    TimeoutError(what)
                    if timeout <= _REPEAT
                    else MacvoError(f"waited in vain for {what}; see {self._log}")
                )
            self._spin()

    def _until_quiet(self, stamp: int) -> None:
        """The clouds and images of a pair come within moments of its status, or not at all."""
        with contextlib.suppress(TimeoutError):
            self._until(lambda: all(stamp in inbox for inbox in self._received.values()), "images", 0.3)

    def _spin(self) -> None:
        self._executor.spin_once(timeout_sec=0.02)


def dds_environment(domain: int) -> dict[str, str]:
    """Loopback, a domain of its own, and the DDS profile that lets large images through."""
    found = {"ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST", "ROS_DOMAIN_ID": str(domain)}
    profile = Path(__file__).resolve().parents[2] / "config" / "fastdds.xml"
    if profile.is_file():
        found |= dict.fromkeys(("FASTRTPS_DEFAULT_PROFILES_FILE", "FASTDDS_DEFAULT_PROFILES_FILE"), str(profile))
    return found


def _bgra(image: Image) -> npt.NDArray[np.uint8]:
    code = cv2.COLOR_GRAY2BGRA if image.ndim == 2 else cv2.COLOR_RGB2BGRA
    return np.asarray(cv2.cvtColor(image, code), dtype=np.uint8)


def _header(stamp: int) -> Any:
    from std_msgs.msg import Header

    head = Header(frame_id=_FRAME)
    head.stamp.sec, head.stamp.nanosec = split_stamp(stamp)
    return head


def _stamp(message: Any) -> int:
    return int(message.header.stamp.sec) * 1_000_000_000 + int(message.header.stamp.nanosec)


def _tail(log: Path) -> str:
    lines = log.read_text(errors="replace").split("\n")
    return " / ".join(line for line in lines if line.strip())[-400:]
