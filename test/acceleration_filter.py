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

"""The model of robot_localization's ekf_node: fifteen states, roll, pitch and yaw, acceleration held constant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import yaml

Float64 = npt.NDArray[np.float64]

POSITION, ANGLES, VELOCITY, RATES, ACCELERATION = (slice(start, start + 3) for start in range(0, 15, 3))
EKF = Path(__file__).parents[1] / "config" / "ekf.yaml"
SMALLEST_VARIANCE = 1e-9
"""Smaller ones of measurements are raised to this, as ekf_node does."""


class AccelerationFilter:
    """An extended Kalman filter over the state of ekf_node, in its order.

    x y z (metres) and roll pitch yaw (radians) in odom; velocities, rates and accelerations in the axes of the body.
    """

    def __init__(self, initial_covariance: Float64, process_noise: Float64) -> None:
        """initial_covariance: (15, 15). process_noise: (15, 15), growth of the covariance per second."""
        self.state, self.covariance, self._noise = np.zeros(15), initial_covariance.copy(), process_noise

    def predict(self, dt: float) -> None:
        """Move on by dt seconds."""
        step = 1e-6
        around = self.state + step * np.concatenate([np.eye(15), -np.eye(15)])
        moved = _move(around, dt)
        jacobian = (moved[:15] - moved[15:]).T / (2 * step)
        self.state = _move(self.state[None], dt)[0]
        self.covariance = jacobian @ self.covariance @ jacobian.T + dt * self._noise

    def correct(self, fused: npt.NDArray[np.bool_], measured: Float64, covariance: Float64) -> None:
        """Correct by the entries `fused` (15,) of a measured state (15,) with its covariance (15, 15)."""
        index = np.flatnonzero(fused)
        noise = covariance[np.ix_(index, index)].copy()
        np.fill_diagonal(noise, np.maximum(np.diag(noise), SMALLEST_VARIANCE))
        gain = self.covariance[:, index] @ np.linalg.inv(self.covariance[np.ix_(index, index)] + noise)
        off = (measured - self.state)[index]
        turned = np.isin(index, np.arange(15)[ANGLES])
        off[turned] = np.remainder(off[turned] + np.pi, 2 * np.pi) - np.pi
        self.state = self.state + gain @ off
        rest = np.eye(15)
        rest[:, index] -= gain
        self.covariance = rest @ self.covariance @ rest.T + gain @ noise @ gain.T


def ekf_parameters() -> dict[str, Any]:
    """What config/ekf.yaml tells ekf_node."""
    (content,) = yaml.safe_load(EKF.read_text()).values()
    return dict(content["ros__parameters"])


def shipped_filter(acceleration: tuple[float, float] | None = None) -> AccelerationFilter:
    """A filter with config/ekf.yaml; acceleration: process noise and initial variance to use instead."""
    parameters = ekf_parameters()
    noise, initial = (
        np.reshape(parameters[name], (15, 15)).copy()
        for name in ("process_noise_covariance", "initial_estimate_covariance")
    )
    if acceleration is not None:
        noise[ACCELERATION, ACCELERATION], initial[ACCELERATION, ACCELERATION] = (v * np.eye(3) for v in acceleration)
    return AccelerationFilter(initial, noise)


def rotation(angles: Float64) -> Float64:
    """(N, 3, 3) rotations of (N, 3) roll, pitch, yaw: about z by yaw, then y by pitch, then x by roll."""
    (sr, sp, sy), (cr, cp, cy) = np.sin(angles).T, np.cos(angles).T
    rows = [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr]
    rows += [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr, -sp, cp * sr, cp * cr]
    return np.stack(rows, axis=1).reshape(-1, 3, 3)


def angles_of(matrix: Float64) -> Float64:
    """(3,) roll, pitch, yaw of a rotation (3, 3)."""
    roll, yaw = np.arctan2(matrix[2, 1], matrix[2, 2]), np.arctan2(matrix[1, 0], matrix[0, 0])
    return np.array([roll, np.arcsin(-np.clip(matrix[2, 0], -1, 1)), yaw])


def _move(states: Float64, dt: float) -> Float64:
    """(N, 15) states after dt seconds."""
    angles, rates = states[:, ANGLES], states[:, RATES]
    (sr, _, _), (cr, cp, _), tp = np.sin(angles).T, np.cos(angles).T, np.tan(angles[:, 1])
    turning = rates[:, 1] * sr + rates[:, 2] * cr
    change = np.stack([rates[:, 0] + turning * tp, rates[:, 1] * cr - rates[:, 2] * sr, turning / cp], axis=1)
    way = states[:, VELOCITY] * dt + states[:, ACCELERATION] * (dt**2 / 2)
    moved = states.copy()
    moved[:, POSITION] += np.einsum("nij,nj->ni", rotation(angles), way)
    moved[:, ANGLES] += change * dt
    moved[:, VELOCITY] += states[:, ACCELERATION] * dt
    return moved
