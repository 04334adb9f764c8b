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

"""By how much more than promised does evidence about constants scatter? Measured, between blocks of some seconds.

Residuals of neighbours and of successive frames are alike, and what a model of the calibration does not know differs
from place to place: a second of a drive says one thing and the next another, by much more than the formal information
of either admits. On KITTI 09 blocks of five seconds differ by 29 times their variance, in a rendered street by 6
(`python -m bench.calibration`, real and rendered).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Float64 = npt.NDArray[np.float64]

BLOCK = 5.0
"""Seconds of a block: longer than errors of successive frames are alike, several in half a minute. Chosen."""
_BLOCKS_BEFORE = 1.0
"""Blocks that the scatter is worth which is assumed before any is measured; each has some fifty directions."""
_OUTLYING = 4.0
"""Times the usual scatter, which a block counts for at most: far beyond all others is a change. Chosen."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """What one frame says of the errors c of the calibration: information (C, C), and score (C,), information times c.

    Both about c itself, not about the part of it that was not yet corrected. scaling: (C,) the direction in which c
    scales the motions that this was taken from, of any length; 0 where it is not from motions.
    """

    information: Float64
    score: Float64
    scaling: Float64 | float = 0.0

    def plus(self, other: Evidence) -> Evidence:
        """Of both together, whose noise has nothing in common."""
        scaling = self.scaling + other.scaling
        return Evidence(self.information + other.information, self.score + other.score, scaling)

    def since(self, known: Float64) -> Evidence:
        """About what c differs by from (C,) `known`."""
        return Evidence(self.information, self.score - self.information @ known, self.scaling)

    def times(self, factor: float) -> Evidence:
        """Worth so much more."""
        return Evidence(factor * self.information, factor * self.score, factor * self.scaling)


class BlockScatter:
    """Compares each block of frames with all blocks before it, in units of what both promise."""

    def __init__(self, sigma: Float64, assumed: float) -> None:
        """sigma: (C,) of the constants' prior; assumed: the scatter before any is measured."""
        self._sigma = sigma
        self._sum, self._blocks = assumed * _BLOCKS_BEFORE, _BLOCKS_BEFORE
        self.restart()

    @property
    def value(self) -> float:
        """Mean square of the differences, 1 where they are as promised, and at least that."""
        return max(1.0, self._sum / self._blocks)

    def restart(self) -> None:
        """The constants are others from here on; how evidence scatters is the same."""
        size = len(self._sigma)
        self._before, self._block = (Evidence(np.zeros((size, size)), np.zeros(size)) for _ in range(2))
        self._frames_before, self._frames, self._age = 0, 0, 0.0

    def add(self, evidence: Evidence, seconds: float) -> None:
        """Take in a frame that is `seconds` after the last."""
        self._block = self._block.plus(evidence)
        self._frames += 1
        self._age += seconds
        if self._age < BLOCK:
            return
        if self._frames_before:
            self._compare()
        self._before, self._frames_before = self._before.plus(self._block), self._frames_before + self._frames
        self._block = self._block.times(0.0)
        self._frames, self._age = 0, 0.0

    def _compare(self) -> None:
        scale = self._sigma[:, None] * self._sigma
        known = np.linalg.solve(np.eye(len(scale)) + self._before.information * scale, self._before.score * self._sigma)
        information = self._block.information * scale
        difference = self._block.score * self._sigma - information @ known
        # In units of the prior: what is hardly seen at all is left out.
        values, vectors = np.linalg.eigh(information)
        seen = values > 1.0
        if not seen.any():
            return
        squares = (vectors[:, seen].T @ difference) ** 2 / values[seen]
        expected = 1.0 + self._frames / self._frames_before
        self._sum += min(float(squares.mean()) / expected, _OUTLYING * self.value)
        self._blocks += 1.0
