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

"""Whose motion was measured: the world's, that of something that passes by, or of something fixed to the camera?

Two kinds of evidence, neither of which a matcher can lead astray. Looks: if a motion is the camera's, the share m of
the image that does not look as it predicts is what moves by itself; if it is that of a passer-by, the rest is, 1 - m.
And the prediction: a camera goes on as it went, within the accelerations of `motion_prior`; a passer-by does anything.
With

    g(x)    10^(-x / 0.28), how rare it is that passers-by fill a share x of the view (`python -m bench.passers_by`)
    L(M)    density of the motion as predicted over that of any motion at the speeds of `motion_prior`

the odds against the world's motion are, for each of the others,

    passes by, the camera moved as predicted           (g(1 - m) / g(m) - g(1)) / L(M)
    passes by, the camera moved by the second motion S g(1 - b) L(S) / (g(b) L(M)),   b: share of keypoints behind S
    fixed to the camera, of any size                   odds of a fault by m alone, times P(at rest) / P(predicted)
    the world's, but of another place that looks alike a V / L(M), times what the checks say

where a is how many places look alike in a cubic metre (`python -m bench.gaps --off`), and V the room that the camera
may have come to since it was last measured: nothing from one frame to the next, but after seconds in the dark a tiled
floor, a row of doors or a hedge may agree on a motion that is wrong by metres, keypoint by keypoint.

What is fixed to the camera (a robot's arm, dirt, a half of the image that is frozen) does not move: its motion is none
within its covariance: P(at rest). So is that of a robot that stands, where it was predicted to: P(predicted), which is
one in a hundred where it was moving, for few come to rest from one frame to the next.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from macvo_ros.geometry.se3 import difference
from macvo_ros.uncertainty.motion_prior import MotionPrior
from macvo_ros.uncertainty.relative_motion import RelativeMotion

Float64 = npt.NDArray[np.float64]

_DECADE = 0.28
"""By how much more of the view passers-by fill ten times as rarely: from the 90 to the 99 % quantile of what they fill
(`python -m bench.passers_by`)."""
_LOOK_ALIKES = 1.2e-5
"""Places that look alike, in a cubic metre: what 95 % sure is not exceeded where none was met, in 257 000 of KITTI 09
and EuRoC MH_01 (`python -m bench.gaps KITTI_09:30 EUROC_MH_01:8 --worlds --off`)."""
_SWAY = 1e-3
"""Metres and radians by which an arm sways or a mount gives, one sigma; chosen."""


@dataclass(frozen=True, eq=False)
class Predicted:
    """What a camera may do: go on as it went, or, rarely, anything.

    prior: the former. unknown: the latter. surprise: probability of the latter. room: cubic metres that it may have
    come to by that.
    """

    prior: MotionPrior
    unknown: MotionPrior
    surprise: float
    room: float = 0.0

    def likelihood(self, motion: RelativeMotion) -> float:
        """Density of a measured motion of the camera over that of any motion."""
        # Nothing is wider than anything: after a jump of the clock a prediction may say less than none.
        least = np.minimum(self.prior.information, self.unknown.information)
        near, far = (_log_density(each, self.prior.motion, motion) for each in (self.prior.information, least))
        return (1 - self.surprise) * math.exp(min(near - far, 50.0)) + self.surprise

    def stands(self, covariance: Float64) -> float:
        """Probability that a camera predicted to move as it is comes to rest, as far as a (6, 6) covariance tells."""
        return max(_at_rest(RelativeMotion(self.prior.motion, covariance)), self.surprise)


@dataclass(frozen=True)
class OtherMotion:
    """Odds that a measured motion is not the camera's.

    passing: it is that of something that passes by, and the camera moved as predicted. second: the same, and the camera
    moved by the second motion. fixed: how much likelier than the camera's it is that of something fixed to the camera,
    by the motion alone. elsewhere: it leads to another place that looks alike, before the checks are asked.
    """

    passing: float = 0.0
    second: float = 0.0
    fixed: float = 0.0
    elsewhere: float = 0.0


def whose_motion(
    measured: RelativeMotion, predicted: Predicted, mismatch: float, second: tuple[Float64, float] | None
) -> OtherMotion:
    """Weigh what else a measured motion may be of.

    mismatch: share of the image that does not look as the motion predicts. second: (4, 4) motion and the share of the
    keypoints that agrees on it.
    """
    likelihood, other = predicted.likelihood(measured), 0.0
    if second is not None:
        motion, share = second
        alternative = predicted.likelihood(RelativeMotion(motion, measured.covariance))
        other = alternative / likelihood * _passers_by(1 - share) / _passers_by(share)
    return OtherMotion(
        # Less what is in every sound frame: where nothing contradicts, nothing is to be explained.
        passing=(_passers_by(1 - mismatch) / _passers_by(mismatch) - _passers_by(1.0)) / likelihood,
        second=other,
        fixed=_at_rest(measured) / predicted.stands(measured.covariance),
        elsewhere=_LOOK_ALIKES * predicted.room / likelihood,
    )


def _passers_by(share: float) -> float:
    """Probability that they fill such a share of the view."""
    return float(10.0 ** (-share / _DECADE))


def _log_density(information: Float64, mean: Float64, motion: RelativeMotion) -> float:
    """Of a measured motion about a (4, 4) mean of (6, 6) information, but for a constant."""
    offset, covariance = difference(mean, motion.motion), motion.covariance + np.linalg.inv(information)
    return -0.5 * float(offset @ np.linalg.solve(covariance, offset) + np.linalg.slogdet(covariance)[1])


def _at_rest(motion: RelativeMotion) -> float:
    """Probability that something that only sways with the camera seems to move as far."""
    offset = difference(np.eye(4), motion.motion)
    half = 0.5 * float(offset @ np.linalg.solve(motion.covariance + _SWAY**2 * np.eye(6), offset))
    # Tail of a chi-square variable with six degrees of freedom.
    return math.exp(-half) * (1 + half + 0.5 * half**2)
