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

_NOW, _BEFORE = (0.5, 1.0), 3.0
"""Seconds of frames that are compared, and of those before them: the shorter is sooner to notice, the longer where
frames show little of a knock. Chosen; real sequences scatter alike with both, and with five seconds before."""
_SCENE = np.radians(0.01)
"""One sigma of what evidence is biased by now and was not before. Where nothing was knocked, four seconds tell a yaw
that changes by 0.008 and 0.020 degrees (root mean square, KITTI 09 and MH_01, `python -m bench.knocks`), which with
this is 0.6 of the sigmas that are promised."""
_CONTRADICTION, _LOOKS = 4.0, 3
"""Sigmas by which both differ, in so many looks in a row, until it counts as a knock: no more than 2.3 are reached in
those sequences."""
_LOOK = 0.2
"""Seconds between looks. Chosen."""
KNOCK = np.radians(0.3)
"""One sigma of what a knock may turn a camera by. Chosen."""


class KnockWatch:
    """Compares the last second, or half of it, with those before. Pure numpy, no randomness."""

    def __init__(self) -> None:
        self._frames: deque[tuple[float, Float64, Float64]] = deque()
        self._since_look, self._contradictions = 0.0, [0] * len(_NOW)
        self.seen: list[tuple[Float64, Float64]] = []
        """Of the last look, by each of both: (3,) what the rotation changed by, radians, and its sigma."""

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
        self.seen = [self._change(now) for now in _NOW]
        for index, (change, sigma) in enumerate(self.seen):
            contradicts = bool((np.abs(change) > _CONTRADICTION * sigma).any())
            self._contradictions[index] = self._contradictions[index] + 1 if contradicts else 0
        while sum(each[0] for each in self._frames) > _NOW[-1] + _BEFORE + _LOOK:
            self._frames.popleft()
        if max(self._contradictions) < _LOOKS:
            return None
        return self.seen[int(np.argmax(self._contradictions))][0]

    def _change(self, now: float) -> tuple[Float64, Float64]:
        """(3,) what the rotation changed by between the last `now` seconds and those before, and its sigma."""
        information, score = np.tile(np.eye(3) / KNOCK**2, (2, 1, 1)), np.zeros((2, 3))
        age = 0.0
        for seconds, own, residual in reversed(self._frames):
            if age >= now + _BEFORE:
                break
            before = int(age >= now)
            information[before] += own
            score[before] += residual
            age += seconds
        covariance = np.linalg.inv(information)
        turned = (covariance @ score[:, :, None])[:, :, 0]
        variance = np.diagonal(covariance, axis1=1, axis2=2).sum(axis=0) + _SCENE**2
        return np.asarray(turned[0] - turned[1]), np.asarray(np.sqrt(variance))
