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

"""Once two motions were to be seen, the next frames are believed only if nothing speaks against them.

What took the keypoints for a moment (the robot's arm, a bus) is still there in the next frame, and some frames show
less of the contradiction than others: slow ones hardly any. Those must not be taken for the world.
"""

from __future__ import annotations

_FRAMES = 4
"""Frames after a contest for which doubt remains."""
_LONGEST = 15
"""Frames after which something that always contradicts a little (a crowd) is taken as ordinary again."""


class Wariness:
    """Counts the frames since a contest."""

    def __init__(self) -> None:
        self._left = self._longest = 0

    @property
    def active(self) -> bool:
        """Whether a motion needs all of the image behind it."""
        return self._left > 0

    def update(self, *, contested: bool, lost: bool) -> None:
        """Take in one frame. contested: see `status.is_contested`; lost: its motion was not believed."""
        if contested:
            self._left, self._longest = _FRAMES, _LONGEST
        elif self.active:
            self._longest -= 1
            self._left = min(_FRAMES if lost else self._left - 1, self._longest)
