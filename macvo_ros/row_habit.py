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

"""How well the stereo matches of a pair of cameras usually keep their rows: what the calibration is off by.

Along the rows, where depth is measured, an error does not show so plainly, but residuals of neighbours grow alike. It
goes into every covariance, and a sudden change of it tells that left and right are not of the same moment.
"""

from __future__ import annotations

from macvo_ros.calibration_error import RunningMean
from macvo_ros.matching.matcher import Match
from macvo_ros.scene_check import Rows

_MEMORY = 50
"""Frames over which the measured error of the calibration is averaged."""
_ENOUGH = 5
"""Frames after which it is known well enough to notice a change."""
_CHANGE = 4.0
"""Times its mean, at most, that a frame's row variance counts in it: a fault must not become usual while it lasts."""
_LEAST = 0.02
"""Pixels. What rows do not show: no lens is known better, and no patch is matched without a bias of that size."""
_NOISY = 1.5
"""Times the usual grain of the images: beyond, in the dark, rows are as noisy as everything and say nothing new."""


class RowHabit:
    """Learns from sound frames."""

    def __init__(self) -> None:
        self._grain = RunningMean(_MEMORY)
        self.forget()

    def forget(self) -> None:
        """The cameras are others now."""
        self._variance, self._spread, self._pattern = (RunningMean(_MEMORY) for _ in range(3))

    def learn_pattern(self, excess: float) -> None:
        """Take in how much more alike than promised a frame's residuals are (`error_correlation.pattern_excess`)."""
        self._pattern.add(max(1.0, excess))

    def learn(self, match: Match, grain: float, spread: float) -> None:
        """Take in a frame; grain: of its left image (`frame_check.grain`), grey levels; spread: `stereo_spread`."""
        if match.epipolar_var > 0:
            largest = _CHANGE * self._variance.mean if self._variance.count >= _ENOUGH else match.epipolar_var
            self._variance.add(min(match.epipolar_var, largest))
            self._spread.add(spread)
            self._grain.add(grain)

    @property
    def calibration_variance(self) -> float:
        """Of the calibration's errors, pixels^2: that of rows, and what they do not show."""
        return self._variance.mean + _LEAST**2 * max(1.0, self._pattern.mean)

    def usual(self, grain: float) -> Rows | None:
        """How rows are usually kept, if that is known and can be expected of an image with so much grain."""
        known = self._variance.count >= _ENOUGH and grain <= _NOISY * max(self._grain.mean, 1.0)
        return Rows(self._variance.mean, self._spread.mean) if known else None
