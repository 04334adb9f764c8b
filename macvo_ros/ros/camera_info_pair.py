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

"""The calibration of the two cameras, taken as one thing though it arrives as two messages."""

from __future__ import annotations

from typing import Any

import numpy as np

from macvo_ros.images.camera_info import CameraInfo
from macvo_ros.ros.pairing import SIDES
from macvo_ros.ros.stereo_messages import stamp_of

LONG_AGO = -(1 << 63)
"""Before every stamp."""


class CameraInfoPair:
    """The newest sensor_msgs/CameraInfo of both sides.

    When one side changes (another resolution, a new calibration), old and new must not be mixed: the pair is whole
    again once the other side has spoken too, with a stamp no older than the change.
    """

    def __init__(self, tolerance: float) -> None:
        """tolerance: seconds by which the stamps of the two sides may differ."""
        self._tolerance = round(tolerance * 1e9)
        self._messages: dict[str, Any] = dict.fromkeys(SIDES)
        self._infos: dict[str, CameraInfo | None] = dict.fromkeys(SIDES)
        self._changes = dict.fromkeys(SIDES, LONG_AGO)
        """Stamps of the last change of each side, nanoseconds."""

    def take(self, side: str, message: Any) -> None:
        """A camera_info came; most say what the one before said, and cost next to nothing."""
        known, self._messages[side] = self._messages[side], message
        if known is None:
            self._infos[side] = CameraInfo.from_message(message)
        elif not same_info(known, message):
            self._infos[side] = CameraInfo.from_message(message)
            self._changes[side] = stamp_of(message)
        else:  # a clock that went back must not leave a change in the future
            self._changes[side] = min(self._changes[side], stamp_of(message))

    def accept(self) -> bool:
        """Take a change of one side for the whole change if the two fit each other; whether the pair is whole now."""
        left, right = self.infos
        if left is not None and right is not None and _fit(left, right):
            self._changes = dict.fromkeys(SIDES, LONG_AGO)
        return self.whole

    @property
    def whole(self) -> bool:
        """Whether both sides are known, and neither waits for the other to follow a change."""
        return not self.missing and not self.changed

    @property
    def missing(self) -> list[str]:
        """Sides that never sent anything."""
        return [side for side in SIDES if self._infos[side] is None]

    @property
    def changed(self) -> str:
        """The side that changed and whose other has not spoken since; empty when there is none."""
        for side, other in zip(SIDES, reversed(SIDES), strict=True):
            spoke = self._messages[other]
            if spoke is not None and stamp_of(spoke) + self._tolerance < self._changes[side]:
                return side
        return ""

    @property
    def infos(self) -> tuple[CameraInfo | None, CameraInfo | None]:
        """Left and right."""
        return self._infos["left"], self._infos["right"]


def _fit(left: CameraInfo, right: CameraInfo) -> bool:
    """Same size, and projections of one rectified pair: same focal lengths, same row of the principal point."""
    return (left.width, left.height) == (right.width, right.height) and bool(
        np.array_equal(left.P[[0, 5, 6]], right.P[[0, 5, 6]])
    )


def same_info(one: Any, other: Any) -> bool:
    """Whether two sensor_msgs/CameraInfo say the same, headers' stamps aside; cheap, it runs for every message."""
    return bool(
        (one.width, one.height, one.distortion_model, one.header.frame_id)
        == (other.width, other.height, other.distortion_model, other.header.frame_id)
        and one.p.tobytes() == other.p.tobytes()
        and one.k.tobytes() == other.k.tobytes()
        and one.r.tobytes() == other.r.tobytes()
        and one.d == other.d
    )
