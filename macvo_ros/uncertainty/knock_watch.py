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

"""Was a camera knocked? What frames say of the right camera's rotation now, and what those just before them said.

A knock turns a camera at once and changes nothing else. So the last second is compared with the seconds before it, not
with all that was ever learned: what evidence is biased by changes with the scene, and the scene has hardly changed.
"""

from __future__ import annotations

from collections import deque

import numpy as np
import numpy.typing as npt

from macvo_ros.uncertainty.block_scatter import Evidence
from macvo_ros.uncertainty.calibration_model import ROTATIONS

Float64 = npt.NDArray[np.float64]

_NOW, _BEFORE = 1.0, 3.0
"""Seconds of frames that are compared, and of those before them. Chosen: with half a second or five before, real
sequences scatter alike (`python -m bench.knocks`)."""
_SCENE = np.radians(0.01)
"""One sigma of what evidence is biased by now and was not before. Where nothing was knocked, four seconds tell a yaw
that changes by 0.004 to 0.010 degrees (`python -m bench.knocks`, four real sequences), of which the larger part is
what their information admits."""
_CONTRADICTION, _LOOKS = 4.0, 3
"""Sigmas by which both differ, in so many looks in a row, until it counts as a knock: with `_SCENE` no more than 2.3
are reached in the 5 000 frames of those."""
_LOOK = 0.2
"""Seconds between looks. Chosen."""
KNOCK = np.radians(0.3)
"""One sigma of what a knock may turn a camera by. Chosen."""


class KnockWatch:
    """Compares the last second with those before. Pure numpy, no randomness."""

    def __init__(self) -> None:
        self._frames: deque[tuple[float, Float64, Float64]] = deque()
        self._since_look, self._contradictions = 0.0, 0
        self.seen: tuple[Float64, Float64] | None = None
        """(3,) each: what the rotation changed by at the last look, pitch, yaw and roll, radians, and its sigma."""

    def look(self, evidence: Evidence, known: Float64, seconds: float) -> Float64 | None:
        """Take in a sound frame, `seconds` after the last; (3,) pitch, yaw and roll of a knock, once there was one.

        known: (C,) what is known of all errors; those other than rotations are held to be as known.
        """
        own = np.ix_(ROTATIONS, ROTATIONS)
        self._frames.append(
            (seconds, evidence.information[own], (evidence.score - evidence.information @ known)[ROTATIONS])
        )
        self._since_look += seconds
        if self._since_look < _LOOK:
            return None
        self._since_look = 0.0
        self.seen = change, sigma = self._change()
        self._contradictions = self._contradictions + 1 if (np.abs(change) > _CONTRADICTION * sigma).any() else 0
        return change if self._contradictions >= _LOOKS else None

    def _change(self) -> tuple[Float64, Float64]:
        """(3,) what the rotation changed by between the seconds before and the last one, and its sigma.

        Forgets what is older than both.
        """
        sums = [(np.eye(3) / KNOCK**2, np.zeros(3)) for _ in range(2)]
        age, kept = 0.0, 0
        for seconds, information, score in reversed(self._frames):
            if age >= _NOW + _BEFORE:
                break
            index = 0 if age < _NOW else 1
            sums[index] = sums[index][0] + information, sums[index][1] + score
            age, kept = age + seconds, kept + 1
        while len(self._frames) > kept:
            self._frames.popleft()
        (now, before), (score_now, score_before) = zip(*sums, strict=True)
        change = np.linalg.solve(now, score_now) - np.linalg.solve(before, score_before)
        variance = np.diagonal(np.linalg.inv(now)) + np.diagonal(np.linalg.inv(before)) + _SCENE**2
        return np.asarray(change), np.asarray(np.sqrt(variance))
