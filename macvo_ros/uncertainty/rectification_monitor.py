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

"""How well the rectification of a pair of cameras holds: what their calibration is off by, learned from sound frames.

Along the rows, where depth is measured, an error does not show so plainly, but residuals of neighbours grow alike. It
goes into every covariance, and a sudden change of it tells that left and right are not of the same moment.
"""

from __future__ import annotations

from macvo_ros.uncertainty.calibration_error import RunningMean

_MEMORY = 50
"""Frames over which the measured error of the calibration is averaged."""
_LEAST = 0.02
"""Pixels. What rows do not show: no lens is known better, and no patch is matched without a bias of that size."""


class RectificationMonitor:
    """Running means of the epipolar error, and of the residuals' regional pattern."""

    def __init__(self, reduction: float = 1.0) -> None:
        """reduction: pixels of the camera's image per pixel of the one that is matched (`images/work_size.py`)."""
        self._reduction = reduction
        self._epipolar, self._pattern = (RunningMean(_MEMORY) for _ in range(2))

    def learn(self, epipolar_var: float) -> None:
        """Take in how far the stereo match of a sound frame leaves its rows.

        epipolar_var: pixels^2 of the matched images, 0: not known.
        """
        if epipolar_var > 0:
            self._epipolar.add(epipolar_var)

    def learn_pattern(self, excess: float) -> None:
        """Take in how much more alike than promised a frame's residuals are (`error_correlation.regional_chi2`)."""
        self._pattern.add(max(1.0, excess))

    @property
    def epipolar_variance(self) -> float:
        """Of stereo matches about their rows, as usual for these cameras, pixels^2 of the matched images."""
        return self._epipolar.mean

    @property
    def calibration_variance(self) -> float:
        """Of the calibration's errors, pixels^2 of the camera's image: that of rows, and what they do not show."""
        return self._reduction**2 * self._epipolar.mean + self.least_variance

    @property
    def least_variance(self) -> float:
        """Of what rows do not show, pixels^2 of the camera's image."""
        return _LEAST**2 * max(1.0, self._pattern.mean)
