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

"""What evidence says of the errors of a calibration, some of which may be none: posterior, and how well it explains.

Evidence has information J and score s about x = c + b: the errors c, and what evidence is biased by, b. Both are
Gaussian, of covariances P (the prior; smaller or zero for errors that are held to be small or none) and B, so that with
Q = P + B

    E[c] = P (1 + J Q)^-1 s        cov(c) = P - P (1 + J Q)^-1 J P

    log p(evidence) = (s^T Q (1 + J Q)^-1 s - log |1 + J Q|) / 2        but for what is the same whatever is held

The last tells which errors there are at all, and how large. One that explains nothing costs log |1 + J Q|: the better
the evidence could have shown it, the more. All in units of the prior's sigma, so that radians and pixels are alike.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Posterior:
    """mean: (C,), covariance: (C, C) of the errors; explains: log probability of the evidence."""

    mean: Float64
    covariance: Float64
    explains: float


@dataclass(frozen=True, eq=False)
class Scale:
    """What errors do to the scale of motions. by: (C,) each, in what the error of index `bound` does.

    That one's prior bounds what all of them do together.
    """

    by: Float64
    bound: int


@dataclass(frozen=True, eq=False)
class Supposed:
    """One way in which a calibration may be wrong.

    size: (C,) of the errors, in sigmas of their prior; 0: there is none. scale_bias: variance of the bias of the scale
    that evidence claims then, in the variance of one block.
    """

    size: Float64
    scale_bias: float


@dataclass(frozen=True, eq=False)
class EvidenceSoFar:
    """All evidence about C errors. information: (C, C), score: (C,); block: the share of it that one block has.

    weight: what of it counts, 0 to 1. scale: None where nothing bounds it.
    """

    information: Float64
    score: Float64
    block: float
    weight: float
    scale: Scale | None

    def posterior(self, bias: Float64, supposed: Supposed) -> Posterior:
        """Where the calibration is wrong as supposed.

        bias: (C,) variance of that of each error's evidence, in a block's. The scale that evidence claims is biased
        whether or not there is an error that scales.
        """
        size = supposed.size
        there = size > 0
        looked_at = there.copy()
        if self.scale is not None:
            looked_at[self.scale.bound] = True
        at, known = np.flatnonzero(looked_at), there[looked_at]
        formal, prior = self.information[np.ix_(at, at)], np.diag(np.where(there, size, 1.0)[at] ** -2.0)
        information, score = self.weight * formal, self.weight * self.score[at]
        if self.scale is not None:
            prior += np.outer(self.scale.by[at], self.scale.by[at])
        spread = np.zeros_like(prior)
        spread[np.ix_(known, known)] = np.linalg.inv(prior[np.ix_(known, known)])
        block, root = np.linalg.inv(prior + formal * self.block), np.sqrt(bias[at])
        biased = root[:, None] * block * root
        if self.scale is not None:
            bound = np.flatnonzero(at == self.scale.bound)
            biased[bound, bound] += supposed.scale_bias * float(self.scale.by[at] @ block @ self.scale.by[at])
        total = spread + biased
        system = np.eye(len(at)) + information @ total
        solved = np.linalg.solve(system, np.column_stack((score, information @ spread)))
        explains = 0.5 * float(score @ total @ solved[:, 0] - np.linalg.slogdet(system)[1])
        mean, covariance = np.zeros(len(there)), np.zeros((len(there), len(there)))
        mean[at] = spread @ solved[:, 0]
        remains = spread - spread @ solved[:, 1:]
        covariance[np.ix_(at, at)] = 0.5 * (remains + remains.T)
        return Posterior(mean, covariance, explains)


def shares(found: list[Posterior]) -> Float64:
    """How likely each is, as it explains the evidence; all are as likely beforehand."""
    explains = np.array([each.explains for each in found])
    likely = np.exp(explains - explains.max())
    return np.asarray(likely / likely.sum())
