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

"""A small constant-velocity EKF that fuses body twists: what robot_localization does with our odometry, in 60 lines."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from macvo_ros.geometry.se3 import exp_so3, skew

Float64 = npt.NDArray[np.float64]
Twist = tuple[Float64, Float64]  # (6,) linear and angular, body axes; (6, 6) covariance


class VelocityFilter:
    """State: position and rotation in odom, linear and angular velocity in the body.

    Errors: position in odom axes, rotation on the right (body axes), velocities; velocities wander as white-noise
    acceleration with variances linear_noise (m/s)^2/s and angular_noise (rad/s)^2/s.
    """

    def __init__(self, linear_noise: float, angular_noise: float, velocity_variance: float = 1.0) -> None:
        self.position, self.rotation, self.velocity = np.zeros(3), np.eye(3), np.zeros(6)
        self.covariance = np.diag([1e-9] * 6 + [velocity_variance] * 6)
        self._noise = linear_noise, angular_noise

    def predict(self, dt: float) -> None:
        """Move on by dt seconds at the velocity we have."""
        linear, angular = self.velocity[:3], self.velocity[3:]
        middle = self.rotation @ exp_so3(angular * dt / 2)
        F = np.eye(12)
        F[:3, 3:6], F[:3, 6:9] = -self.rotation @ skew(linear) * dt, middle * dt
        F[3:6, 3:6], F[3:6, 9:] = exp_so3(-angular * dt), np.eye(3) * dt
        Q = np.zeros((12, 12))
        for place, speed, turn, q in ((0, 6, middle, self._noise[0]), (3, 9, np.eye(3), self._noise[1])):
            Q[place : place + 3, place : place + 3] = q * dt**3 / 3 * np.eye(3)
            Q[place : place + 3, speed : speed + 3] = q * dt**2 / 2 * turn
            Q[speed : speed + 3, place : place + 3] = q * dt**2 / 2 * turn.T
            Q[speed : speed + 3, speed : speed + 3] = q * dt * np.eye(3)
        self.position = self.position + middle @ linear * dt
        self.rotation = self.rotation @ exp_so3(angular * dt)
        self.covariance = F @ self.covariance @ F.T + Q

    def fuse(self, twist: Twist) -> None:
        """Correct by a measured twist."""
        measured, noise = twist
        gain = self.covariance[:, 6:] @ np.linalg.inv(self.covariance[6:, 6:] + noise)
        step = gain @ (measured - self.velocity)
        self.position = self.position + step[:3]
        self.rotation = self.rotation @ exp_so3(step[3:6])
        self.velocity = self.velocity + step[6:]
        rest = np.eye(12)
        rest[:, 6:] -= gain
        self.covariance = rest @ self.covariance @ rest.T + gain @ noise @ gain.T

    @property
    def pose(self) -> Float64:
        """(4, 4) pose of the body in odom."""
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = self.rotation, self.position
        return pose
