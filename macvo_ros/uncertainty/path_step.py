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

"""What one frame adds to the path and to its covariance: enough to ask for the covariance between any two frames."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from macvo_ros.uncertainty.calibration_error import CalibrationConstants
from macvo_ros.uncertainty.relative_motion import RelativeMotion
from macvo_ros.uncertainty.trajectory import PoseWithCovariance, correlated_covariance, extend

Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PathStep:
    """A motion of the base from an earlier frame, as it was appended to the path.

    origin: stamp of that frame, nanoseconds. relative: its covariance is without the calibration's part.
    measured: from matches, not predicted.
    shared: (6, 6) covariance of the error of the motion that led to the origin (odom axes) with the error of this one;
    None: zero. before: stamp of the frame which that one began at.
    calibration: (6, C) sensitivity to the calibration's unknown constants, None: none.
    constants: their covariance as known at this frame.
    """

    origin: int
    relative: RelativeMotion
    measured: bool = False
    shared: Float64 | None = None
    before: int | None = None
    calibration: Float64 | None = None
    constants: CalibrationConstants | None = None

    def appended_to(self, place: PoseWithCovariance, *, first: bool = False) -> PoseWithCovariance:
        """The place of this frame, given that of its origin; first: the path began there, nothing led to it."""
        if not self.measured:
            return extend(place, self.relative)
        cross = correlated_covariance(place, self.relative)
        if self.shared is not None and not first:
            cross = cross + self.shared
        return extend(place, self.relative, cross, self.calibration, measured=True)

    def total(self, place: PoseWithCovariance) -> Float64:
        """(6, 6) covariance of a place that ends with this step, the calibration's part included."""
        return place.covariance if self.constants is None else place.total(self.constants.matrix)
