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

Evidence comes here divided by how much more than promised it scatters (`block_scatter.py`), so that blocks of some
seconds differ as their information says. And it may err by the same in all blocks, which no number of them takes away:
that constant part is taken to be a share of the part that changes from one block to the next, which is measured. A
thousand blocks so say no more than four do.

Not all that may be wrong is. A camera that is turned has no other lens: errors come in `parts`, and which of them are
off at all is as unknown as by how much (`calibration_hypotheses.py`). What is corrected is the mean over all
combinations of them, weighed by how well each explains the evidence (`calibration_posterior.py`). Else a perfect
calibration would be corrected by noise, and what is a yaw would in part be learned as polynomials. Where more is off
than the parts explain, nothing is as told: the last combination is everything. In the covariance everything counts,
with fields as large as the evidence says: a good rectification leaves hundredths of a pixel, a poor one tenths.

Two kinds are treated with more care. A yaw scales *all* motions, and so does what fields displace the keypoints by on
the average, focal length and the rest. Each frame tells what each of them does to the scale of its motion (`scaling`),
and what they do together is held to be no more than the yaw's prior allows: else fields, of which there are many, would
scale motions by what is denied to a yaw. To see the scale takes differences of differences of disparities, where biases
are magnified: its constant part is far larger where a rectification leaves much, so less of it is corrected, by the yaw
alone. The principal point is looked at beside the others, but never corrected: only its sum with the direction of the
baseline and with what bends the image is seen, and a wrong one tilts all motions. Its prior stays in the covariance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from macvo_ros.uncertainty.block_scatter import BLOCK, Evidence
from macvo_ros.uncertainty.calibration_hypotheses import Hypotheses
from macvo_ros.uncertainty.calibration_posterior import EvidenceSoFar, Posterior, Scale, shares

Float64 = npt.NDArray[np.float64]
Bool = npt.NDArray[np.bool_]

MEMORY = 150.0
"""Seconds after which evidence counts 1/e: temperature moves cameras over minutes. Chosen."""
FEW = 50.0
"""Frames that are worth nothing yet: points are seen in many of them, and are mismatched in all alike. Chosen."""
_BEGIN = 5.0
"""Seconds of evidence over which corrections set in: a few frames that all see the same points say little for sure.
Chosen: at once, the TartanAir clip with its perfect calibration erred a third more (no log)."""
_LOOK = 1.0
"""Seconds between looks at what all evidence says: it changes slowly. Chosen."""
_CONSTANT_BIAS = 0.25
"""Variance of the constant bias of evidence, in that of one block. Where the truth is known it is 0.03 to 0.10 (three
runs through a rendered street, `python -m bench.calibration rendered` prints it); real cameras have more to err by."""
_UNLIKELY = 1e-3
"""Probability below which a size of the fields is left out of the covariance."""
_ROW_BIAS = 4.0
"""Variance of the bias of what rows show, in that of one block, in the covariance alone: pitch and roll of 0.05 degrees
in a rendered park come out 3 % too small to 8 % too large, in a street within 4 % (`python -m bench.calibration
rendered`), which is up to 1.6 sigmas of a block; before corners were tracked from between the rows it was 3.4."""


@dataclass(frozen=True, eq=False)
class CalibrationEstimate:
    """error: (C,) of the calibration, to be corrected; covariance: (C, C) of what remains of it then."""

    error: Float64
    covariance: Float64

    @property
    def sigma(self) -> Float64:
        """(C,) standard deviations."""
        return np.asarray(np.sqrt(np.diagonal(self.covariance)))


class CalibrationFilter:
    """Adds up evidence about constants. Pure numpy, no randomness: the same frames give the same estimate."""

    def __init__(
        self,
        sigma: Float64,
        considered: tuple[int, ...] = (),
        rows: tuple[int, ...] = (),
        *,
        parts: tuple[tuple[int, ...], ...] = (),
        fields: tuple[int, ...] = (),
        field_size: float = 0.0,
        scaling: int | None = None,
        mean: Float64 | None = None,
        memory: float = MEMORY,
        few: float = FEW,
    ) -> None:
        """sigma: (C,) of the prior; mean: (C,) of it, None: 0, the calibration is as it was told.

        considered: those that are never corrected; rows: those that rows show; parts: those that are off together, if
        at all, unless everything is; none: everything is. fields: those whose size is not known, none of them beside
        parts; field_size: what they are known to have at least, mean included, in sigmas of their prior. scaling: the
        one whose prior bounds the scale of motions; None: nothing does; memory: seconds after which evidence counts
        1/e; few: frames that are worth nothing yet.
        """
        self.sigma = np.array(sigma)
        self._memory, self._few = memory, few
        size = len(sigma)
        self._mean = np.zeros(size) if mean is None else np.array(mean)
        self._considered, self._scaling = np.isin(np.arange(size), considered), scaling
        self._bias, self._row_bias = (np.full(size, _CONSTANT_BIAS) for _ in range(2))
        self._row_bias[list(rows)] = _ROW_BIAS
        self._hypotheses = Hypotheses.of(size, parts, fields, field_size)
        self._evidence = Evidence(np.zeros((size, size)), np.zeros(size), np.zeros(size))
        self._frames, self._seconds, self._since, self._until_look = 0.0, 0.0, 0.0, _LOOK
        self._estimate: CalibrationEstimate | None = None

    @property
    def estimate(self) -> CalibrationEstimate:
        """What was known at the last look; worked out when asked for."""
        if self._estimate is None:
            self._estimate = self._solve()
        return self._estimate

    @property
    def field_size(self) -> float:
        """What fields have by all evidence, in sigmas of their prior."""
        so_far = self._so_far()
        found = [so_far.posterior(self._bias, supposed) for supposed in self._hypotheses.everything]
        return float(shares(found) @ self._hypotheses.field_sizes)

    def formal(self, held: Bool | None = None) -> tuple[Float64, Float64]:
        """(C,) what all evidence says by its information, and the sigma of one block (`bench.calibration`).

        held: (C,) those that are held to be as told.
        """
        sigma = self.sigma if held is None else np.where(held, 0.0, self.sigma)
        information = self._evidence.information * sigma[:, None] * sigma
        every = np.linalg.inv(np.eye(len(sigma)) + information)
        one = np.linalg.inv(np.eye(len(sigma)) + information * self._block_share)
        found = self._mean + sigma * (every @ (sigma * self._evidence.score))
        return np.asarray(found), np.asarray(sigma * np.sqrt(np.diagonal(one)))

    def claimed_scale(self) -> tuple[float, float]:
        """What all evidence says of the scale, by its information, and the sigma of one block (`bench.calibration`).

        As what the error that bounds it would have to be, in that one's unit; 0 and 0 before any motion.
        """
        scale = self._scale()
        if scale is None:
            return 0.0, 0.0
        found, _ = self.formal()
        formal = self._evidence.information * self.sigma[:, None] * self.sigma
        block = np.linalg.inv(np.eye(len(found)) + formal * self._block_share)
        unit = float(self.sigma[scale.bound])
        return unit * float(scale.by @ (found / self.sigma)), unit * float(np.sqrt(scale.by @ block @ scale.by))

    def constant_bias(self, truth: Float64) -> float:
        """Mean square by which all evidence errs, less what scatters, in variances of a block (`bench.calibration`).

        truth: (C,) the errors that there are. Over the directions that a block tells more of than the prior.
        """
        information = self._evidence.information * self.sigma[:, None] * self.sigma
        values, vectors = np.linalg.eigh(information)
        seen = values * self._block_share > 1.0
        score = self._evidence.score * self.sigma - information @ ((truth - self._mean) / self.sigma)
        squares = (vectors[:, seen].T @ score) ** 2 / values[seen]
        return float(squares.mean() - 1.0) * self._block_share if seen.any() else 0.0

    def learn(self, evidence: Evidence, seconds: float) -> None:
        """Take in one frame that is `seconds` after the last."""
        kept = float(np.exp(-max(seconds, 0.0) / self._memory))
        self._evidence = self._evidence.times(kept).plus(evidence.since(self._mean))
        self._frames = kept * self._frames + 1.0
        self._seconds = kept * self._seconds + seconds
        self._since += seconds
        self._until_look -= seconds
        if self._until_look <= 0:
            self._until_look, self._estimate = _LOOK, None

    @property
    def _block_share(self) -> float:
        """Of the evidence, what one block has; above 1 before there is one."""
        return BLOCK / self._seconds if self._seconds > 0 else 1.0

    def _solve(self) -> CalibrationEstimate:
        so_far = self._so_far()
        everything = [so_far.posterior(self._bias, supposed) for supposed in self._hypotheses.everything]
        found = [*(so_far.posterior(self._bias, supposed) for supposed in self._hypotheses.some), everything[-1]]
        mean = shares(found) @ np.array([self._corrected(each)[0] for each in found])
        error = min(self._since / _BEGIN, 1.0) * mean
        covariance = np.zeros((len(error), len(error)))
        for share, supposed in zip(shares(everything), self._hypotheses.everything, strict=True):
            if share > _UNLIKELY:
                known, remains = self._corrected(so_far.posterior(self._row_bias, supposed))
                covariance += share * (remains + np.outer(known - error, known - error))
        scale = self.sigma[:, None] * self.sigma
        return CalibrationEstimate(self._mean + self.sigma * error, covariance * scale)

    def _corrected(self, found: Posterior) -> tuple[Float64, Float64]:
        """Mean and covariance, in sigmas of the prior, where those that are only considered are as told."""
        held = self._considered
        if not held.any() or not found.covariance[held, held].any():
            return found.mean, found.covariance
        within, follow = found.covariance[np.ix_(held, held)], _following(found.covariance, held)
        covariance = found.covariance - follow @ within @ follow.T + follow @ follow.T
        return found.mean - follow @ found.mean[held], covariance

    def _so_far(self) -> EvidenceSoFar:
        """All evidence, in sigmas of the prior."""
        return EvidenceSoFar(
            self._evidence.information * self.sigma[:, None] * self.sigma,
            self._evidence.score * self.sigma,
            self._block_share,
            1.0 / (1.0 + self._few / max(self._frames, 1.0)),
            self._scale(),
        )

    def _scale(self) -> Scale | None:
        """What each error, in its prior's sigmas, does to the scale of motions; None before any motion."""
        out = np.asarray(self._evidence.scaling * self.sigma)
        if self._scaling is None or out[self._scaling] == 0.0:
            return None
        return Scale(out / out[self._scaling], self._scaling)


def _following(covariance: Float64, held: Bool) -> Float64:
    """(C, H) by which all change per unit of those that are held, which change by one themselves."""
    out = np.zeros((len(held), int(held.sum())))
    out[held] = np.eye(int(held.sum()))
    out[~held] = np.linalg.solve(covariance[np.ix_(held, held)], covariance[np.ix_(held, ~held)]).T
    return out
