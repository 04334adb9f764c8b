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

`sound_frames.json` beside this file holds, for every matcher and check, the figures that 50, 90, 99 and 99.9 % of the
frames of fault-free sequences stay below, real and rendered ones weighed alike (`python -m bench.sound_frames`).
Between these the logarithm of the tail probability is interpolated. Beyond the last it goes on falling as fast as
between the last two: an exponential tail for shares of an image, a power law for residuals and pixels, whose scale
varies from camera to camera.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

from macvo_ros.doubt.checks import Checks

TABLE = Path(__file__).with_name("sound_frames.json")
LEVELS = (0.5, 0.9, 0.99, 0.999)
"""Quantiles that `python -m bench.sound_frames` measures of each check's figure."""
INDEPENDENT = ("epipolar_error", "unconfirmed_stereo", "appearance_mismatch")
"""Checks that look at images and not at what a matcher promises."""
POWER_LAW = ("residuals", "epipolar_error")
"""Checks whose figures have no largest value."""
LEAST = {"residuals": 0.5, "epipolar_error": 0.05}
"""Figures below which differences mean nothing; pixels for the second. Chosen, not measured."""
_SHARE, _FACTOR = 0.05, math.log(2) / 2
"""Least difference that makes a figure ten times as rare: a twentieth of the image, for any car may fill that; and a
factor of 1.4, for noise varies as much from camera to camera. Chosen, with the scenes of `test/faults/run_all.py` in
view, not measured; a fifth of it is the least between quantiles that were."""


def tail_probabilities(matcher: str, checks: Checks) -> dict[str, float]:
    """For every check the probability that a sound frame has a figure as large, or larger.

    Of a matcher that was not measured only those checks count whose figures hardly depend on the matcher.
    """
    table = _table().get(matcher) or {name: _table()["lite"][name] for name in INDEPENDENT}
    return {name: tail_probability(name, quantiles, getattr(checks, name)) for name, quantiles in table.items()}


def tail_probability(check: str, quantiles: Sequence[float], figure: float) -> float:
    """From the figures at LEVELS to the probability of one as large as `figure`."""
    if check not in POWER_LAW:
        return share_tail(quantiles, figure)
    least = LEAST[check]
    scaled = [math.log(max(each, least)) for each in (*quantiles, figure)]
    return _interpolated(scaled[:-1], scaled[-1], math.log(least), _FACTOR)


def share_tail(quantiles: Sequence[float], share: float) -> float:
    """The same of a share of an image."""
    return _interpolated(quantiles, share, 0.0, _SHARE)


def _interpolated(quantiles: Sequence[float], x: float, least: float, apart: float) -> float:
    """From quantiles at LEVELS to a tail probability, whose logarithm is linear between them and beyond."""
    knots = [(least, 0.0)]
    for level, quantile in zip(LEVELS, quantiles, strict=True):
        # Knots must rise, where half of the frames have none of it too; the last two say how the tail goes on.
        step = apart if level == LEVELS[-1] else 0.2 * apart
        knots.append((max(quantile, knots[-1][0] + step), math.log(1 - level)))
    if x <= least:
        return 1.0
    (x0, y0), (x1, y1) = next(((a, b) for a, b in pairwise(knots) if x <= b[0]), (knots[-2], knots[-1]))
    return math.exp(y0 + (y1 - y0) * (x - x0) / (x1 - x0))


def usual(matcher: str, check: str) -> float:
    """The figure that 99 % of sound frames stay below."""
    table = _table().get(matcher) or _table()["lite"]
    return float(table[check][2])


@lru_cache(maxsize=1)
def _table() -> dict[str, dict[str, list[float]]]:
    content = json.loads(TABLE.read_text())
    return dict(content["quantiles"])
