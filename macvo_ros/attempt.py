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
from macvo_ros.scene_check import find_dissent, other_motion, row_error
from macvo_ros.se3 import log_so3
from macvo_ros.status import Status, judge
from macvo_ros.two_frame import TooFewPoints, TwoFrameResult, two_frame_motion

Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Attempt:
    """One try at the motion to a frame; without a result, `reason` says why."""

    match: Match
    result: TwoFrameResult | None
    status: Status
    reason: str
    timings: dict[str, float]

    @property
    def inliers(self) -> int:
        """Keypoints that agree on the motion, 0 if it is not to be believed."""
        return 0 if self.result is None or self.status is Status.LOST else int(self.result.solution.inlier.sum())

    @property
    def rank(self) -> tuple[int, int]:
        """Less is better: first the status, then the keypoints that agree."""
        return int(self.status), -self.inliers


@dataclass(frozen=True, eq=False)
class FramePair:
    """A frame to track against, with its matches, and the frame to track."""

    reference: StereoFrame
    reference_match: Match
    current: StereoFrame

    def track(
        self, config: Config, matcher: Matcher, field: CalibrationField, prior: MotionPrior, *, predictable: bool
    ) -> Attempt:
        """Try from the prediction; where there is none or it misled, from sparse features; last from the best so far.

        predictable: whether the prior's mean is a prediction and not merely "does not move".
        """
        best = self._attempt(config, matcher, field, prior.motion, prior) if predictable else None
        if best is not None and best.status is Status.TRACKING:
            return best
        found = bootstrap_motion(self.reference, self.reference_match.disparity, self.current)
        if found is not None or best is None:
            second = self._attempt(config, matcher, field, prior.motion if found is None else found, prior)
            best = second if best is None or second.rank < best.rank else best
        if best.status is not Status.TRACKING and best.result is not None:
            third = self._attempt(config, matcher, field, best.result.relative.motion, prior)
            best = third if third.rank < best.rank else best
        return best

    def _attempt(
        self, config: Config, matcher: Matcher, field: CalibrationField, seed: Float64, prior: MotionPrior
    ) -> Attempt:
        """Match and solve, starting from the (4, 4) motion `seed`."""
        clock = time.perf_counter()
        match = matcher.match(self.reference, self.current, Prediction(seed, self.reference_match.disparity))
        timings = {"match": time.perf_counter() - clock}
        try:
            result = two_frame_motion(
                config, matcher, field, self.reference, self.reference_match, self.current, match, seed, prior
            )
        except TooFewPoints as few:
            return Attempt(match, None, Status.LOST, str(few), timings)
        result, dissent, contested = self._look_round(config, result, match, prior)
        inlier = result.solution.inlier
        status, reason = judge(
            inliers=int(inlier.sum()),
            keypoints=len(inlier),
            min_points=config.pose.min_points,
            prior_share=result.prior_share,
            chi2=result.solution.chi2,
            row_error=row_error(match, self.current.camera),
            dissent=dissent,
            two_motions=contested,
        )
        return Attempt(match, result, status, reason, {**timings, **result.timings})

    def _look_round(
        self, config: Config, result: TwoFrameResult, match: Match, prior: MotionPrior
    ) -> tuple[TwoFrameResult, float, bool]:
        """Ask the rest of the image: how much of it dissents, and whether it agrees on another motion.

        If it does, either may be the camera's, so the covariance takes in the other: in every direction, and with a
        standard deviation of twice the difference, since the mistake would repeat itself from frame to frame.
        """
        motion = result.relative.motion
        camera = self.current.camera
        found = find_dissent(camera, (self.reference.left, self.current.left), self.reference_match, match, motion)
        other = other_motion(config, camera, self.reference_match, match, prior.motion, found)
        if other is None:
            return result, found.share, False
        shift = np.linalg.norm(other[:3, 3] - motion[:3, 3])
        turn = np.linalg.norm(log_so3(other[:3, :3] @ motion[:3, :3].T))
        covariance = result.relative.covariance + 4.0 * np.diag([shift**2] * 3 + [turn**2] * 3)
        return replace(result, relative=RelativeMotion(motion, covariance)), found.share, True
