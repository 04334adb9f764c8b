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

"""The noise of a data set's own ground truth, where errors over short times are the truth's and not the estimate's."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from macvo_ros.errors import ConfigError

Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True)
class TruthNoise:
    """Noise of true poses: stationary, and forgotten over a time (Gauss-Markov), so its part of an error stops growing.

    position: metres, attitude: radians, one sigma of each component; seconds: over which noise falls to 1/e.
    """

    position: float
    attitude: float
    seconds: float

    def covariance(self, moved: Float64, elapsed: Float64) -> Float64:
        """(M, 6, 6) covariance that the truth's noise gives to errors of motions.

        moved: (M, 3) translations, metres, in the axes of the error; elapsed: (M,) seconds. The attitude at the start
        also turns the whole translation.
        """
        new = 1.0 - np.exp(-elapsed / self.seconds)
        out = np.zeros((len(moved), 6, 6))
        square = (moved**2).sum(axis=1)[:, None, None] * np.eye(3) - moved[:, :, None] * moved[:, None, :]
        out[:, :3, :3] = 2 * self.position**2 * new[:, None, None] * np.eye(3) + self.attitude**2 * square
        out[:, 3:, 3:] = 2 * self.attitude**2 * new[:, None, None] * np.eye(3)
        return out


def parse_truth_noise(text: str) -> TruthNoise:
    """METRES,DEGREES,SECONDS of the command line."""
    try:
        position, degrees, seconds = (float(part) for part in text.split(","))
    except ValueError:
        position, degrees, seconds = math.nan, math.nan, math.nan
    if not (0 <= position < math.inf and 0 <= degrees < math.inf and 0 < seconds < math.inf):
        raise ConfigError(
            f"noise of the truth: expected METRES,DEGREES,SECONDS (for example 0.003,0.05,0.5), got {text!r}"
        )
    return TruthNoise(position, math.radians(degrees), seconds)
