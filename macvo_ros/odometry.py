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

from macvo_ros.attempt import Attempt, Expectation, FramePair
from macvo_ros.calibration_error import CalibrationField
from macvo_ros.config import Config
from macvo_ros.error_correlation import DisparitySensitivity, shared_frame_covariance
from macvo_ros.estimate import Estimate, RelativeMotion
from macvo_ros.frame import StereoFrame
from macvo_ros.frame_check import Trouble, find_trouble, grain
from macvo_ros.matching.matcher import Match, Matcher, make_matcher
from macvo_ros.motion_prior import ConstantVelocity
from macvo_ros.row_habit import RowHabit
from macvo_ros.scene_check import row_error, rows_left, stereo_spread
from macvo_ros.status import ROW_TROUBLE, Status
from macvo_ros.trajectory import (
    PoseWithCovariance,
    base_jacobian,
    between,
    extend,
    grown_axes,
    habit_covariance,
    symmetric_positive,
    to_base,
)
from macvo_ros.two_frame import TwoFrameResult
from macvo_ros.wariness import Wariness

Float64 = npt.NDArray[np.float64]

_MISSED, _MANY_MISSED = 1.5, 0.25
"""Times the usual interval between frames, and seconds: beyond both, so many pairs were missed that it matters."""
_SLOWER = 1.1
"""The usual interval is the shortest of late; it grows by so much a frame."""


@dataclass(frozen=True, eq=False)
class _Reference:
    """A frame to track against: what it showed, where it was, and how its disparity errors went into that."""

    frame: StereoFrame
    match: Match
    place: PoseWithCovariance
    arrival: DisparitySensitivity | None = None
    """Sensitivity of `place`, odom axes, to this frame's own disparity errors."""
    measured: _Measured | None = None
    """Where the last motion was measured, when `place` is only predicted from there."""


@dataclass(frozen=True, eq=False)
class _Measured:
    """The last place that was measured, and when."""

    place: PoseWithCovariance
    frame: StereoFrame


@dataclass(frozen=True, eq=False)
class _Last:
    """The previous frame, whatever it was worth: where it was, and its motion from the reference (camera)."""

    frame: StereoFrame
    place: PoseWithCovariance
    motion: RelativeMotion
    status: Status


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
        self.matcher = matcher or make_matcher(self.config)
        self._velocity = ConstantVelocity(self.config.motion_prior, static=self.config.pose.initial_motion == "static")
        self._reference: _Reference | None = None
        self._last: _Last | None = None
        self._start = PoseWithCovariance(np.eye(4), symmetric_positive(np.zeros((6, 6))))
        self._tracked = 0
        self._field: CalibrationField | None = None
        self._rows = RowHabit()
        self._wariness = Wariness()
        self._interval = 0.0
        self._kept = 0
        self._velocity_from = 0

    def reset(self, pose: Float64 | None = None, covariance: Float64 | None = None) -> None:
        """Forget everything and continue from `pose` (4, 4) of the base in odom with `covariance` (6, 6)."""
        self.matcher.reset()
        self._velocity.reset()
        self._reference = self._last = None
        self._wariness = Wariness()
        self._interval = 0.0
        self._rows.forget()
        self._start = PoseWithCovariance(
            np.eye(4) if pose is None else np.array(pose, dtype=np.float64),
            symmetric_positive(np.zeros((6, 6)) if covariance is None else np.asarray(covariance, dtype=np.float64)),
        )

    def track(self, frame: StereoFrame) -> Estimate:
        """Track one frame. Never raises for bad content: a black image is a LOST estimate.

        Stamps must increase; what to do when they do not is the caller's to decide (`reset`, or leave the frame out).
        """
        started = time.perf_counter()
        estimate = self._track(frame)
        estimate.timings["total"] = time.perf_counter() - started
        return estimate

    def flush(self) -> Estimate | None:
        """Nothing waits here; `PipelinedOdometry` has a last frame to hand out."""
        return None

    def _track(self, frame: StereoFrame) -> Estimate:
        trouble = find_trouble(frame, self._last.frame if self._last else None)
        reference = self._reference
        if reference is None or self._last is None:
            return self._begin(frame, trouble)
        gap = _seconds(reference.frame, frame)
        since_last = _seconds(self._last.frame, frame)
        interval = self._interval
        self._interval = min(since_last, _SLOWER * interval) if interval else since_last
        if trouble is not None:
            return self._lost(frame, trouble.reason, Status.DEGRADED if trouble.frozen else Status.LOST)
        if frame.camera != reference.frame.camera:
            return self._restart(frame, "the calibration or image size changed")
        silence = (frame.stamp - self._tracked) * 1e-9
        if silence > self.config.reference.max_gap:
            return self._restart(frame, f"nothing was tracked for {silence:.1f} s")
        if row_error(reference.match, reference.frame.camera) > 1.0:
            return self._restart(frame, ROW_TROUBLE)

        attempt = FramePair(reference.frame, reference.match, frame).track(
            self.config,
            self.matcher,
            self._calibration(),
            Expectation(
                self._velocity.prior(gap, self._stale(reference.frame)),
                self._velocity.unknown(gap),
                predictable=self._velocity.known and self._last.status is not Status.LOST,
                bridged=self._last.status is Status.LOST,
                looks=self._out_of_the_ordinary(since_last, interval),
                wary=self._wariness.active,
            ),
        )
        self._wariness.update(contested=attempt.contested, lost=attempt.status is Status.LOST)
        noise, spread = grain(frame.left), stereo_spread(attempt.match)
        if rows_left(attempt.match, frame.camera, self._rows.usual(noise), spread):
            # Its disparities are no measurement: the reference is kept, and nothing is learned from them.
            return replace(self._lost(frame, ROW_TROUBLE, Status.LOST), match=attempt.match, timings=attempt.timings)
        if attempt.result is None or attempt.status is Status.LOST:
            if attempt.result is not None and attempt.jumps:
                self._velocity.compare(attempt.result.relative.motion, gap)
            estimate = self._lost(frame, attempt.reason, Status.LOST)
            measured = reference.measured or _Measured(reference.place, reference.frame)
            self._refer_to(frame, attempt.match, self._last.place, status=Status.LOST, measured=measured)
            return replace(estimate, match=attempt.match, timings=attempt.timings)
        self._tracked = frame.stamp
        if attempt.status is Status.TRACKING:
            self._rows.learn(attempt.match, noise, spread)
        return self._found(frame, attempt, attempt.result, reference, self._last, since_last)

    def _begin(self, frame: StereoFrame, trouble: Trouble | None) -> Estimate:
        """First frame: it becomes the reference, unless it shows nothing."""
        place = self._start
        if trouble is not None:
            return Estimate(frame, Status.LOST, place.pose, place.covariance, reason=trouble.reason)
        match = self.matcher.match(None, frame)
        self._refer_to(frame, match, place)
        self._tracked = frame.stamp
        return Estimate(frame, Status.INITIALIZING, place.pose, place.covariance, reason="first frame", match=match)

    def _restart(self, frame: StereoFrame, why: str) -> Estimate:
        """Continue with a new reference from the predicted pose, with a covariance that covers the unknown motion."""
        estimate = self._lost(frame, f"{why}; tracking starts again here", Status.LOST)
        assert self._last is not None
        self.matcher.reset()
        match = self.matcher.match(None, frame)
        self._refer_to(frame, match, self._last.place)
        self._rows.forget()
        self._rows.learn(match, grain(frame.left), stereo_spread(match))
        self._velocity.reset()
        self._tracked = frame.stamp
        return replace(estimate, match=match)

    def _refer_to(
        self,
        frame: StereoFrame,
        match: Match,
        place: PoseWithCovariance,
        arrival: DisparitySensitivity | None = None,
        status: Status = Status.TRACKING,
        measured: _Measured | None = None,
    ) -> None:
        """Track the following frames against this one; measured: see `_Reference`."""
        self._reference = _Reference(frame, match, place, arrival, measured)
        self._last = _Last(frame, place, RelativeMotion(np.eye(4), np.zeros((6, 6))), status)
        self._kept = 0
        if self._field is None or self._field.camera != frame.camera:
            # Another camera has another calibration: what the pose owes to the old one becomes random error.
            old = place.total(self._constants()) if self._field is not None else place.covariance
            self._reference = replace(self._reference, place=PoseWithCovariance(place.pose, old), arrival=None)
            self._field = CalibrationField.of(frame.camera)
            self._rows.forget()
            self._rows.learn(match, grain(frame.left), stereo_spread(match))

    def _lost(self, frame: StereoFrame, reason: str, status: Status) -> Estimate:
        """Predict. The whole stretch since the last measurement is one unknown motion: errors do not average out."""
        assert self._reference is not None
        assert self._last is not None
        since_last = _seconds(self._last.frame, frame)
        measured = self._reference.measured or _Measured(self._reference.place, self._reference.frame)
        place = extend(measured.place, to_base(self._predicted(measured.frame, frame), self.base_from_camera))
        predicted = self._predicted(self._reference.frame, frame)
        relative = between(self._last.motion, predicted)
        self._last = _Last(frame, place, predicted, Status.LOST)
        return Estimate(
            frame,
            status,
            place.pose,
            place.total(self._constants()),
            reason=reason,
            relative=relative,
            relative_base=to_base(relative, self.base_from_camera),
            elapsed=since_last,
        )

    def _predicted(self, earlier: StereoFrame, later: StereoFrame) -> RelativeMotion:
        """What the camera is thought to have done between two frames."""
        seconds = _seconds(earlier, later)
        return RelativeMotion(self._velocity.predict(seconds), self._velocity.covariance(seconds, self._stale(earlier)))

    def _stale(self, frame: StereoFrame) -> float:
        """Seconds from the last believed velocity to a frame."""
        return max(0.0, (frame.stamp - self._velocity_from) * 1e-9) if self._velocity.known else 0.0

    def _out_of_the_ordinary(self, since_last: float, interval: float) -> bool:
        """Whether a motion, `since_last` seconds after the last frame, is more than the next of many small steps.

        So it is at the start, after lost frames and many missed pairs; and while the camera stands, now and then. A
        pair or two are missed all the time where more come in than can be tracked, and care takes twice the time.
        """
        assert self._last is not None
        missed = since_last > max(_MISSED * interval, _MANY_MISSED)
        if not self._velocity.known or self._last.status is Status.LOST or missed:
            return True
        return self._kept > 0 and self._kept & (self._kept - 1) == 0

    def _found(
        self,
        frame: StereoFrame,
        attempt: Attempt,
        result: TwoFrameResult,
        reference: _Reference,
        last: _Last,
        since_last: float,
    ) -> Estimate:
        """Append the measured motion to the reference's pose, and choose the next reference."""
        in_base = to_base(result.relative, self.base_from_camera)
        jacobian = base_jacobian(in_base.motion, self.base_from_camera)
        cross = habit_covariance(reference.place, in_base)
        if reference.arrival is not None:
            departure = result.sources.reference_disparity.in_axes(jacobian)
            cross += shared_frame_covariance(reference.arrival, departure, self.matcher.disparity_correlation)
        place = extend(reference.place, in_base, cross, jacobian @ result.calibration, measured=True)

        self._rows.learn_pattern(result.pattern)
        constant = result.calibration @ self._constants() @ result.calibration.T
        whole = RelativeMotion(result.relative.motion, symmetric_positive(result.relative.covariance + constant))
        relative = whole if last.frame is reference.frame else between(last.motion, whole)
        if not (attempt.contested or self._wariness.active):
            self._velocity.observe(whole.motion, _seconds(reference.frame, frame))
            self._velocity_from = frame.stamp
        inlier = result.solution.inlier
        moved = float(np.median(np.linalg.norm(result.flow[inlier], axis=1)))
        if moved >= self.config.reference.min_flow:
            arrival = result.sources.current_disparity.in_axes(grown_axes(reference.place.pose) @ jacobian)
            self._refer_to(frame, attempt.match, place, arrival)
        else:
            self._last = _Last(frame, place, whole, attempt.status)
            self._kept += 1
        return Estimate(
            frame,
            attempt.status,
            place.pose,
            place.total(self._constants()),
            reason=attempt.reason,
            relative=relative,
            relative_base=to_base(relative, self.base_from_camera),
            elapsed=since_last,
            landmarks=result.landmarks,
            chi2=result.solution.chi2,
            match=attempt.match,
            timings=attempt.timings,
        )

    def _calibration(self) -> CalibrationField:
        assert self._field is not None
        return self._field

    def _constants(self) -> Float64:
        """Covariance of the calibration's unknown constants, as measured so far."""
        return self._rows.calibration_variance * self._calibration().covariance


def _seconds(earlier: StereoFrame, later: StereoFrame) -> float:
    return (later.stamp - earlier.stamp) * 1e-9
