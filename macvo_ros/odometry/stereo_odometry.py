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

"""The loop of the paper: match, select, covariance, pose, trajectory.

The current frame is tracked against a *reference*, an earlier frame: the previous one while the camera moves (the
paper's two frames); an older one while it stands still, so that nothing drifts, or after a frame that showed nothing,
so that the gap is bridged.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from macvo_ros.geometry.se3 import inverse, skew
from macvo_ros.images.blind_frames import find_trouble
from macvo_ros.images.frame import StereoFrame
from macvo_ros.images.mask import RobotMask
from macvo_ros.images.work_size import reduced
from macvo_ros.matching.epipolar_error import RowCheck
from macvo_ros.matching.masked_matcher import MaskedMatcher
from macvo_ros.matching.matcher import Match, Matcher, make_matcher
from macvo_ros.motion.two_frame import METRIC, TwoFrameResult
from macvo_ros.odometry.attempt import Attempt, Expectation, FramePair
from macvo_ros.odometry.estimate import Estimate
from macvo_ros.odometry.pose_window import PoseWindow, Step, WindowEstimate
from macvo_ros.odometry.status import Status
from macvo_ros.settings.config import Config
from macvo_ros.uncertainty.calibration_error import CalibrationConstants
from macvo_ros.uncertainty.error_correlation import DisparitySensitivity, shared_frame_covariance
from macvo_ros.uncertainty.learned_calibration import LearnedCalibration
from macvo_ros.uncertainty.motion_prior import ConstantVelocity
from macvo_ros.uncertainty.online_calibration import OnlineCalibration
from macvo_ros.uncertainty.path_step import PathStep
from macvo_ros.uncertainty.rectification_monitor import RectificationMonitor
from macvo_ros.uncertainty.relative_motion import RelativeMotion
from macvo_ros.uncertainty.row_evidence import row_evidence
from macvo_ros.uncertainty.trajectory import (
    PoseWithCovariance,
    base_jacobian,
    between,
    block_rotation,
    correlated_excess,
    symmetric_positive,
    to_base,
)

Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class _Reference:
    """A frame to track against: what it showed, where it was, and how its disparity errors went into that.

    arrival: sensitivity of `place`, odom axes, to this frame's own disparity errors.
    before: stamp of the frame that the motion to here began at.
    measured: the last frame whose place was measured, and that place, when `place` is only predicted from there.
    """

    frame: StereoFrame
    match: Match
    place: PoseWithCovariance
    arrival: DisparitySensitivity | None = None
    before: int | None = None
    measured: tuple[StereoFrame, PoseWithCovariance] | None = None


@dataclass(frozen=True, eq=False)
class _Last:
    """The previous frame, whatever it was worth: where it was, its motion from the reference (camera), its status."""

    frame: StereoFrame
    place: PoseWithCovariance
    motion: RelativeMotion
    status: Status


@dataclass(frozen=True, eq=False)
class _Cameras:
    """What is known of a pair of cameras: what their calibration is off by, and what may remain."""

    calibration: OnlineCalibration
    rectification: RectificationMonitor

    @property
    def constants(self) -> CalibrationConstants:
        """Covariance of the calibration's unknown constants, as measured so far."""
        learned = self.calibration.covariance
        variance = self.rectification.calibration_variance if learned is None else self.rectification.least_variance
        return CalibrationConstants(variance, self.calibration.assumed.field.covariance, learned)

    def step(self, origin: int, relative: RelativeMotion) -> PathStep:
        """A predicted motion of the base from the frame of a stamp, with what is known of the calibration now."""
        return PathStep(origin, relative, constants=self.constants)


@dataclass(frozen=True, eq=False)
class _Track:
    """Where tracking stands. tracked: stamp of the last measured frame; fault: probability that the last was faulty."""

    reference: _Reference
    last: _Last
    cameras: _Cameras
    tracked: int
    fault: float = 0.0


class StereoOdometry:
    """Stereo frames in, poses with covariance out. Knows nothing of ROS, files or displays."""

    def __init__(
        self,
        config: Config | None = None,
        base_from_camera: Float64 | None = None,
        matcher: Matcher | None = None,
    ) -> None:
        """base_from_camera: (4, 4) pose of the left optical frame in the base frame, metres; identity when None.

        matcher: one to use instead of that named in the configuration.
        """
        self.config = config or Config()
        self.base_from_camera = np.eye(4) if base_from_camera is None else np.array(base_from_camera, dtype=np.float64)
        self._mask = RobotMask(self.config.mask)
        self.matcher = matcher or make_matcher(self.config)
        if self._mask:
            self.matcher = MaskedMatcher(self.matcher)
        self._velocity = ConstantVelocity(self.config.motion_prior, static=self.config.pose.initial_motion == "static")
        self._start = PoseWithCovariance(np.eye(4), symmetric_positive(np.zeros((6, 6))))
        self._now: _Track | None = None
        self._window: PoseWindow | None = None
        if self.config.window.frames > 2 and self.config.covariance.model in METRIC:
            self._window = PoseWindow(self.config, self.matcher.disparity_correlation)

    @property
    def calibration(self) -> OnlineCalibration | None:
        """What learns the calibration; None before the first frame."""
        return None if self._now is None else self._now.cameras.calibration

    @property
    def learned(self) -> LearnedCalibration | None:
        """What was learned of the calibration; None before the first frame, or where nothing is to be learned."""
        return None if self.calibration is None else self.calibration.learned

    def reset(self, pose: Float64 | None = None, covariance: Float64 | None = None) -> None:
        """Forget everything and continue from `pose` (4, 4) of the base in odom with `covariance` (6, 6)."""
        self.matcher.reset()
        self._velocity.reset()
        self._end_window()
        self._now = None
        self._start = PoseWithCovariance(
            np.eye(4) if pose is None else np.array(pose, dtype=np.float64),
            symmetric_positive(np.zeros((6, 6)) if covariance is None else np.asarray(covariance, dtype=np.float64)),
        )

    def track(self, frame: StereoFrame) -> Estimate:
        """Track one frame. Never raises for bad content: a black image is a LOST estimate.

        ImageError, though, where the configured mask is for images of another size: that is no content.

        Stamps must increase; what to do when they do not is the caller's to decide (`reset`, or leave the frame out).
        """
        started = time.perf_counter()
        frame = reduced(self.masked(frame), self.matcher.work_pixels)
        estimate = self._begin(frame) if self._now is None else self._track(frame, self._now)
        estimate.timings["total"] = time.perf_counter() - started
        return replace(estimate, frame=frame.full)

    def masked(self, frame: StereoFrame) -> StereoFrame:
        """The frame with the configured mask; ImageError where that is for images of another size."""
        return self._mask.applied(frame)

    def flush(self) -> Estimate | None:
        """Nothing waits here; `PipelinedOdometry` has a last frame to hand out."""
        return None

    def _begin(self, frame: StereoFrame) -> Estimate:
        """First frame: it becomes the reference, unless it shows nothing."""
        place = self._start
        trouble = find_trouble(frame.full, None)
        if trouble is not None:
            return Estimate(frame, Status.LOST, place.pose, place.covariance, reason=trouble.reason)
        match = self.matcher.match(None, frame)
        self._now = self._starting(frame, match, place)
        return Estimate(frame, Status.INITIALIZING, place.pose, place.covariance, reason="first frame", match=match)

    def _track(self, frame: StereoFrame, now: _Track) -> Estimate:
        reference = now.reference
        trouble = find_trouble(frame.full, now.last.frame.full)
        stood = now.last.frame is not reference.frame and now.last.status is not Status.LOST
        if trouble is not None and not (trouble.frozen and stood):
            return self._coast(frame, now, trouble.reason)
        if frame.full.camera != reference.frame.full.camera:
            return self._restart(frame, now, "the calibration or image size changed")
        silence = (frame.stamp - now.tracked) * 1e-9
        if silence > self.config.reference.max_gap:
            return self._restart(frame, now, f"nothing was tracked for {silence:.1f} s")

        gap = _seconds(reference.frame, frame)
        expected = Expectation(
            self._velocity.prior(gap, self._velocity.staleness(reference.frame.stamp)),
            self._velocity.unknown(gap),
            now.fault,
            RowCheck(now.cameras.rectification.epipolar_variance, now.cameras.rectification.unconfirmed),
        )
        pair = FramePair(reference.frame, reference.match, frame)
        attempt = pair.track(self.config, self.matcher, now.cameras.calibration.assumed, expected)
        if attempt.result is None or attempt.status is Status.LOST:
            return self._lose(frame, now, attempt)
        return self._append_motion(frame, now, attempt, attempt.result)

    def _restart(self, frame: StereoFrame, now: _Track, why: str) -> Estimate:
        """Continue with a new reference from the predicted pose, with a covariance that covers the unknown motion."""
        estimate = self._coast(frame, now, f"{why}; tracking starts again here")
        assert self._now is not None
        self.matcher.reset()
        match = self.matcher.match(None, frame)
        place = self._now.last.place
        if frame.full.camera != now.reference.frame.full.camera:
            # Another camera has another calibration: what the pose owes to the old one becomes random error.
            place = PoseWithCovariance(place.pose, place.total(now.cameras.constants.matrix))
            self._now = self._starting(frame, match, place)
        else:
            self._now = replace(self._starting(frame, match, place), cameras=now.cameras)
        self._velocity.reset()
        return replace(estimate, match=match)

    def _coast(self, frame: StereoFrame, now: _Track, reason: str) -> Estimate:
        """Predict. The whole stretch since the last measurement is one unknown motion: errors do not average out."""
        self._end_window()
        measured_frame, measured_place = now.reference.measured or (now.reference.frame, now.reference.place)
        step = now.cameras.step(
            measured_frame.stamp, to_base(self._predicted(measured_frame, frame), self.base_from_camera)
        )
        place = step.appended_to(measured_place)
        predicted = self._predicted(now.reference.frame, frame)
        relative = between(now.last.motion, predicted)
        self._now = replace(now, last=_Last(frame, place, predicted, Status.LOST))
        return Estimate(
            frame,
            Status.LOST,
            place.pose,
            place.total(now.cameras.constants.matrix),
            reason=reason,
            relative=relative,
            relative_base=to_base(relative, self.base_from_camera),
            elapsed=_seconds(now.last.frame, frame),
            step=step,
        )

    def _lose(self, frame: StereoFrame, now: _Track, attempt: Attempt) -> Estimate:
        """Nothing was measured although the frame shows something: the next is tracked against this one.

        Unless its stereo match is what is doubted: then it is no reference.
        """
        estimate = self._coast(frame, now, attempt.reason)
        assert self._now is not None
        if not attempt.stereo_at_fault:
            measured = now.reference.measured or (now.reference.frame, now.reference.place)
            reference = _Reference(frame, attempt.match, self._now.last.place, measured=measured)
            self._now = replace(self._now, reference=reference, last=_at(reference, Status.LOST))
        self._now = replace(self._now, fault=attempt.fault)
        return replace(
            estimate, match=attempt.match, timings=attempt.timings, fault=attempt.fault, checks=attempt.checks
        )

    def _append_motion(self, frame: StereoFrame, now: _Track, attempt: Attempt, result: TwoFrameResult) -> Estimate:
        """Append the measured motion to the reference's pose, and choose the next reference."""
        reference, last, cameras = now.reference, now.last, now.cameras
        in_base = to_base(result.relative, self.base_from_camera)
        jacobian = base_jacobian(in_base.motion, self.base_from_camera)
        shared = None
        if reference.arrival is not None:
            departure = result.sources.reference_disparity.in_axes(jacobian)
            shared = shared_frame_covariance(reference.arrival, departure, self.matcher.disparity_correlation)
        if attempt.status is Status.TRACKING:
            rows = attempt.match.row_check()
            cameras.rectification.learn(rows.epipolar_var, rows.unconfirmed)
        cameras.rectification.learn_pattern(result.pattern)
        step = replace(
            cameras.step(reference.frame.stamp, in_base),
            measured=True,
            shared=shared,
            before=reference.before,
            calibration=jacobian @ result.calibration,
        )
        place = step.appended_to(reference.place)
        constants = cameras.constants.matrix
        constant = result.calibration @ constants @ result.calibration.T
        covariance = place.total(constants)
        knocked = self._learn(attempt, result, cameras, frame, _seconds(reference.frame, frame))
        if knocked:
            self._end_window()
            # From here on the calibration is another: what the pose owes to the old one becomes random error.
            place = PoseWithCovariance(place.pose, covariance, correlated=place.correlated)
        whole = RelativeMotion(result.relative.motion, symmetric_positive(result.relative.covariance + constant))
        # After lost frames the motion is that over the gap, which was measured; else since the frame before.
        over_gap = last.status is Status.LOST or last.frame is reference.frame
        relative = whole if over_gap else between(last.motion, whole)
        windowed = None
        if not knocked and last.status is not Status.LOST:
            windowed = self._in_window(frame, now, attempt, result, constant)
        corrections: tuple[tuple[int, Float64], ...] = ()
        if windowed is not None:
            excess = correlated_excess(reference.place, in_base, None if windowed.began else reference.place.excess)
            place = self._placed(place, windowed, excess)
            covariance = place.total(constants)
            relative = replace(
                windowed.relative, covariance=symmetric_positive(windowed.relative.covariance + constant)
            )
            step = replace(
                cameras.step(last.frame.stamp, to_base(windowed.relative, self.base_from_camera)),
                measured=True,
                calibration=step.calibration if last.frame is reference.frame else None,
            )
            back = inverse(self.base_from_camera)
            corrections = tuple((stamp, pose @ back) for stamp, pose in windowed.corrections)
        if not attempt.doubted:
            self._velocity.observe(whole.motion, _seconds(reference.frame, frame), frame.stamp)
        following = replace(now, last=_Last(frame, place, whole, attempt.status))
        if _median_flow(result) >= self.config.reference.min_flow:
            arrival = result.sources.current_disparity.in_axes(block_rotation(reference.place.pose) @ jacobian)
            leading = arrival if windowed is None else None
            successor = _Reference(frame, attempt.match, place, leading, reference.frame.stamp)
            following = replace(now, reference=successor, last=_at(successor, attempt.status))
        self._now = replace(following, tracked=frame.stamp, fault=attempt.fault)
        return Estimate(
            frame,
            attempt.status,
            place.pose,
            covariance,
            reason=attempt.reason,
            relative=relative,
            relative_base=to_base(relative, self.base_from_camera),
            elapsed=_seconds(reference.frame if over_gap else last.frame, frame),
            landmarks=result.landmarks,
            fault=attempt.fault,
            checks=attempt.checks,
            chi2=result.solution.chi2,
            calibration=cameras.calibration.learned,
            step=step,
            match=attempt.match,
            corrections=corrections,
            timings=attempt.timings,
        )

    def _in_window(
        self, frame: StereoFrame, now: _Track, attempt: Attempt, result: TwoFrameResult, constant: Float64
    ) -> WindowEstimate | None:
        """Where the window says that a frame is; None without one, or where the frame is doubted: then it ends.

        constant: (6, 6) what the calibration adds to the motion's covariance.
        """
        if self._window is None:
            return None
        if attempt.status is not Status.TRACKING:
            self._end_window()
            return None
        clock = time.perf_counter()
        last, at_reference = now.last, now.last.frame is now.reference.frame
        motion = result.relative if at_reference else between(last.motion, result.relative)
        camera = last.place.pose @ self.base_from_camera
        lever = np.eye(6)
        lever[:3, 3:] = -skew(camera[:3, 3] - last.place.pose[:3, 3])
        found = self._window.step(
            Step(
                previous=last.frame,
                frame=frame,
                place=camera,
                covariance=lever @ last.place.covariance @ lever.T,
                motion=motion,
                result=result,
                first_view=now.reference.match if at_reference else None,
                calibration_var=now.cameras.rectification.calibration_variance,
                constant=constant,
            )
        )
        attempt.timings["window"] = time.perf_counter() - clock
        return found

    def _placed(self, place: PoseWithCovariance, found: WindowEstimate, excess: Float64) -> PoseWithCovariance:
        """`place` with the window's pose, of the base; excess: (6, 6) what the window's covariance does not know of."""
        pose = found.pose @ inverse(self.base_from_camera)
        lever = np.eye(6)
        lever[:3, 3:] = -skew(pose[:3, 3] - found.pose[:3, 3])
        covariance = symmetric_positive(lever @ found.covariance @ lever.T + excess)
        return replace(place, pose=pose, covariance=covariance, excess=excess)

    def _end_window(self) -> None:
        if self._window is not None:
            self._window.reset()

    def _learn(
        self, attempt: Attempt, result: TwoFrameResult, cameras: _Cameras, frame: StereoFrame, seconds: float
    ) -> bool:
        """Learn the calibration from a sound frame; true where that says that a camera was knocked."""
        if attempt.status is not Status.TRACKING or result.evidence is None:
            return False
        evidence, corners = result.evidence, attempt.match.row_check().corners
        if corners is not None:
            across, down = frame.reduction
            rows = frame.to_full(corners[:, :2]), across * corners[:, 2], down * corners[:, 3]
            evidence = evidence.plus(row_evidence(cameras.calibration.model, *rows))
        return cameras.calibration.learn(evidence, seconds, _median_flow(result))

    def _starting(self, frame: StereoFrame, match: Match, place: PoseWithCovariance) -> _Track:
        """Tracking that begins at a frame, whose place is known."""
        reference = _Reference(frame, match, place)
        calibration = OnlineCalibration(frame.full.camera, self.config.calibration)
        cameras = _Cameras(calibration, RectificationMonitor(frame.reduction[1]))
        rows = match.row_check()
        cameras.rectification.learn(rows.epipolar_var, rows.unconfirmed)
        return _Track(reference, _at(reference, Status.TRACKING), cameras, frame.stamp)

    def _predicted(self, earlier: StereoFrame, later: StereoFrame) -> RelativeMotion:
        """What the camera is thought to have done between two frames."""
        seconds = _seconds(earlier, later)
        stale = self._velocity.staleness(earlier.stamp)
        return RelativeMotion(self._velocity.predict(seconds), self._velocity.covariance(seconds, stale))


def _at(reference: _Reference, status: Status) -> _Last:
    """The reference as the previous frame."""
    return _Last(reference.frame, reference.place, RelativeMotion(np.eye(4), np.zeros((6, 6))), status)


def _median_flow(result: TwoFrameResult) -> float:
    """Of the keypoints that agree, pixels."""
    return float(np.median(np.linalg.norm(result.flow[result.solution.inlier], axis=1)))


def _seconds(earlier: StereoFrame, later: StereoFrame) -> float:
    return (later.stamp - earlier.stamp) * 1e-9
