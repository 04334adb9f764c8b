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

"""Learns the errors of the calibration from what motions leave unexplained: an information filter.

The residuals of a frame are r = J motion + B error + noise. With the motion projected out, each frame adds
information B'^T W B' and a score B'^T W r' about the errors (`Evidence`); they add up over frames, are slowly
forgotten, and meet a prior. What a frame cannot show (standing still, driving straight) adds nothing there, so it keeps
its prior.

Frames are worth less than their formal information, for two reasons. Residuals of successive frames are alike: by how
much is *measured*, the scores of blocks of frames should scatter as their information says, and by what factor they
scatter more, all information is divided (`inflation`). And matching errs by hundredths of a pixel in the same way in
every frame, which no number of frames takes away: a thousand frames say no more than one frame divided by a constant
(`_MISFIT`).

Yaw and principal point change the scale or the direction of *all* motions, and to see them takes differences of
differences of disparities: there a bias of matching is magnified. They are corrected only where they are significant
beyond what biases do; the covariance says at all times what they may be.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Float64 = npt.NDArray[np.float64]

_BLOCK = 1.5
"""Seconds of a block: longer than errors of successive frames are alike (`trajectory._CORRELATED_KEPT`)."""
MEMORY = 150.0
"""Seconds after which evidence counts 1/e: temperature moves cameras over minutes."""
_INFLATION = 20.0
"""Of the scatter of scores before any is seen: what errors that fade over 20 frames make of a block."""
_BLOCKS_BEFORE = 4.0
"""Blocks that this is worth against measured ones."""
FEW = 50.0
"""Frames that are worth nothing yet: points are seen in many of them, and are mismatched in all alike."""
_BEGIN = 5.0
"""Seconds of evidence over which corrections set in: a few frames that all see the same points say little for sure.
Chosen: at once, the TartanAir clip with its perfect calibration erred a third more (no log)."""
_OUTLYING = 4.0
"""Times the usual scatter, which a block counts for at most."""
_MISFIT, _MISFIT_SCALING = 0.3, 9.0
"""What constant errors of matching leave, in variances of one frame's formal estimate; of shapes, and of what scales.
`python -m bench.calibration apparent`: in such sigmas, errors of perfect cameras appear to be up to 2 in rendered
scenes; on KITTI 09 yaw appears to be -3.6 and centre_u 7.0, and the truth contradicts both: 9 is chosen between."""
_CHANGING = 0.5
"""The same of what differs between parts of a drive: half a second of KITTI 09 and all before it then differ by at most
4.0 sigma, in its last turn (replayed from recorded evidence; no log)."""
_SIGNIFICANT = (2.0, 4.0)
"""Sigmas: what scales is not corrected below, and as estimated above; in proportion between. Chosen on KITTI 09."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """What one frame says of the errors c of the calibration: information (C, C), and score (C,), information times c.

    Both about c itself, not about the part of it that was not yet corrected.
    """

    information: Float64
    score: Float64

    def plus(self, other: Evidence) -> Evidence:
        """Of both together, whose noise has nothing in common."""
        return Evidence(self.information + other.information, self.score + other.score)


@dataclass(frozen=True, eq=False)
class CalibrationEstimate:
    """error: (C,) of the calibration, to be corrected; covariance: (C, C) of what remains of it then.

    apparent: (C,) what the evidence says, whether it is significant or not.
    """

    error: Float64
    covariance: Float64
    apparent: Float64

    @property
    def sigma(self) -> Float64:
        """(C,) standard deviations."""
        return np.asarray(np.sqrt(np.diagonal(self.covariance)))


class CalibrationFilter:
    """Adds up evidence about constants. Pure numpy, no randomness: the same frames give the same estimate."""

    def __init__(self, sigma: Float64, scaling: tuple[int, ...], memory: float = MEMORY, few: float = FEW) -> None:
        """sigma: (C,) of the prior, whose mean is 0: the calibration is as it was told.

        scaling: those that change the scale of motions; memory: seconds after which evidence counts 1/e; few: frames
        that are worth nothing yet.
        """
        self.sigma = np.array(sigma)
        self._memory, self._few = memory, few
        self._scaling = np.isin(np.arange(len(sigma)), scaling)
        size = len(sigma)
        self._information, self._score, self._frames = np.zeros((size, size)), np.zeros(size), 0.0
        self._seconds = 0.0
        self._block_information, self._block_score, self._block_age = np.zeros((size, size)), np.zeros(size), 0.0
        self._scatter, self._blocks = _INFLATION * _BLOCKS_BEFORE, _BLOCKS_BEFORE
        self._estimate: CalibrationEstimate | None = None

    @property
    def inflation(self) -> float:
        """By how much more than promised the scores of blocks of frames scatter, at least 1."""
        return max(1.0, self._scatter / self._blocks)

    @property
    def estimate(self) -> CalibrationEstimate:
        """What is known now; worked out when asked for."""
        if self._estimate is None:
            self._estimate = self._solve()
        return self._estimate

    def comparable(self) -> tuple[Float64, Float64]:
        """(C,) what the evidence says, and its sigma to compare it with that of other frames."""
        mean, covariance = self._posterior(np.full(len(self.sigma), _CHANGING))
        return mean, np.asarray(np.sqrt(np.diagonal(covariance)))

    def formal(self, held: npt.NDArray[np.bool_] | None = None) -> tuple[Float64, Float64]:
        """(C,) what all evidence says by its formal information, and the sigma of one frame (`bench.calibration`).

        held: (C,) those that are held to be as told.
        """
        sigma = self.sigma if held is None else np.where(held, 0.0, self.sigma)
        information = self._information * sigma[:, None] * sigma
        every = np.linalg.inv(np.eye(len(sigma)) + information)
        one = np.linalg.inv(np.eye(len(sigma)) + information / max(self._frames, 1.0))
        return np.asarray(sigma * (every @ (sigma * self._score))), np.asarray(sigma * np.sqrt(np.diagonal(one)))

    def learn(self, evidence: Evidence, seconds: float) -> None:
        """Take in one frame that is `seconds` after the last."""
        kept = float(np.exp(-max(seconds, 0.0) / self._memory))
        self._information = kept * self._information + evidence.information
        self._score = kept * self._score + evidence.score
        self._frames = kept * self._frames + 1.0
        self._seconds += seconds
        self._block_information += evidence.information
        self._block_score += evidence.score
        self._block_age += seconds
        if self._block_age >= _BLOCK:
            self._end_block()
        self._estimate = None

    def _end_block(self) -> None:
        """Compare what a block says with the estimate so far, in units of what it promises."""
        difference = self._block_score - self._block_information @ self.estimate.apparent
        # In units of the prior: what is hardly seen at all is left out.
        values, vectors = np.linalg.eigh(self._block_information * self.sigma[:, None] * self.sigma)
        seen = values > 1.0
        if seen.any():
            squares = (vectors[:, seen].T @ (difference * self.sigma)) ** 2 / values[seen]
            # A block far beyond all others is a change, not scatter.
            self._scatter += min(float(squares.mean()), _OUTLYING * self.inflation)
            self._blocks += 1.0
        self._block_information[:] = 0.0
        self._block_score[:] = 0.0
        self._block_age = 0.0

    def _solve(self) -> CalibrationEstimate:
        apparent, covariance = self._posterior(np.where(self._scaling, _MISFIT_SCALING, _MISFIT))
        sigma = np.sqrt(np.diagonal(covariance))
        low, high = _SIGNIFICANT
        share = np.clip((np.abs(apparent) / sigma - low) / (high - low), 0.0, 1.0)
        held = np.where(self._scaling, (1.0 - share) * apparent, 0.0)
        # The others as they are if those that scale are as corrected.
        of_scaling = covariance[np.ix_(self._scaling, self._scaling)]
        others = covariance[:, self._scaling] @ np.linalg.solve(of_scaling, held[self._scaling])
        begun = np.where(self._scaling, 1.0, min(self._seconds / _BEGIN, 1.0))
        error = begun * (apparent - np.where(self._scaling, held, others))
        left = apparent - error
        return CalibrationEstimate(error, covariance + np.outer(left, left), apparent)

    def _posterior(self, misfit: Float64) -> tuple[Float64, Float64]:
        """Mean (C,) and covariance (C, C) if constant errors of matching leave that much of each, (C,) `_MISFIT`.

        Scores tell of error + bias. With J their information and M = D C D the covariance of the bias, C that of one
        frame and D^2 the misfits, (J^-1 + M)^-1 = J - J (M^-1 + J)^-1 J is the information about the error alone.
        """
        # Scaled by the prior's sigma, so that radians and pixels are alike.
        formal = self._information * self.sigma[:, None] * self.sigma
        weight = 1.0 / (self.inflation * (1.0 + self._few / max(self._frames, 1.0)))
        prior = np.eye(len(self.sigma))
        root = np.sqrt(misfit)
        unbiased = (prior + formal / max(self._frames, 1.0)) / (root[:, None] * root)
        information, score = weight * formal, weight * self._score * self.sigma
        kept = prior - information @ np.linalg.inv(unbiased + information)
        covariance = np.linalg.inv(prior + kept @ information)
        mean = self.sigma * (covariance @ (kept @ score))
        return mean, np.asarray(0.5 * (covariance + covariance.T) * self.sigma[:, None] * self.sigma)
