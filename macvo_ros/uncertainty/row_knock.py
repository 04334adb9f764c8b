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

"""A camera that was knocked, or images that were not taken at the same moment? What the rows of doubted frames say.

Both make stereo matches leave their rows. What moved between two exposures is other in every frame, and mostly no turn
of the right camera explains it: ground that comes nearer leaves its rows by how fast it does. A knocked camera stays
as it is: the same turn explains all frames that follow. So each doubted frame is looked at with the turn that those
before it tell; where that goes on to explain them for a while, the camera stands otherwise than before.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from macvo_ros.uncertainty.calibration_model import CalibrationModel
from macvo_ros.uncertainty.row_evidence import robust_rows
from macvo_ros.uncertainty.row_field import RowField

Float64 = npt.NDArray[np.float64]

STEADY = 2.0
"""Seconds of doubted frames that one turn explains, until it is a knock. Right images that are one or three frames late
are explained for at most 0.73 s (`python -m bench.knocks`, KITTI 09 and EuRoC MH_01)."""
_AGAINST = 3.0
"""Frames that a turn explains, which one that it does not explain outweighs: where corners are few, some are not.
Chosen."""
_MAY_BE = np.radians(1.0)
"""One sigma of what a knock may turn a camera by. Chosen: wide, since rows hardly show a yaw."""


class RowKnock:
    """Watches how the matches of doubted frames leave their rows. Pure numpy, no randomness."""

    def __init__(self, model: CalibrationModel) -> None:
        self._model = model
        self.restart()

    def restart(self) -> None:
        """A frame whose rows are as they used to be: nothing was knocked."""
        self._information, self._score = np.eye(3) / _MAY_BE**2, np.zeros(3)
        self.seconds: float | None = None
        """Of doubted frames that one turn has explained so far; None: none has."""

    def look(
        self, corners: Float64, field: RowField | None, seconds: float, usual: Callable[[Float64], bool]
    ) -> Float64 | None:
        """Take in a doubted frame, `seconds` after the last; (3,) pitch, yaw and roll of a knock, once it is one.

        corners: (N, 4) pixel u, v, disparity and vertical part of certain matches, pixels of the camera's image. field:
        where matches were before; None: on their rows. usual: whether (N,) vertical parts are what these cameras have.
        """
        pixel, disparity, vertical = corners[:, :2], corners[:, 2], corners[:, 3]
        columns = self._model.row_jacobian(pixel, disparity)[:, :3]
        change = vertical - (0.0 if field is None else field.at(pixel, disparity))
        told = robust_rows(columns, change, np.full(3, _MAY_BE))
        turn = np.linalg.solve(self._information, self._score)
        if self.seconds is not None and usual(vertical - columns @ turn):
            self.seconds += seconds
        elif self.seconds is not None and self.seconds > _AGAINST * seconds:
            self.seconds -= _AGAINST * seconds
            return None
        else:  # the first, or another turn than before
            self.restart()
            turn = np.linalg.solve(self._information + told.information, told.score)
            if not usual(vertical - columns @ turn):
                return None
            self.seconds = 0.0
        self._information, self._score = self._information + told.information, self._score + told.score
        if self.seconds < STEADY:
            return None
        return np.asarray(np.linalg.solve(self._information, self._score))
