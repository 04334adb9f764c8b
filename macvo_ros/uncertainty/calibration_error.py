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

"""What an imperfect calibration does to the motion: errors that never average out.

However good the matches, lens model and rectification are off by a smooth field of some hundredths to tenths of a
pixel. It is the same in every frame, so it pushes every motion alike. We model it as three unknown smooth fields over
the image (horizontal and vertical of the left camera, horizontal of the right one), each a bilinear surface over a
coarse grid of knots c with covariance  var/2 exp(-|x - y| / length)  between knots:

    disparity error at x  =  left_u(x) - right_u(x)            flow error at x  =  left(x + flow) - left(x)

The motion's error is then X c with X = sum_i gain_i s_i h(x_i)^T, and the pose's sensitivity is chained with the poses
themselves (`trajectory.py`), so that errors which keep their sign add up as they do in reality: linearly. The fields
are not estimated, only considered (a Schmidt-Kalman filter does the same with a bias).

Their variance is *measured*: the vertical component of a stereo match, which a perfect rectification would leave at
zero, smoothed over the image (`matching/epipolar_error.py`). What moves matches along rows alone it cannot show: the
figure is a lower bound.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from macvo_ros.geometry.camera import StereoCamera

Float64 = npt.NDArray[np.float64]

_KNOTS = (8, 6)
"""Knots of the grid along u and v."""
LENGTH = 0.25
"""Distance over which calibration errors stay alike, in image widths."""
FIELDS = 3


@dataclass(frozen=True, eq=False)
class CalibrationField:
    """The grid of knots for one camera; `covariance` is that of all knots of all fields for unit variance."""

    camera: StereoCamera
    covariance: Float64

    @staticmethod
    def of(camera: StereoCamera) -> CalibrationField:
        """The grid over this camera's image."""
        u, v = (np.linspace(0, size - 1, n) for size, n in zip((camera.width, camera.height), _KNOTS, strict=True))
        knots = np.stack(np.meshgrid(u, v), axis=-1).reshape(-1, 2)
        distance = np.linalg.norm(knots[:, None] - knots[None], axis=-1)
        one = 0.5 * np.exp(-distance / (LENGTH * camera.width))
        return CalibrationField(camera, np.kron(np.eye(FIELDS), one))

    def weights(self, pixel: Float64) -> Float64:
        """(N, K) bilinear weights of the knots at (N, 2) pixels; outside the image, those of its edge."""
        axes = []
        for axis, (size, count) in enumerate(zip((self.camera.width, self.camera.height), _KNOTS, strict=True)):
            position = np.clip(pixel[:, axis] / max(size - 1, 1), 0.0, 1.0) * (count - 1)
            axes.append(np.maximum(0.0, 1.0 - np.abs(position[:, None] - np.arange(count))))
        return np.asarray((axes[1][:, :, None] * axes[0][:, None, :]).reshape(len(pixel), -1))

    def sensitivity(
        self,
        reference_disparity: Float64,
        current_disparity: Float64,
        flow: tuple[Float64, Float64],
        pixel: Float64,
        matched: Float64,
    ) -> Float64:
        """(6, 3 K) motion error per pixel of error at each knot of left_u, left_v, right_u.

        reference_disparity, current_disparity, flow: (6, N) motion error per pixel of error of each point's
        disparity in the reference and the current frame, and of its flow along u and v; pixel, matched: (N, 2) in
        the reference and the current image.
        """
        before, after = self.weights(pixel), self.weights(matched)
        disparity = reference_disparity @ before + current_disparity @ after
        change = after - before
        return np.hstack((disparity + flow[0] @ change, flow[1] @ change, -disparity))


@dataclass(frozen=True, eq=False)
class CalibrationConstants:
    """Covariance of the constants that motions are sensitive to: of the fields' knots, and of what is learned.

    variance: pixels^2, of the fields; unit: (3 K, 3 K) `CalibrationField.covariance`. learned: (C, C) covariance of the
    errors of the calibration that are learned (`online_calibration.py`).
    """

    variance: float
    unit: Float64
    learned: Float64

    @property
    def matrix(self) -> Float64:
        """(3 K + C, 3 K + C), in the order of the columns of a motion's sensitivity."""
        knots, size = len(self.unit), len(self.unit) + len(self.learned)
        out = np.zeros((size, size))
        out[:knots, :knots] = self.variance * self.unit
        out[knots:, knots:] = self.learned
        return out


class RunningMean:
    """Mean of what was added, of about the last `memory` values once there are more."""

    def __init__(self, memory: int) -> None:
        self.mean = 0.0
        self.count = 0
        self._memory = memory

    def add(self, value: float) -> None:
        """Take one more value into the mean."""
        self.count = min(self.count + 1, self._memory)
        self.mean += (value - self.mean) / self.count
