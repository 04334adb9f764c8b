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

"""The probability that a measured motion is not the camera's, and the covariance that goes with it.

Each check gives a tail probability under "sound frame"; the smallest times their number (Bonferroni: whatever their
dependence) is the frame's p-value. Under a fault small p-values are frequent: with density  f(p) = s p^(s - 1), s < 1,
the odds of a fault are

    P / (1 - P)  =  prior / (1 - prior)  *  s p^(s - 1)

so an ordinary frame (p near 1) speaks for soundness by the factor s, one in a million for a fault by s 10^(6 (1 - s)).
To these are added the odds that the motion is another's (`whose_motion.py`).
The prior is the configured one, and half of what lasts of the frame before: faults (P > 1/2) last for more than one
frame, and what is in view stays in view. Less is not remembered: frames that are a little unusual in a row mostly have
one harmless cause (darkness, rain, foliage), and must not add up to a fault.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from macvo_ros.doubt.checks import ELSEWHERE, STEREO, WHOSE_MOTION, Checks
from macvo_ros.doubt.sound_frames import tail_probabilities
from macvo_ros.doubt.whose_motion import OtherMotion
from macvo_ros.geometry.se3 import difference
from macvo_ros.settings.config import DoubtConfig
from macvo_ros.uncertainty.relative_motion import RelativeMotion

_SHAPE = 0.1
"""s above: half of the faulty frames would have p-values below 1e-3. Chosen, not fitted."""
_MEMORY = 0.5
"""Share of a posterior that the next frame begins with: a fault lasts two frames on average. Chosen, not fitted."""
ESTABLISHED = 0.5
"""Probability from which a frame is at fault rather than not; by definition."""


@dataclass(frozen=True)
class Doubt:
    """What is held of a motion. fault: probability; check: the one that speaks most against it.

    lasting: what of that may last: all of an established fault, and that two motions are in view; not that the motion
    leads to another place that looks alike, for the next frame is tracked against this one.
    stereo: the stereo match is at fault, whatever else is.
    """

    fault: float
    check: str
    lasting: float
    stereo: bool = False


def doubt(config: DoubtConfig, matcher: str, checks: Checks, before: float, other: OtherMotion) -> Doubt:
    """Weigh the checks of a frame; before: what lasts of the doubt about the last; other: whose motion it is."""
    if config.prior == 0.0:
        return Doubt(0.0, "residuals", 0.0)
    prior = config.prior + (1 - config.prior) * _MEMORY * before
    odds = prior / (1 - prior)
    tails = tail_probabilities(matcher, checks)
    ratio = {name: _ratio(len(tails) * tail) for name, tail in tails.items()}
    worst = max((name for name in ratio if name not in WHOSE_MOTION), key=lambda name: ratio[name])
    against = {
        worst: odds * ratio[worst],
        # What is in every sound frame says nothing.
        "appearance_mismatch": odds * (ratio["appearance_mismatch"] - _SHAPE) * other.fixed + other.passing,
        "second_motion": other.second,
    }
    here = sum(against.values())
    lasting = here if here > ESTABLISHED / (1 - ESTABLISHED) else here - against[worst]
    against[ELSEWHERE] = other.elsewhere * max(ratio.values())
    total = sum(against.values())
    fault = total / (1 + total)
    # Where few depths are known, those may still be right; where matches leave their rows, none is.
    speak = STEREO if fault > ESTABLISHED else STEREO[:1]
    stereo = any(unusual(config, tails.get(name, 1.0)) for name in speak)
    return Doubt(fault, max(against, key=lambda name: against[name]), lasting / (1 + here), stereo)


def unusual(config: DoubtConfig, tail: float) -> bool:
    """Whether one check by itself speaks against a frame; tail: probability of its figure on sound frames."""
    return len(Checks.names()) * tail < config.false_alarm_rate


def doubtful(config: DoubtConfig) -> float:
    """Probability of a fault that a share `doubt.false_alarm_rate` of all sound frames reaches."""
    odds = config.prior / (1 - config.prior) * _ratio(config.false_alarm_rate)
    return odds / (1 + odds)


def mixed(measured: RelativeMotion, alternative: RelativeMotion, fault: float) -> RelativeMotion:
    """The measured motion with the covariance of a mixture; fault: probability P that it is the alternative.

        S = (1 - P) S_measured + P (S_alternative + d d^T),      d: the difference of the two

    is the second moment, about the measured motion, of one that is measured with probability 1 - P.
    """
    d = difference(measured.motion, alternative.motion)
    other = alternative.covariance + np.outer(d, d)
    return RelativeMotion(measured.motion, (1 - fault) * measured.covariance + fault * other)


def _ratio(p: float) -> float:
    """Likelihood of a p-value (which Bonferroni may leave above 1, and no p-value is 0) under a fault, over 1."""
    return float(_SHAPE * min(max(p, 1e-30), 1.0) ** (_SHAPE - 1))
