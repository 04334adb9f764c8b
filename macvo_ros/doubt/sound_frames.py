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

"""How unusual a check's figure is: its tail probability on sound frames, measured per matcher.

Peaks over a threshold: `sound_frames.json` beside this file holds, for every matcher and check, the figure u that 99 %
of the frames of fault-free sequences stay below, real and rendered ones weighed alike, and by how much e the others
exceed it on average (`python -m bench.sound_frames`). The tail beyond is exponential with that mean:

    P(figure > x)  =  0.01 exp(-(x - u) / e)

for shares of an image as they are, for residuals, pixels and sigmas, whose scale varies from camera to camera, in
logarithms. (Below u, where nothing is decided, its logarithm rises evenly to 0.)
"""

from __future__ import annotations

import json
import math
from functools import lru_cache
from pathlib import Path

from macvo_ros.doubt.checks import Checks

TABLE = Path(__file__).with_name("sound_frames.json")
USUAL = 0.99
"""Share of sound frames whose figure is called usual: the threshold of the tail."""
INDEPENDENT = ("epipolar_error", "appearance_mismatch")
"""Checks that look at images and not at what a matcher promises."""
POWER_LAW = ("residuals", "epipolar_error", "flow_sigma")
"""Checks whose figures have no largest value."""


def tail_probabilities(matcher: str, checks: Checks) -> dict[str, float]:
    """For every check the probability that a sound frame has a figure as large, or larger.

    Of a matcher that was not measured only those checks count whose figures hardly depend on the matcher.
    """
    names = Checks.names() if matcher in _table() else INDEPENDENT
    return {name: tail_of(matcher, name, getattr(checks, name)) for name in names}


def tail_of(matcher: str, check: str, figure: float) -> float:
    """The same of one check and its figure."""
    return tail_probability(check, *_measured(matcher, check), figure)


def tail_probability(check: str, usual: float, excess: float, figure: float) -> float:
    """Probability of a figure as large; usual: the one that 99 % stay below, excess: mean of the others beyond it."""
    if figure <= usual:
        return float((1 - USUAL) ** (figure / usual))
    return (1 - USUAL) * math.exp(-(scaled(check, figure) - scaled(check, usual)) / excess)


def scaled(check: str, figure: float) -> float:
    """A figure on the scale on which its tail is exponential."""
    return math.log(figure) if check in POWER_LAW else figure


def usual(matcher: str, check: str) -> float:
    """The figure that 99 % of sound frames stay below."""
    return _measured(matcher, check)[0]


def _measured(matcher: str, check: str) -> tuple[float, float]:
    """Usual figure of a check, and mean excess beyond it on its scale; those of `lite` for a matcher not measured."""
    figure, excess = _table().get(matcher, _table()["lite"])[check]
    return figure, excess


@lru_cache(maxsize=1)
def _table() -> dict[str, dict[str, list[float]]]:
    return dict(json.loads(TABLE.read_text())["usual and excess"])
