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
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from macvo_ros.images.blind_frames import find_trouble
from macvo_ros.images.frame import StereoFrame
from macvo_ros.images.mask import RobotMask
from macvo_ros.images.work_size import reduced
from macvo_ros.matching.masked_matcher import MaskedMatcher
from macvo_ros.matching.matcher import Match, Matcher, make_matcher
from macvo_ros.motion.two_frame import TwoFrameResult
from macvo_ros.odometry.attempt import Attempt, FramePair
from macvo_ros.odometry.camera_pair import CameraPair
from macvo_ros.odometry.estimate import Estimate
from macvo_ros.odometry.measured_place import MeasuredPlace
from macvo_ros.odometry.placement import make_window, place_frame
from macvo_ros.odometry.status import Status
from macvo_ros.odometry.track_state import PreviousFrame, Reference, Track
from macvo_ros.settings.config import Config
from macvo_ros.uncertainty.learned_calibration import LearnedCalibration
from macvo_ros.uncertainty.motion_prior import ConstantVelocity
from macvo_ros.uncertainty.online_calibration import OnlineCalibration
from macvo_ros.uncertainty.trajectory import PoseWithCovariance, between, symmetric_positive, to_base

Float64 = npt.NDArray[np.float64]


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
        self._start = PoseWithCovariance(np.eye(4), symmetric_positive(np.zeros((6, 6))))
        self._now: Track | None = None

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

    def _track(self, frame: StereoFrame, now: Track) -> Estimate:
        reference, previous = now.reference, now.previous
        trouble = find_trouble(frame.full, previous.frame.full)
        stood = previous.frame is not reference.frame and previous.status is not Status.LOST
        if trouble is not None and not (trouble.frozen and stood):
            return self._coast(frame, now, trouble.reason)
        if frame.full.camera != reference.frame.full.camera:
            return self._restart(frame, now, "the calibration or image size changed")
        silence = (frame.stamp - now.tracked) * 1e-9
        if silence > self.config.reference.max_gap:
            return self._restart(frame, now, f"nothing was tracked for {silence:.1f} s")

        pair = FramePair(reference.frame, reference.match, frame)
        attempt = pair.track(self.config, self.matcher, now.cameras.calibration.assumed, now.expectation(frame))
        turn = now.knock(frame, attempt, self.config.doubt, self.matcher.name)
        if turn is not None:
            return self._restart(frame, now, "a camera was knocked", turn)
        if attempt.result is None or attempt.status is Status.LOST:
            return self._lose(frame, now, attempt)
        return self._append_motion(frame, now, attempt, attempt.result)

    def _restart(self, frame: StereoFrame, now: Track, why: str, turn: Float64 | None = None) -> Estimate:
        """Continue with a new reference from the predicted pose, with a covariance that covers the unknown motion.

        turn: (3,) what the right camera was knocked by; None: it was not.
        """
        estimate = self._coast(frame, now, f"{why}; tracking starts again here")
        assert self._now is not None
        self.matcher.reset()
        match = self.matcher.match(None, frame)
        place, cameras = self._now.previous.place, now.cameras
        other = frame.full.camera != now.reference.frame.full.camera
        if other or turn is not None:
            # Another calibration: what the pose owes to the old one becomes random error.
            place = PoseWithCovariance(place.pose, place.total(cameras.constants.matrix))
        starting = self._starting(frame, match, place)
        if not other:
            cameras = cameras if turn is None else cameras.knocked(frame, match, turn)
            starting = replace(starting, cameras=cameras)
        self._now = replace(starting, window=now.window)
        return replace(estimate, match=match)

    def _coast(self, frame: StereoFrame, now: Track, reason: str) -> Estimate:
        """Predict. The whole stretch since the last measurement is one unknown motion: errors do not average out."""
        now.end_window()
        measured_frame, measured_place = now.reference.last_measured
        step = now.cameras.step(measured_frame.stamp, now.predicted(measured_frame, frame))
        place = step.appended_to(measured_place)
        predicted = now.predicted(now.reference.frame, frame)
        relative = between(now.previous.motion, predicted)
        self._now = replace(now, previous=PreviousFrame(frame, place, predicted, Status.LOST, now.previous.fault))
        return Estimate(
            frame,
            Status.LOST,
            place.pose,
            place.total(now.cameras.constants.matrix),
            reason=reason,
            relative=relative,
            relative_base=to_base(relative, now.cameras.base_from_camera),
            elapsed=frame.seconds_since(now.previous.frame),
            step=step,
        )

    def _lose(self, frame: StereoFrame, now: Track, attempt: Attempt) -> Estimate:
        """Nothing was measured although the frame shows something: the next is tracked against this one.

        Unless its stereo match is what is doubted: then it is no reference.
        """
        estimate = self._coast(frame, now, attempt.reason)
        assert self._now is not None
        previous = replace(self._now.previous, fault=attempt.lasting)
        self._now = replace(self._now, previous=previous)
        if not attempt.stereo_at_fault:
            seen = Reference(frame, attempt.match, previous.place, predicted_from=now.reference.last_measured)
            self._now = replace(self._now, reference=seen, previous=seen.as_previous(Status.LOST, attempt.lasting))
        return replace(
            estimate, match=attempt.match, timings=attempt.timings, fault=attempt.fault, checks=attempt.checks
        )

    def _append_motion(self, frame: StereoFrame, now: Track, attempt: Attempt, result: TwoFrameResult) -> Estimate:
        """Append the measured motion to the path, and choose the next reference."""
        found = place_frame(now, frame, attempt, result, self.matcher.disparity_correlation)
        if not attempt.doubted or now.expectation(frame).vague:  # a doubtful velocity is better than none
            now.velocity.observe(result.relative.motion, frame.seconds_since(now.reference.frame), frame.stamp)
        self._now = self._following(frame, now, attempt, found)
        return Estimate(
            frame,
            attempt.status,
            found.place.pose,
            found.covariance,
            reason=attempt.reason,
            relative=found.relative,
            relative_base=to_base(found.relative, now.cameras.base_from_camera),
            elapsed=frame.seconds_since(now.motion_start),
            landmarks=result.landmarks,
            fault=attempt.fault,
            checks=attempt.checks,
            chi2=result.solution.chi2,
            calibration=now.cameras.calibration.learned,
            step=found.step,
            match=attempt.match,
            corrections=found.corrections,
            timings=attempt.timings,
        )

    def _following(self, frame: StereoFrame, now: Track, attempt: Attempt, found: MeasuredPlace) -> Track:
        """Tracking after a measured frame: the next reference, if the view has moved and the stereo match is sound."""
        if attempt.stereo_at_fault or found.result.median_flow < self.config.reference.min_flow:
            previous = PreviousFrame(frame, found.place, found.motion, attempt.status, attempt.lasting)
            return replace(now, previous=previous, tracked=frame.stamp)
        successor = Reference(frame, attempt.match, found.place, found.arrival, now.reference.frame.stamp)
        previous = successor.as_previous(attempt.status, attempt.lasting)
        return replace(now, reference=successor, previous=previous, tracked=frame.stamp)

    def _starting(self, frame: StereoFrame, match: Match, place: PoseWithCovariance) -> Track:
        """Tracking that begins at a frame, whose place is known."""
        reference, config = Reference(frame, match, place), self.config
        return Track(
            reference,
            reference.as_previous(Status.TRACKING),
            CameraPair.first_seen(frame, match, self.base_from_camera, config.calibration),
            ConstantVelocity(config.motion_prior, static=config.pose.initial_motion == "static"),
            make_window(config, self.matcher.disparity_correlation),
            frame.stamp,
        )
