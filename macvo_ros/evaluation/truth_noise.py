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
    drift: metres per second, one sigma of each component of the noise of its velocity, as a GPS/IMU truth has it,
    forgotten over drift_seconds: this part of an error goes on growing. turning: radians per second, the same of its
    attitude, as gyroscopes have it, forgotten over turning_seconds. misaligned: radians, what all of that has made of
    its attitude against the axes of its positions by the time a motion begins: it turns every translation.
    """

    position: float
    attitude: float
    seconds: float
    drift: float = 0.0
    drift_seconds: float = 1.0
    turning: float = 0.0
    turning_seconds: float = 1.0
    misaligned: float = 0.0

    def covariance(self, moved: Float64, elapsed: Float64) -> Float64:
        """(M, 6, 6) covariance that the truth's noise gives to errors of motions.

        moved: (M, 3) translations, metres, in the axes of the error; elapsed: (M,) seconds. The attitude at the start
        also turns the whole translation.
        """
        new = 1.0 - np.exp(-elapsed / self.seconds)
        out = np.zeros((len(moved), 6, 6))
        square = (moved**2).sum(axis=1)[:, None, None] * np.eye(3) - moved[:, :, None] * moved[:, None, :]
        out[:, :3, :3] = 2 * self.position**2 * new[:, None, None] * np.eye(3)
        out[:, :3, :3] += (self.attitude**2 + self.misaligned**2) * square
        out[:, :3, :3] += _drifted(self.drift, self.drift_seconds, elapsed)[:, None, None] * np.eye(3)
        turned = 2 * self.attitude**2 * new + _drifted(self.turning, self.turning_seconds, elapsed)
        out[:, 3:, 3:] = turned[:, None, None] * np.eye(3)
        return out


def _drifted(velocity: float, memory: float, elapsed: Float64) -> Float64:
    """(M,) variance of the integral of a velocity that is forgotten: (v t)^2 at first, 2 v^2 T t in the end."""
    ratio = elapsed / memory
    return np.asarray(2 * (velocity * memory) ** 2 * (ratio - 1.0 + np.exp(-ratio)))


def parse_truth_noise(text: str) -> TruthNoise:
    """METRES,DEGREES,SECONDS of the command line; METRES_PER_SECOND,SECONDS and DEGREES_PER_SECOND,SECONDS may follow.

    The latter two are of drifts; after them may come DEGREES of misalignment.
    """
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    enough = len(numbers) in (3, 5, 7, 8)
    filled = [*numbers, *(0.0, 1.0, 0.0, 1.0, 0.0)[len(numbers) - 3 :]] if enough else [math.nan] * 8
    position, degrees, seconds, velocity, kept, turning, turning_kept, misaligned = filled
    sizes, times = (position, degrees, velocity, turning, misaligned), (seconds, kept, turning_kept)
    if not (all(0 <= size < math.inf for size in sizes) and all(0 < time < math.inf for time in times)):
        raise ConfigError(
            "noise of the truth: expected METRES,DEGREES,SECONDS (for example 0.003,0.05,0.5), or five numbers with "
            "METRES_PER_SECOND,SECONDS of a drift after them, or seven with DEGREES_PER_SECOND,SECONDS after those, "
            f"or eight with DEGREES of misalignment at the end, got {text!r}"
        )
    return TruthNoise(
        position,
        math.radians(degrees),
        seconds,
        velocity,
        kept,
        math.radians(turning),
        turning_kept,
        math.radians(misaligned),
    )
