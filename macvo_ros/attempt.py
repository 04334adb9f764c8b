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

"""From two frames to a motion, trying again from a better start where the first one misled."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from macvo_ros.calibration_error import CalibrationField
from macvo_ros.config import Config
from macvo_ros.estimate import RelativeMotion
from macvo_ros.frame import StereoFrame
from macvo_ros.matching.matcher import Match, Matcher, Prediction
from macvo_ros.motion_bootstrap import bootstrap_motion
from macvo_ros.pose_solver import MotionPrior
from macvo_ros.scene_check import (
    Dissent,
    coverage,
    find_dissent,
    other_motion,
    rival_motion,
    row_error,
    unlike_share,
)
from macvo_ros.se3 import log_so3
from macvo_ros.status import Status, errors_are_shared, is_contested, judge, looks_wrong
from macvo_ros.two_frame import TooFewPoints, TwoFrameResult, two_frame_motion

Float64 = npt.NDArray[np.float64]

_CONTRADICTION = 9.0
"""Squared distance, in its sigmas, at which a motion contradicts its prediction."""
_FEW = 3
"""Where the keypoints' errors must be feared to be alike, all are worth what it takes to determine a motion."""


@dataclass(frozen=True, eq=False)
class Attempt:
    """One try at the motion to a frame; without a result, `reason` says why."""

    match: Match
    result: TwoFrameResult | None
    status: Status
    reason: str
    timings: dict[str, float]
    contested: bool = False
    """Something else than the world may have moved so (`status.is_contested`)."""
    jumps: bool = False
    """The motion contradicts its prediction."""
    unlike: float = 0.0
    """The part of the image that does not look as after the motion; 0 where that was not asked."""

    @property
    def inliers(self) -> int:
        """Keypoints that agree on the motion, 0 if it is not to be believed."""
        return 0 if self.result is None or self.status is Status.LOST else int(self.result.solution.inlier.sum())

    @property
    def rank(self) -> tuple[int, bool, int]:
        """Less is better: first the status, then looks, then the keypoints that agree."""
        return int(self.status), looks_wrong(self.unlike), -self.inliers


@dataclass(frozen=True, eq=False)
class Expectation:
    """What is thought of the motion beforehand.

    prior: the prediction. unknown: the same without trust in the last velocity. predictable: whether the prior's mean
    is a prediction and not merely "does not move". bridged: whether the frames just before the current one were lost.
    looks: whether the motion is to be compared with the looks of the image even where it is as predicted. wary: whether
    two motions were to be seen just now (`wariness.py`).
    """

    prior: MotionPrior
    unknown: MotionPrior
    predictable: bool
    bridged: bool
    looks: bool = False
    wary: bool = False

    def contradicted_by(self, motion: Float64) -> bool:
        """Whether a (4, 4) motion is so far from the prediction that the prediction must be wrong."""
        mean = self.prior.motion
        offset = np.concatenate((motion[:3, 3] - mean[:3, 3], log_so3(motion[:3, :3] @ mean[:3, :3].T)))
        return bool(offset @ self.prior.information @ offset > _CONTRADICTION)


@dataclass(frozen=True, eq=False)
class FramePair:
    """A frame to track against, with its matches, and the frame to track."""

    reference: StereoFrame
    reference_match: Match
    current: StereoFrame

    def track(self, config: Config, matcher: Matcher, field: CalibrationField, expected: Expectation) -> Attempt:
        """Try from the prediction; where there is none or it misled, from sparse features; last from the best yet.

        Matchers find what they are led to. Where the step is out of the ordinary, a motion counts only if matching from
        there finds it again; by what it differs, the covariance is larger.
        """
        prior = expected.prior
        best = self._attempt(config, matcher, field, prior.motion, expected) if expected.predictable else None
        contested = best is not None and best.contested
        if best is None or best.status is not Status.TRACKING:
            # Led by what the first try found, the next may not see any more what spoke against it.
            expected = replace(expected, looks=True, wary=expected.wary or contested)
            found = bootstrap_motion(self.reference, self.reference_match.disparity, self.current)
            if found is not None or best is None:
                second = self._attempt(config, matcher, field, prior.motion if found is None else found, expected)
                best = second if best is None or second.rank < best.rank else best
        if best.result is not None and expected.looks:
            before = best.result.relative.motion
            again = self._attempt(config, matcher, field, before, expected)
            if again.rank[:2] <= best.rank[:2] and again.result is not None:
                believed = best.status is not Status.LOST
                best = replace(again, result=_either(again.result, before, 1.0)) if believed else again
        return replace(best, contested=True) if contested else best

    def _attempt(
        self, config: Config, matcher: Matcher, field: CalibrationField, seed: Float64, expected: Expectation
    ) -> Attempt:
        """Match and solve, starting from the (4, 4) motion `seed`."""
        clock = time.perf_counter()
        match = matcher.match(self.reference, self.current, Prediction(seed, self.reference_match.disparity))
        timings = {"match": time.perf_counter() - clock}

        def solve(start: Float64, prior: MotionPrior) -> TwoFrameResult:
            return two_frame_motion(
                config, matcher, field, self.reference, self.reference_match, self.current, match, start, prior
            )

        try:
            result = solve(seed, expected.prior)
            jumps = expected.contradicted_by(result.relative.motion)
            if jumps:
                # A prediction that is wrong (a bad stamp, a collision) must not pull the motion towards it.
                result = solve(result.relative.motion, expected.unknown)
        except TooFewPoints as few:
            return Attempt(match, None, Status.LOST, str(few), timings)
        inlier = result.solution.inlier
        count, chi2 = int(inlier.sum()), result.solution.chi2
        found = self._dissent(match, result.relative.motion)
        asked = jumps or expected.looks or expected.wary
        unlike = self._unlike(result.relative.motion) if asked else 0.0
        if errors_are_shared(
            count, len(inlier), config.pose.min_points, chi2, found.share, unlike, bridged=expected.bridged
        ):
            result = _widened(result, result.relative.covariance * max(0.0, count / _FEW - 1.0))
        if expected.wary:
            # Something may move with the camera and hold all keypoints: what the camera did before it came counts too.
            result = _either(result, expected.prior.motion)
        result, two_motions = self._look_round(config, result, match, expected.prior, found)
        still = float(np.median(np.linalg.norm(result.flow[inlier], axis=1))) < config.reference.min_flow
        covered = coverage(self.current.camera, result.landmarks.pixel[inlier])
        status, reason = judge(
            inliers=count,
            keypoints=len(inlier),
            min_points=config.pose.min_points,
            prior_share=result.prior_share,
            chi2=chi2,
            row_error=row_error(match, self.current.camera),
            dissent=found.share,
            two_motions=two_motions,
            unlike=unlike,
            jumps=jumps,
            wary=expected.wary,
            still=still,
            coverage=covered,
        )
        contested = is_contested(found.share, unlike, covered, two_motions=two_motions, jumps=jumps, still=still)
        return Attempt(match, result, status, reason, {**timings, **result.timings}, contested, jumps, unlike)

    def _unlike(self, motion: Float64) -> float:
        images = self.reference.left, self.current.left
        return unlike_share(self.current.camera, images, self.reference_match, motion)

    def _dissent(self, match: Match, motion: Float64) -> Dissent:
        images = self.reference.left, self.current.left
        return find_dissent(self.current.camera, images, self.reference_match, match, motion)

    def _look_round(
        self, config: Config, result: TwoFrameResult, match: Match, prior: MotionPrior, found: Dissent
    ) -> tuple[TwoFrameResult, bool]:
        """Ask the rest of the image, and the keypoints that were rejected, whether they agree on another motion.

        If they do, either may be the camera's, so the covariance takes in the other.
        """
        camera = self.current.camera
        other = other_motion(config, camera, self.reference_match, match, prior.motion, found)
        if other is None:
            other = rival_motion(config, camera, self.reference_match, result, prior.motion)
        return (result, False) if other is None else (_either(result, other), True)


def _either(result: TwoFrameResult, other: Float64, sigmas: float = 2.0) -> TwoFrameResult:
    """The same motion with a covariance that takes in another (4, 4) one, in every direction.

    The standard deviation is twice the difference, since the mistake would repeat itself from frame to frame, or
    `sigmas` times.
    """
    motion = result.relative.motion
    shift = np.linalg.norm(other[:3, 3] - motion[:3, 3])
    turn = np.linalg.norm(log_so3(other[:3, :3] @ motion[:3, :3].T))
    return _widened(result, sigmas**2 * np.diag([shift**2] * 3 + [turn**2] * 3))


def _widened(result: TwoFrameResult, more: Float64) -> TwoFrameResult:
    """The same motion with a (6, 6) covariance that is larger by so much."""
    relative = RelativeMotion(result.relative.motion, result.relative.covariance + more)
    return replace(result, relative=relative)
