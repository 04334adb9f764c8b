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

"""Where a measured frame is: by the motion from its reference, or, where there is a window of frames, by that."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from macvo_ros.geometry.se3 import inverse, lever_arm
from macvo_ros.images.frame import StereoFrame
from macvo_ros.motion.calibration_shift import CalibrationShift
from macvo_ros.motion.two_frame import METRIC, TwoFrameResult
from macvo_ros.odometry.attempt import Attempt
from macvo_ros.odometry.measured_place import MeasuredPlace, append_motion, plus_covariance
from macvo_ros.odometry.pose_window import PoseWindow, Step, WindowEstimate
from macvo_ros.odometry.status import Status
from macvo_ros.odometry.track_state import Track
from macvo_ros.settings.config import Config
from macvo_ros.uncertainty.error_correlation import ErrorCorrelation
from macvo_ros.uncertainty.online_calibration import AssumedCalibration
from macvo_ros.uncertainty.trajectory import PoseWithCovariance, between, correlated_excess, symmetric_positive

Float64 = npt.NDArray[np.float64]


def make_window(config: Config, errors: ErrorCorrelation) -> PoseWindow | None:
    """The window that is asked for; None where two frames are enough, or residuals are not weighed in metres."""
    wanted = config.window.frames > 2 and config.covariance.model in METRIC
    return PoseWindow(config, errors) if wanted else None


def place_frame(
    now: Track, frame: StereoFrame, attempt: Attempt, result: TwoFrameResult, errors: ErrorCorrelation
) -> MeasuredPlace:
    """Where a frame is; what it tells of the cameras is learned on the way, most of it from sound frames only.

    errors: how those of neighbours' disparities are related.
    """
    sound, cameras = attempt.status is Status.TRACKING, now.cameras
    if sound:
        cameras.learn_rows(attempt.match)
    cameras.rectification.learn_pattern(result.pattern)
    measured = append_motion(now, frame, result, errors)
    corrected_by = cameras.calibration.assumed  # before this frame adds to it
    if not sound:
        now.end_window()
        return measured
    if cameras.learn_calibration(frame, attempt.match, result, frame.seconds_since(now.reference.frame)):
        now.end_window()
        return measured.with_new_calibration()
    if now.window is None or now.previous.status is Status.LOST:
        return measured
    clock = time.perf_counter()
    found = now.window.step(_window_step(now, frame, measured, corrected_by))
    attempt.timings["window"] = time.perf_counter() - clock
    return measured if found is None else _placed_by_window(now, measured, found)


def _placed_by_window(now: Track, measured: MeasuredPlace, found: WindowEstimate) -> MeasuredPlace:
    """The place that the window found, and how it hangs on the previous frame."""
    reference, previous, cameras = now.reference, now.previous, now.cameras
    known = None if found.began else reference.place.excess
    excess = correlated_excess(reference.place, measured.step.relative, known)
    step = replace(
        cameras.step(previous.frame.stamp, found.relative),
        measured=True,
        calibration=measured.step.calibration if previous.frame is reference.frame else None,
    )
    camera_from_base = inverse(cameras.base_from_camera)
    return replace(
        measured,
        place=_at_base(measured.place, found, camera_from_base, excess),
        relative=plus_covariance(found.relative, measured.calibration_part),
        step=step,
        arrival=None,
        corrections=tuple((stamp, pose @ camera_from_base) for stamp, pose in found.corrections),
    )


def _window_step(now: Track, frame: StereoFrame, measured: MeasuredPlace, corrected_by: AssumedCalibration) -> Step:
    """The frame and the previous one as the window wants them: places of the camera.

    corrected_by: what the motion was measured with.
    """
    previous, result = now.previous, measured.result
    at_reference = previous.frame is now.reference.frame
    camera = previous.place.pose @ now.cameras.base_from_camera
    lever = lever_arm(camera[:3, 3] - previous.place.pose[:3, 3])
    return Step(
        previous=previous.frame,
        frame=frame,
        place=camera,
        covariance=lever @ previous.place.covariance @ lever.T,
        motion=result.relative if at_reference else between(previous.motion, result.relative),
        result=result,
        first_view=now.reference.match if at_reference else None,
        lens=CalibrationShift(frame.full.camera, corrected_by.error, corrected_by.rows),
        calibration_var=now.cameras.constants.variance,
        constant=measured.calibration_part,
    )


def _at_base(
    place: PoseWithCovariance, found: WindowEstimate, camera_from_base: Float64, excess: Float64
) -> PoseWithCovariance:
    """`place` with the window's pose, of the base; excess: (6, 6) what the window's covariance does not know of."""
    pose = found.pose @ camera_from_base
    lever = lever_arm(pose[:3, 3] - found.pose[:3, 3])
    covariance = symmetric_positive(lever @ found.covariance @ lever.T + excess)
    return replace(place, pose=pose, covariance=covariance, excess=excess)
