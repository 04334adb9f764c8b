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

"""~/reset, ~/reset_to_pose, ~/pause, ~/resume, ~/save_trajectory and ~/save_calibration."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from rclpy.lifecycle import LifecycleNode
from std_srvs.srv import Trigger

from macvo_ros.errors import MacvoError
from macvo_ros.geometry.se3 import rotation_from_quaternion, transform
from macvo_ros.ros.parameters import NodeConfig
from macvo_ros.ros.trajectory_log import TrajectoryLog
from macvo_ros.uncertainty.learned_calibration import LearnedCalibration

Float64 = npt.NDArray[np.float64]


class Controls(Protocol):
    """What the services act on."""

    trajectory: TrajectoryLog

    @property
    def learned(self) -> LearnedCalibration | None: ...

    def reset(self, pose: Float64 | None, covariance: Float64 | None) -> None: ...

    def set_paused(self, paused: bool) -> str: ...


class Services:
    """The services of a configured node. None of them waits for the worker."""

    def __init__(self, node: LifecycleNode, config: NodeConfig, controls: Controls) -> None:
        from macvo_ros.srv import ResetToPose, SaveCalibration, SaveTrajectory  # generated: only there after a build

        self._node, self._config, self._controls = node, config, controls
        self._services = [
            node.create_service(Trigger, "~/reset", self._reset),
            node.create_service(ResetToPose, "~/reset_to_pose", self._reset_to_pose),
            node.create_service(Trigger, "~/pause", self._pause),
            node.create_service(Trigger, "~/resume", self._resume),
            node.create_service(SaveTrajectory, "~/save_trajectory", self._save_trajectory),
            node.create_service(SaveCalibration, "~/save_calibration", self._save_calibration),
        ]

    def destroy(self) -> None:
        """Take the services off the graph."""
        for service in self._services:
            self._node.destroy_service(service)
        self._services.clear()

    def _reset(self, request: Any, response: Any) -> Any:
        self._controls.reset(None, None)
        response.success, response.message = True, "the next pair starts at the origin"
        return response

    def _reset_to_pose(self, request: Any, response: Any) -> Any:
        try:
            pose, covariance = pose_and_covariance(request.pose, self._config.odom_frame)
        except MacvoError as error:
            response.success, response.message = False, str(error)
            return response
        self._controls.reset(pose, covariance)
        response.success, response.message = True, "the next pair starts at the given pose"
        return response

    def _pause(self, request: Any, response: Any) -> Any:
        response.success, response.message = True, self._controls.set_paused(True)
        return response

    def _resume(self, request: Any, response: Any) -> Any:
        response.success, response.message = True, self._controls.set_paused(False)
        return response

    def _save_trajectory(self, request: Any, response: Any) -> Any:
        try:
            response.poses, response.message = self._controls.trajectory.save(request.path)
            response.success = True
        except MacvoError as error:
            response.success, response.message = False, str(error)
        return response

    def _save_calibration(self, request: Any, response: Any) -> Any:
        try:
            response.message, response.success = self._saved_calibration(request.folder), True
        except MacvoError as error:
            response.success, response.message = False, str(error)
        return response

    def _saved_calibration(self, folder: str) -> str:
        if not folder.strip():
            raise MacvoError("no folder given; say where to write, for example folder: my_camera")
        learned = self._controls.learned
        if learned is None:
            raise MacvoError("nothing was learned of the calibration: track some frames first")
        return learned.save(Path(folder).expanduser())


def pose_and_covariance(message: Any, odom_frame: str) -> tuple[Float64, Float64]:
    """(4, 4) pose and (6, 6) covariance of a geometry_msgs/PoseWithCovarianceStamped, checked."""
    frame = message.header.frame_id
    if frame and frame.removeprefix("/") != odom_frame.removeprefix("/"):
        raise MacvoError(f"the pose is in frame {frame!r}; expected {odom_frame!r}, or an empty frame_id")
    p, o = message.pose.pose.position, message.pose.pose.orientation
    position, orientation = np.array([p.x, p.y, p.z]), np.array([o.x, o.y, o.z, o.w])
    covariance = np.array(message.pose.covariance, dtype=np.float64).reshape(6, 6)
    if not (np.isfinite(position).all() and np.isfinite(orientation).all() and np.isfinite(covariance).all()):
        raise MacvoError("the pose or its covariance has numbers that are not finite")
    if abs(np.linalg.norm(orientation) - 1.0) > 1e-2:
        raise MacvoError(
            f"the orientation is no unit quaternion (its length is {np.linalg.norm(orientation):.3g}); for no rotation "
            "give w: 1.0"
        )
    if np.abs(covariance - covariance.T).max() > 1e-6 * max(1.0, np.abs(covariance).max()):
        raise MacvoError("the covariance is not symmetric")
    if np.linalg.eigvalsh(covariance)[0] < -1e-9 * max(1.0, np.abs(covariance).max()):
        raise MacvoError("the covariance is not positive: it has a negative eigenvalue")
    return transform(rotation_from_quaternion(orientation), position), covariance
