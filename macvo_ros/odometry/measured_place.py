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

"""A measured motion appended to the path, and the place that it leads to."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from macvo_ros.images.frame import StereoFrame
from macvo_ros.motion.two_frame import TwoFrameResult
from macvo_ros.odometry.track_state import Track
from macvo_ros.uncertainty.error_correlation import DisparitySensitivity, ErrorCorrelation, shared_frame_covariance
from macvo_ros.uncertainty.path_step import PathStep
from macvo_ros.uncertainty.relative_motion import RelativeMotion
from macvo_ros.uncertainty.trajectory import (
    PoseWithCovariance,
    base_jacobian,
    between,
    block_rotation,
    symmetric_positive,
)

Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class MeasuredPlace:
    """Where a measured frame is, and how that hangs on earlier frames.

    result: its motion from the reference by two frames. constants: (C, C) covariance of the calibration's constants as
    known before this frame. relative: motion of the camera since `Track.motion_start`, the calibration's part included.
    arrival: sensitivity of the place, odom axes, to the frame's own disparity errors; None: not known.
    corrections: as in `Estimate`.
    """

    result: TwoFrameResult
    constants: Float64
    place: PoseWithCovariance
    relative: RelativeMotion
    step: PathStep
    arrival: DisparitySensitivity | None
    corrections: tuple[tuple[int, Float64], ...] = ()

    @property
    def covariance(self) -> Float64:
        """(6, 6) of the place, the calibration's part included."""
        return self.place.total(self.constants)

    @property
    def calibration_part(self) -> Float64:
        """(6, 6) what the calibration's constants add to the covariance of the motion."""
        return _calibration_part(self.result, self.constants)

    @property
    def motion(self) -> RelativeMotion:
        """Of the camera from the reference, by two frames, the calibration's part included."""
        return plus_covariance(self.result.relative, self.calibration_part)

    def with_new_calibration(self) -> MeasuredPlace:
        """From here on the calibration is another: what the pose owes to the old one becomes random error."""
        place = PoseWithCovariance(self.place.pose, self.covariance, correlated=self.place.correlated)
        return replace(self, place=place)


def append_motion(now: Track, frame: StereoFrame, result: TwoFrameResult, errors: ErrorCorrelation) -> MeasuredPlace:
    """Append a measured motion to the reference's pose; errors: how those of neighbours' disparities are related."""
    reference, cameras = now.reference, now.cameras
    step = cameras.step(reference.frame.stamp, result.relative)
    jacobian = base_jacobian(step.relative.motion, cameras.base_from_camera)
    shared = None
    if reference.arrival is not None:
        departure = result.sources.reference_disparity.in_axes(jacobian)
        shared = shared_frame_covariance(reference.arrival, departure, errors)
    step = replace(
        step, measured=True, shared=shared, before=reference.before, calibration=jacobian @ result.calibration
    )
    constants = cameras.constants.matrix
    motion = plus_covariance(result.relative, _calibration_part(result, constants))
    relative = motion if now.motion_start is reference.frame else between(now.previous.motion, motion)
    arrival = result.sources.current_disparity.in_axes(block_rotation(reference.place.pose) @ jacobian)
    return MeasuredPlace(result, constants, step.appended_to(reference.place), relative, step, arrival)


def _calibration_part(result: TwoFrameResult, constants: Float64) -> Float64:
    return np.asarray(result.calibration @ constants @ result.calibration.T)


def plus_covariance(motion: RelativeMotion, covariance: Float64) -> RelativeMotion:
    """The motion with a (6, 6) covariance added to its own."""
    return RelativeMotion(motion.motion, symmetric_positive(motion.covariance + covariance))
