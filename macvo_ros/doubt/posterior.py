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

"""The probability that a measured motion is not the camera's, from all checks at once.

Each check gives a tail probability under "sound frame"; the smallest times their number (Bonferroni: whatever their
dependence) is the frame's p-value. Under a fault small p-values are frequent: with density  f(p) = s p^(s - 1), s < 1,
the odds of a fault are

    P / (1 - P)  =  prior / (1 - prior)  *  s p^(s - 1)

so an ordinary frame (p near 1) speaks for soundness by the factor s, one in a million for a fault by s 10^(6 (1 - s)).
The prior is the configured one, and after a frame that was at fault (P > 1/2) what remains of that: faults last for
more than one frame. Less is not remembered: frames that are a little unusual in a row mostly have one harmless cause
(darkness, rain, foliage), and must not add up to a fault.
"""

from __future__ import annotations

from dataclasses import dataclass

from macvo_ros.doubt.checks import Checks
from macvo_ros.doubt.sound_frames import tail_probabilities
from macvo_ros.settings.config import DoubtConfig

_SHAPE = 0.1
"""s above: half of the faulty frames would have p-values below 1e-3. Chosen, not fitted."""
_MEMORY = 0.5
"""Share of a posterior that the next frame begins with: a fault lasts two frames on average. Chosen, not fitted."""
LARGEST, SMALLEST = 1.0, 1e-30
"""Bounds of a p-value: eight times a tail may exceed 1, and none is 0."""
ESTABLISHED = 0.5
"""Probability from which a frame is at fault rather than not; by definition."""


@dataclass(frozen=True)
class Doubt:
    """What is held of a motion. fault: probability; check, tail: the check that speaks most against it, its p-value."""

    fault: float
    check: str
    tail: float


def doubt(config: DoubtConfig, matcher: str, checks: Checks, before: float) -> Doubt:
    """Weigh the checks of a frame; before: the probability that the last frame was at fault."""
    tails = tail_probabilities(matcher, checks)
    worst = min(tails, key=lambda name: tails[name])
    p = min(LARGEST, max(len(tails) * tails[worst], SMALLEST))
    return Doubt(_posterior(prior_of(config, before), p), worst, tails[worst])


def prior_of(config: DoubtConfig, before: float) -> float:
    """Probability of a fault before a frame is looked at; before: that of the last frame."""
    return config.prior + (1 - config.prior) * _MEMORY * (before if before > ESTABLISHED else 0.0)


def doubtful(config: DoubtConfig) -> float:
    """Probability of a fault that a share `doubt.false_alarm_rate` of all sound frames reaches."""
    return _posterior(config.prior, config.false_alarm_rate)


def _posterior(prior: float, p: float) -> float:
    odds = prior / (1 - prior) * _SHAPE * p ** (_SHAPE - 1)
    return float(odds / (1 + odds))
