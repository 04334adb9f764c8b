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

"""Run the odometry for a base frame, record what it says, and show its caller the camera."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from macvo_ros.geometry.se3 import lever_arm
from macvo_ros.images.frame import StereoFrame
from macvo_ros.odometry.estimate import Estimate
from macvo_ros.odometry.pipelined_odometry import PipelinedOdometry
from macvo_ros.odometry.stereo_odometry import StereoOdometry

Float64 = npt.NDArray[np.float64]


class CameraTracker:
    """A tracker for `run_sequence`: evaluation compares cameras, robots want their base.

    odometry: set up with base_from_camera. on_estimate: called with each estimate of the base frame.
    """

    def __init__(self, odometry: StereoOdometry | PipelinedOdometry, on_estimate: Callable[[Estimate], None]) -> None:
        self._odometry = odometry
        self._on_estimate = on_estimate

    def track(self, frame: StereoFrame) -> Estimate | None:
        """The estimate with the pose of the left camera in odom, and its covariance at the camera."""
        return self._seen(self._odometry.track(frame))

    def flush(self) -> Estimate | None:
        """The estimate of a last frame that waits, if the odometry is pipelined."""
        return self._seen(self._odometry.flush())

    def _seen(self, estimate: Estimate | None) -> Estimate | None:
        if estimate is None:
            return None
        self._on_estimate(estimate)
        return camera_estimate(estimate, self._odometry.base_from_camera)


def camera_estimate(estimate: Estimate, base_from_camera: Float64) -> Estimate:
    """`estimate` of the base frame as one of the camera; base_from_camera: (4, 4), metres.

    t_c = t_b + R_b l, so the error is dt_c = dt_b + dtheta x (R_b l): the lever arm turns rotation into translation.
    """
    jacobian = lever_arm(estimate.pose[:3, :3] @ base_from_camera[:3, 3])
    return replace(
        estimate,
        pose=estimate.pose @ base_from_camera,
        covariance=jacobian @ estimate.covariance @ jacobian.T,
        relative_base=estimate.relative,
    )
