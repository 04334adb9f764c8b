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

"""A pair of cameras on a robot: where it is mounted, and what is known of its calibration so far."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from macvo_ros.doubt.checks import epipolar_error
from macvo_ros.images.frame import StereoFrame
from macvo_ros.matching.epipolar_error import smooth_variance
from macvo_ros.matching.matcher import Match
from macvo_ros.motion.two_frame import TwoFrameResult
from macvo_ros.settings.config import CalibrationConfig
from macvo_ros.uncertainty.calibration_error import CalibrationConstants
from macvo_ros.uncertainty.online_calibration import OnlineCalibration
from macvo_ros.uncertainty.path_step import PathStep
from macvo_ros.uncertainty.rectification_monitor import RectificationMonitor
from macvo_ros.uncertainty.relative_motion import RelativeMotion
from macvo_ros.uncertainty.row_evidence import ENOUGH, fit_rows
from macvo_ros.uncertainty.row_knock import RowKnock
from macvo_ros.uncertainty.trajectory import to_base

Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CameraPair:
    """What is known of a pair of cameras: what their calibration is off by, and what may remain.

    base_from_camera: (4, 4) pose of the left optical frame in the base frame, metres.
    """

    base_from_camera: Float64
    calibration: OnlineCalibration
    rectification: RectificationMonitor
    row_knock: RowKnock

    @staticmethod
    def first_seen(frame: StereoFrame, match: Match, mount: Float64, config: CalibrationConfig) -> CameraPair:
        """Cameras of which one matched frame is known; mount: (4, 4) `base_from_camera`."""
        calibration = OnlineCalibration(frame.full.camera, config)
        cameras = CameraPair(mount, calibration, RectificationMonitor(frame.reduction[1]), RowKnock(calibration.model))
        cameras.learn_rows(match)
        return cameras

    @property
    def constants(self) -> CalibrationConstants:
        """Covariance of the calibration's unknown constants, as measured so far."""
        variance, unit = self.rectification.least_variance, self.calibration.assumed.field.covariance
        return CalibrationConstants(variance, unit, self.calibration.covariance)

    def step(self, origin: int, motion: RelativeMotion) -> PathStep:
        """What a predicted motion of the camera, from the frame of a stamp, adds to the path of the base.

        With what is known of the calibration now.
        """
        return PathStep(origin, to_base(motion, self.base_from_camera), constants=self.constants)

    def learn_rows(self, match: Match) -> None:
        """Learn from the match of a sound frame how well the rows of the images agree."""
        self.rectification.learn(match.row_check().epipolar_var)

    def turned(
        self, frame: StereoFrame, match: Match, seconds: float, usual: Callable[[float], bool]
    ) -> Float64 | None:
        """(3,) pitch, yaw and roll that the right camera was knocked by, radians; None: that is not known (yet).

        frame: one whose stereo match is doubted, `seconds` after the last. usual: whether matches are so far off
        their rows (`Checks.epipolar_error`) in sound frames.
        """
        corners = _corners(frame, match)
        if corners is None or len(corners) < ENOUGH:
            return None
        pixel, down = frame.from_full(corners[:, :2]), frame.reduction[1]

        def as_before(vertical: Float64) -> bool:
            variance = smooth_variance(pixel, vertical / down, frame.left.shape)
            return usual(epipolar_error(variance, self.rectification.epipolar_variance))

        return self.row_knock.look(corners, self.calibration.assumed.rows, seconds, as_before)

    def knocked(self, frame: StereoFrame, match: Match, turn: Float64) -> CameraPair:
        """The pair from a frame on, after the right camera was knocked by a (3,) `turn`."""
        self.calibration.knocked(turn)
        cameras = replace(
            self,
            rectification=RectificationMonitor(frame.reduction[1]),
            row_knock=RowKnock(self.calibration.model),
        )
        cameras.learn_rows(match)
        return cameras

    def learn_calibration(self, frame: StereoFrame, match: Match, result: TwoFrameResult, seconds: float) -> bool:
        """Learn from a sound frame, `seconds` after its reference; true where a camera was knocked."""
        if result.evidence is None:
            return False
        corners = _corners(frame, match)
        rows = None if corners is None else fit_rows(self.calibration.model, corners[:, :2], *corners[:, 2:].T)
        return self.calibration.learn(result.evidence, seconds, result.median_flow, rows)


def _corners(frame: StereoFrame, match: Match) -> Float64 | None:
    """(N, 4) `RowCheck.corners` in pixels of the camera's image; None where not known."""
    corners = match.row_check().corners
    if corners is None:
        return None
    across, down = frame.reduction
    return np.column_stack((frame.to_full(corners[:, :2]), across * corners[:, 2], down * corners[:, 3]))
