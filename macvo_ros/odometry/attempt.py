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
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from macvo_ros.doubt.checks import STEREO, run_checks
from macvo_ros.doubt.consistency import CHI2_6
from macvo_ros.doubt.mixture import mixed
from macvo_ros.doubt.posterior import ESTABLISHED, Doubt, doubt, doubtful
from macvo_ros.doubt.reasons import doubt_reason, thin_evidence
from macvo_ros.geometry.se3 import difference
from macvo_ros.images.frame import StereoFrame
from macvo_ros.matching.epipolar_error import RowCheck
from macvo_ros.matching.matcher import Match, Matcher, Prediction
from macvo_ros.matching.motion_seed import feature_motion, same_start, seed_motion
from macvo_ros.motion.keypoint_matches import MatchedFrames, TooFewPoints
from macvo_ros.motion.two_frame import TwoFrameResult, two_frame_motion
from macvo_ros.odometry.status import Status
from macvo_ros.settings.config import Config
from macvo_ros.uncertainty.motion_prior import MotionPrior
from macvo_ros.uncertainty.online_calibration import AssumedCalibration
from macvo_ros.uncertainty.relative_motion import RelativeMotion

Float64 = npt.NDArray[np.float64]

_VAGUE = 0.5
"""Sigma of a prediction, in those of an unknown motion, from which it says little; chosen."""


@dataclass(frozen=True, eq=False)
class Attempt:
    """One try at the motion to a frame. result: None where nothing was measured; fault: probability of one."""

    match: Match
    result: TwoFrameResult | None
    status: Status
    reason: str
    fault: float
    timings: dict[str, float]
    checks: dict[str, float] = field(default_factory=dict)
    doubted: bool = False
    """The fault is likelier than `doubt.false_alarm_rate` allows in a sound frame."""
    stereo_at_fault: bool = False
    """The stereo match is what is doubted, so that the frame is no reference for others."""

    @property
    def rank(self) -> tuple[float, int]:
        """Less is better: less doubt, then more keypoints that agree."""
        return self.fault, 0 if self.result is None else -int(self.result.solution.inlier.sum())


@dataclass(frozen=True, eq=False)
class Expectation:
    """What is thought of a frame beforehand.

    prior: the predicted motion. unknown: the same without trust in the last velocity. fault: probability that the last
    frame was at fault. rows: what is usual for these cameras.
    """

    prior: MotionPrior
    unknown: MotionPrior
    fault: float
    rows: RowCheck

    @property
    def vague(self) -> bool:
        """Whether a velocity was known, but so long ago that its prediction is half as vague as none (about 0.45 s)."""
        share = float(np.sqrt(self.unknown.information[0, 0] / self.prior.information[0, 0]))
        return share > _VAGUE and not np.isclose(share, 1.0)

    def refuted_by(self, motion: Float64) -> bool:
        """Whether a (4, 4) motion is so far from the prediction that the prediction must be wrong."""
        offset = difference(self.prior.motion, motion)
        return bool(offset @ self.prior.information @ offset > CHI2_6)


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
        first = self._attempt(config, matcher, calibration, seed, expected)
        if first.fault <= doubtful(config.doubt) or not matcher.uses_prediction:
            return first
        found = feature_motion(self.reference, self.reference_match, self.current)
        if found is None or same_start(self.reference, self.reference_match, seed, found):
            return first  # the dense search would find the same again
        return min(
            first, self._attempt(config, matcher, calibration, found, expected), key=lambda attempt: attempt.rank
        )

    def _attempt(
        self, config: Config, matcher: Matcher, calibration: AssumedCalibration, seed: Float64, expected: Expectation
    ) -> Attempt:
        """Match and solve, starting from the (4, 4) motion `seed`; then check, and mix in what else it may be."""
        clock = time.perf_counter()
        match = matcher.match(self.reference, self.current, Prediction(seed, self.reference_match.disparity))
        timings = {"match": time.perf_counter() - clock}

        frames = MatchedFrames(self.reference, self.reference_match, self.current, match)

        def solve(start: Float64, prior: MotionPrior) -> TwoFrameResult:
            return two_frame_motion(config, matcher, calibration, frames, start, prior)

        try:
            prior = expected.prior
            result = solve(seed, prior)
            if expected.refuted_by(result.relative.motion):
                # A prediction that is wrong (a bad stamp, a collision) must not pull the motion towards it.
                prior = expected.unknown
                result = solve(result.relative.motion, prior)
        except TooFewPoints as few:
            return Attempt(match, None, Status.LOST, str(few), 1.0, timings)
        checks, second = run_checks(
            config,
            (self.reference, self.current),
            (self.reference_match, match),
            result,
            expected.prior.motion,
            expected.rows,
            bridged=expected.vague,
        )
        held = doubt(config.doubt, matcher.name, checks, expected.fault)
        other = RelativeMotion(prior.motion, np.asarray(np.linalg.inv(prior.information), dtype=np.float64))
        if second is not None:
            other = RelativeMotion(second.motion, result.relative.covariance)
        status, reason = _judge(config, matcher.name, result, held, getattr(checks, held.check))
        if status is not Status.TRACKING:
            result = replace(result, relative=mixed(result.relative, other, held.fault))
        doubted = held.fault > doubtful(config.doubt)
        at_fault = doubted and held.check in STEREO
        timings = {**timings, **result.timings}
        return Attempt(match, result, status, reason, held.fault, timings, vars(checks), doubted, at_fault)


def _judge(config: Config, matcher: str, result: TwoFrameResult, held: Doubt, figure: float) -> tuple[Status, str]:
    """The contract of `Status`, and a sentence where it is not TRACKING; figure: of the check that speaks most."""
    if held.fault > doubtful(config.doubt):
        sentence = doubt_reason(matcher, held.check, figure)
        return (Status.LOST if held.fault > ESTABLISHED else Status.DEGRADED), sentence
    thin = thin_evidence(result)
    return (Status.DEGRADED, thin) if thin else (Status.TRACKING, "")
