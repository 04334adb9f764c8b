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

from macvo_ros.config import Config
from macvo_ros.error_correlation import DisparitySensitivity, shared_frame_covariance
from macvo_ros.estimate import Estimate, RelativeMotion
from macvo_ros.frame import StereoFrame
from macvo_ros.frame_check import why_unusable
from macvo_ros.matching.matcher import Match, Matcher, Prediction, make_matcher
from macvo_ros.motion_prior import ConstantVelocity
from macvo_ros.status import Status
from macvo_ros.trajectory import (
    PoseWithCovariance,
    base_jacobian,
    between,
    extend,
    grown_axes,
    symmetric_positive,
    to_base,
)
from macvo_ros.two_frame import TooFewPoints, TwoFrameResult, two_frame_motion

Float64 = npt.NDArray[np.float64]

_DEGRADED_CHI2 = 6.0
_DEGRADED_INLIERS = 0.5
_DEGRADED_PRIOR_SHARE = 0.3


@dataclass(frozen=True, eq=False)
class _Reference:
    """A frame to track against: what it showed, where it was, and how its disparity errors went into that."""

    frame: StereoFrame
    match: Match
    place: PoseWithCovariance
    arrival: DisparitySensitivity | None = None
    """Sensitivity of `place`, odom axes, to this frame's own disparity errors."""


@dataclass(frozen=True, eq=False)
class _Last:
    """The previous frame, whatever it was worth: where it was, and its motion from the reference (camera)."""

    frame: StereoFrame
    place: PoseWithCovariance
    motion: RelativeMotion


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

    def reset(self, pose: Float64 | None = None, covariance: Float64 | None = None) -> None:
        """Forget everything and continue from `pose` (4, 4) of the base in odom with `covariance` (6, 6)."""
        self.matcher.reset()
        self._velocity.reset()
        self._reference = self._last = None
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

    def _track(self, frame: StereoFrame) -> Estimate:
        trouble = why_unusable(frame, self._last.frame if self._last else None)
        reference = self._reference
        if reference is None or self._last is None:
            return self._begin(frame, trouble)
        if frame.camera != reference.frame.camera:
            return self._restart(frame, trouble, "the calibration or image size changed")
        gap = (frame.stamp - reference.frame.stamp) * 1e-9
        since_last = (frame.stamp - self._last.frame.stamp) * 1e-9
        if trouble:
            return self._lost(frame, trouble, since_last, keep_reference=True, frozen="identical" in trouble)
        if self._last.frame is not reference.frame and gap > self.config.reference.max_gap + since_last:
            return self._restart(frame, "", f"nothing was tracked for {gap:.1f} s")

        prior = self._velocity.prior(gap)
        clock = time.perf_counter()
        match = self.matcher.match(reference.frame, frame, Prediction(prior.motion, reference.match.disparity))
        timings = {"match": time.perf_counter() - clock}
        try:
            result = two_frame_motion(self.config, self.matcher, reference.frame, reference.match, frame, match, prior)
        except TooFewPoints as few:
            estimate = self._lost(frame, str(few), since_last, keep_reference=False)
            self._reference = _Reference(frame, match, PoseWithCovariance(estimate.pose, estimate.covariance))
            return replace(estimate, match=match, timings=timings)
        timings.update(result.timings)
        return self._found(frame, match, result, reference, self._last, since_last, timings)

    def _begin(self, frame: StereoFrame, trouble: str) -> Estimate:
        """First frame: it becomes the reference, unless it shows nothing."""
        if trouble:
            return Estimate(frame, Status.LOST, self._start.pose, self._start.covariance, reason=trouble)
        match = self.matcher.match(None, frame)
        self._reference = _Reference(frame, match, self._start)
        self._last = _Last(frame, self._start, _no_motion())
        return Estimate(
            frame, Status.INITIALIZING, self._start.pose, self._start.covariance, reason="first frame", match=match
        )

    def _restart(self, frame: StereoFrame, trouble: str, why: str) -> Estimate:
        """Continue with a new reference from the predicted pose, with a covariance that covers the unknown motion."""
        assert self._last is not None
        seconds = (frame.stamp - self._last.frame.stamp) * 1e-9
        estimate = self._lost(
            frame, trouble or f"{why}; tracking starts again here", seconds, keep_reference=bool(trouble)
        )
        if trouble:
            return estimate
        self.matcher.reset()
        match = self.matcher.match(None, frame)
        place = PoseWithCovariance(estimate.pose, estimate.covariance)
        self._reference = _Reference(frame, match, place)
        self._last = _Last(frame, place, _no_motion())
        self._velocity.reset()
        return replace(estimate, match=match)

    def _lost(
        self, frame: StereoFrame, reason: str, since_last: float, *, keep_reference: bool, frozen: bool = False
    ) -> Estimate:
        """Predict. The whole stretch since the reference is one unknown motion: its errors do not average out."""
        assert self._reference is not None
        assert self._last is not None
        gap = (frame.stamp - self._reference.frame.stamp) * 1e-9
        predicted = RelativeMotion(self._velocity.predict(gap), self._velocity.covariance(gap))
        place = extend(self._reference.place, to_base(predicted, self.base_from_camera))
        relative = between(self._last.motion, predicted)
        self._last = _Last(frame, place, predicted if keep_reference else _no_motion())
        return Estimate(
            frame,
            Status.DEGRADED if frozen else Status.LOST,
            place.pose,
            place.covariance,
            reason=reason,
            relative=relative,
            relative_base=to_base(relative, self.base_from_camera),
            elapsed=since_last,
        )

    def _found(
        self,
        frame: StereoFrame,
        match: Match,
        result: TwoFrameResult,
        reference: _Reference,
        last: _Last,
        since_last: float,
        timings: dict[str, float],
    ) -> Estimate:
        """Append the measured motion to the reference's pose, and choose the next reference."""
        in_base = to_base(result.relative, self.base_from_camera)
        jacobian = base_jacobian(in_base.motion, self.base_from_camera)
        sources, correlation = result.sources, self.matcher.disparity_correlation
        cross = None
        if reference.arrival is not None:
            departure = DisparitySensitivity(
                jacobian @ sources.reference_disparity.columns, sources.reference_disparity.pixel
            )
            cross = shared_frame_covariance(reference.arrival, departure, correlation)
        place = extend(reference.place, in_base, cross)

        at_reference = last.frame is reference.frame
        relative = result.relative if at_reference else between(last.motion, result.relative)
        self._velocity.observe(result.relative.motion, (frame.stamp - reference.frame.stamp) * 1e-9)
        inliers = result.solution.inlier
        moved = float(np.median(np.linalg.norm(result.flow[inliers], axis=1)))
        if moved >= self.config.reference.min_flow:
            axes = grown_axes(reference.place.pose) @ jacobian
            arrival = DisparitySensitivity(axes @ sources.current_disparity.columns, sources.current_disparity.pixel)
            self._reference = _Reference(frame, match, place, arrival)
            self._last = _Last(frame, place, _no_motion())
        else:
            self._last = _Last(frame, place, result.relative)
        status, reason = self._judge(result)
        return Estimate(
            frame,
            status,
            place.pose,
            place.covariance,
            reason=reason,
            relative=RelativeMotion(relative.motion, symmetric_positive(relative.covariance)),
            relative_base=in_base if at_reference else to_base(relative, self.base_from_camera),
            elapsed=since_last,
            landmarks=result.landmarks,
            chi2=result.solution.chi2,
            match=match,
            timings=timings,
        )

    def _judge(self, result: TwoFrameResult) -> tuple[Status, str]:
        """Whether a measured motion rests on enough evidence."""
        inliers, count = int(result.solution.inlier.sum()), len(result.solution.inlier)
        if inliers < 2 * self.config.pose.min_points:
            return Status.DEGRADED, f"only {inliers} keypoints agree on the motion"
        if inliers < _DEGRADED_INLIERS * count:
            return (
                Status.DEGRADED,
                f"only {inliers} of {count} keypoints agree on the motion: moving objects or bad matches",
            )
        if result.prior_share > _DEGRADED_PRIOR_SHARE:
            return Status.DEGRADED, "the keypoints do not constrain the motion in every direction"
        if result.solution.chi2 > _DEGRADED_CHI2:
            return Status.DEGRADED, f"residuals are {result.solution.chi2:.1f} times what the matcher promised"
        return Status.TRACKING, ""


def _no_motion() -> RelativeMotion:
    return RelativeMotion(np.eye(4), np.zeros((6, 6)))
