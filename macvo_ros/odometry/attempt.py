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

"""From two frames to a motion and the doubt about it; if it is doubted, once more from features of the whole image."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from macvo_ros.doubt.checks import run_checks
from macvo_ros.doubt.posterior import ESTABLISHED, doubt, doubtful, mixed
from macvo_ros.doubt.reasons import doubt_reason
from macvo_ros.doubt.whose_motion import Predicted, whose_motion
from macvo_ros.geometry.se3 import difference
from macvo_ros.images.frame import StereoFrame
from macvo_ros.matching.matcher import Match, Matcher, Prediction
from macvo_ros.matching.motion_seed import feature_motion, same_start, seed_motion
from macvo_ros.motion.consensus import agreeing, consensus
from macvo_ros.motion.covariance import depth_is_linear
from macvo_ros.motion.keypoint_matches import MatchedFrames, TooFewPoints
from macvo_ros.motion.point_pairs import point_pairs
from macvo_ros.motion.two_frame import TwoFrameResult, two_frame_motion
from macvo_ros.odometry.status import Status
from macvo_ros.settings.config import Config
from macvo_ros.uncertainty.motion_prior import MotionPrior
from macvo_ros.uncertainty.online_calibration import AssumedCalibration
from macvo_ros.uncertainty.relative_motion import RelativeMotion

Float64 = npt.NDArray[np.float64]

_CHI2_6 = 22.46
"""99.9 % point of a chi-square variable with six degrees of freedom: a motion farther off refutes the prediction."""
_PRIOR_LIMIT = 0.3
"""Share of the information in the weakest direction from the prediction, from which the evidence is thin.
Chosen, not measured."""


@dataclass(frozen=True, eq=False)
class Attempt:
    """One try at the motion to a frame. result: None where nothing was measured; fault: probability of one."""

    match: Match
    result: TwoFrameResult | None
    status: Status
    reason: str
    fault: float
    timings: dict[str, float] = field(default_factory=dict)
    checks: dict[str, float] = field(default_factory=dict)
    doubted: bool = False
    """The fault is likelier than `doubt.false_alarm_rate` allows in a sound frame."""
    lasting: float = 1.0
    """What of the doubt may last for another frame (`Doubt.lasting`)."""
    stereo_at_fault: bool = False
    """The stereo match is what is doubted, so that the frame is no reference for others."""

    @property
    def rank(self) -> tuple[float, int]:
        """Less is better: less doubt, then more keypoints that agree."""
        return self.fault, 0 if self.result is None else -int(self.result.solution.inlier.sum())


@dataclass(frozen=True, eq=False)
class Expectation:
    """What is thought of a frame beforehand.

    prior: the predicted motion. unknown: the same without trust in the last velocity. fault: what lasts of the doubt
    about the last frame. epipolar_var: of stereo matches about their rows, as usual for these cameras, pixels^2. room:
    cubic metres that the camera may have come to since it was last measured.
    """

    prior: MotionPrior
    unknown: MotionPrior
    fault: float
    epipolar_var: float
    room: float

    @property
    def vague(self) -> bool:
        """Whether nothing is predicted: no velocity is known, or it is so old that it says no more than none."""
        return bool(self.prior.information[0, 0] <= self.unknown.information[0, 0])

    def refuted_by(self, motion: Float64) -> bool:
        """Whether a (4, 4) motion is so far from the prediction that the prediction must be wrong."""
        offset = difference(self.prior.motion, motion)
        return bool(offset @ self.prior.information @ offset > _CHI2_6)


@dataclass(frozen=True, eq=False)
class FramePair:
    """A frame to track against, with its matches, and the frame to track."""

    reference: StereoFrame
    reference_match: Match
    current: StereoFrame

    def track(
        self, config: Config, matcher: Matcher, calibration: AssumedCalibration, expected: Expectation
    ) -> Attempt:
        """Try from the predicted motion, corrected by sparse features; if that is doubted, from the whole image's."""
        seed = expected.prior.motion
        matcher.begin(self.current)
        if matcher.uses_prediction:
            seed = seed_motion(self.reference, self.reference_match, self.current, seed)
        measure = partial(_best_measured, config, matcher, calibration, expected)
        first = self._attempt(matcher, seed, measure)
        if not first.doubted or not matcher.uses_prediction:
            return first
        found = feature_motion(self.reference, self.reference_match, self.current)
        if found is None or same_start(self.reference, self.reference_match, seed, found):
            return first  # the dense search would find the same again
        return min(first, self._attempt(matcher, found, measure), key=lambda attempt: attempt.rank)

    def _attempt(
        self, matcher: Matcher, seed: Float64, measure: Callable[[MatchedFrames, Float64], Attempt]
    ) -> Attempt:
        """Match both frames near where the (4, 4) motion `seed` puts them, and measure from there."""
        clock = time.perf_counter()
        match = matcher.match(self.reference, self.current, Prediction(seed, self.reference_match.disparity))
        seconds = time.perf_counter() - clock
        attempt = measure(MatchedFrames(self.reference, self.reference_match, self.current, match), seed)
        return replace(attempt, timings={"match": seconds, **attempt.timings})


def _best_measured(
    config: Config,
    matcher: Matcher,
    calibration: AssumedCalibration,
    expected: Expectation,
    frames: MatchedFrames,
    seed: Float64,
) -> Attempt:
    """The motion that a robust solver finds from the (4, 4) `seed`, or, if that is doubted, most keypoints agree on."""
    solve = partial(two_frame_motion, config, matcher, calibration, frames)
    judge = partial(_judged, config, matcher.name, expected, frames)
    try:
        prior = expected.prior
        result = solve(seed, prior)
        if expected.refuted_by(result.relative.motion):
            # A prediction that is wrong (a bad stamp, a collision) must not pull the motion towards it.
            prior = expected.unknown
            result = solve(result.relative.motion, prior)
    except TooFewPoints as few:
        return Attempt(frames.match, None, Status.LOST, str(few), 1.0, stereo_at_fault=few.stereo_at_fault)
    first = judge(result, prior)
    agreed = _agreed_on(config, frames, result) if first.doubted else None
    if agreed is None:
        return first
    try:
        return min(first, judge(solve(agreed, prior, near=True), prior), key=lambda attempt: attempt.rank)
    except TooFewPoints:
        return first


def _agreed_on(config: Config, frames: MatchedFrames, result: TwoFrameResult) -> Float64 | None:
    """(4, 4) motion that more keypoints agree on, within what was promised of them, than on the result's."""
    camera = frames.current.full.camera
    pairs = point_pairs(camera, result.points.subset(depth_is_linear(camera, result.points)))
    motion = consensus(pairs, config.pose, config.seed)
    more = agreeing(pairs, motion).sum() > agreeing(pairs, result.relative.motion).sum()
    return motion if more else None


def _judged(
    config: Config,
    matcher: str,
    expected: Expectation,
    frames: MatchedFrames,
    result: TwoFrameResult,
    prior: MotionPrior,
) -> Attempt:
    """Check a result, and mix in what else it may be; prior: the one it was solved with."""
    checks, second = run_checks(config, frames, result, expected.prior.motion, expected.epipolar_var)
    predicted = Predicted(expected.prior, expected.unknown, config.doubt.false_alarm_rate, expected.room)
    seen = None if second is None else (second, checks.second_motion)
    other = whose_motion(result.relative, predicted, checks.appearance_mismatch, seen)
    held = doubt(config.doubt, matcher, checks, expected.fault, other)
    doubted, status, reason = held.fault > doubtful(config.doubt), Status.TRACKING, ""
    if doubted:
        status = Status.LOST if held.fault > ESTABLISHED else Status.DEGRADED
        reason = doubt_reason(matcher, held.check, checks)
    elif result.prior_share > _PRIOR_LIMIT:
        status, reason = Status.DEGRADED, "the keypoints do not constrain the motion in every direction"
    if status is not Status.TRACKING:
        alternative = RelativeMotion(prior.motion, np.asarray(np.linalg.inv(prior.information), dtype=np.float64))
        if second is not None and held.check == "second_motion":
            alternative = RelativeMotion(second, result.relative.covariance)
        result = replace(result, relative=mixed(result.relative, alternative, held.fault))
    return Attempt(
        frames.match,
        result,
        status,
        reason,
        held.fault,
        result.timings,
        vars(checks),
        doubted,
        held.lasting,
        stereo_at_fault=doubted and held.stereo,
    )
