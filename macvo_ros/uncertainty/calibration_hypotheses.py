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

"""What may be wrong with a calibration: a few parts of it, or everything, with fields of one size or another.

A camera that is turned has no other lens, and a good rectification leaves hundredths of a pixel where another one
leaves tenths. Which of that is the case is as unknown as the errors themselves; each hypothesis is weighed by how well
it explains the evidence (`calibration_posterior.py`, `calibration_filter.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, combinations

import numpy as np
import numpy.typing as npt

from macvo_ros.uncertainty.calibration_posterior import Supposed

Float64 = npt.NDArray[np.float64]

_SCALING_BIAS = 9.0
"""Variance of the bias of the scale that evidence claims, in that of one block. Against the truth's, `python -m
bench.calibration scale` finds a mean square of 6.0 on five parts of KITTI 09 and of 16 on one of EuRoC MH_01; among
those near it that the whole of KITTI 09 drifts least with (9, 25). What biases it is what fields cannot follow, so it
shrinks with them: in rendered worlds, whose lenses are perfect, that is below .05 (same log)."""
_BIASED_BY = 0.3
"""Size of fields, in their prior's sigmas, from which on the scale is biased by as much: what KITTI 09's evidence says
that they have there; MH_01's have 1."""
_FIELD_SIZES = (0.03, 0.1, 0.3, 1.0)
"""Sizes that fields may have, in their prior's sigmas, for the covariance: the prior is that of a poor rectification,
the smallest a hundredth of a pixel, which matching itself is biased by. Chosen: even steps of a factor of three. What
is corrected knows the largest alone: with the .3 that KITTI 09 prefers, what smaller fields cannot follow is a focal
length that its truth contradicts (t_err .63 to .70 %)."""
_FIELD_STEP = 3.0**0.5
"""Factor from a size to half the way to the next."""


@dataclass(frozen=True, eq=False)
class Hypotheses:
    """some: combinations of parts, without fields. everything: all parts, with fields of each of `field_sizes`."""

    some: list[Supposed]
    everything: list[Supposed]
    field_sizes: Float64

    @staticmethod
    def of(size: int, parts: tuple[tuple[int, ...], ...], fields: tuple[int, ...], field_size: float) -> Hypotheses:
        """About `size` errors. parts: of those that are off together; none: everything is off.

        fields: those whose size is not known; none: all have their prior's. field_size: what they are known to have at
        least, in sigmas of their prior, a learned mean included: evidence repeats itself, so that what differs from
        such a mean always looks small.
        """
        index = np.arange(size)
        sizes = np.array([each for each in _FIELD_SIZES if each * _FIELD_STEP > field_size] if fields else [1.0])
        biases = [_scale_bias(max(each, field_size)) for each in sizes]
        chosen = chain.from_iterable(combinations(parts, count) for count in range(len(parts) + 1)) if parts else ()
        some = [np.isin(index, list(chain.from_iterable(each))).astype(np.float64) for each in chosen]
        whole = [np.where(np.isin(index, fields), each, 1.0) for each in sizes]
        return Hypotheses(
            [Supposed(each, biases[0]) for each in some],
            [Supposed(each, bias) for each, bias in zip(whole, biases, strict=True)],
            sizes,
        )


def _scale_bias(field_size: float) -> float:
    """Variance of the bias of the scale that evidence claims, in that of one block, beside fields of that size."""
    return _SCALING_BIAS * min(1.0, field_size / _BIASED_BY) ** 2
