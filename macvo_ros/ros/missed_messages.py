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

"""Messages that were published and never reached a callback, by the numbers that the middleware gives them.

A reader keeps the newest few messages; where the executor gets no processor in time, older ones are overwritten and no
event tells of it. Their numbers are missing in what comes afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rclpy.subscription import Subscription

NUMBERED = hasattr(Subscription, "CallbackType")
"""Whether this rclpy hands the number of a message to a callback of two arguments (Humble does not)."""

_PUBLISHERS = 4
"""Publishers of one topic that are told apart; the numbers of each go up by one."""
_LONGEST_GAP = 1000
"""Half a minute of a camera: a number further ahead belongs to another publisher."""


class MissedMessages:
    """Counts the gaps. rclpy does not say whose a number is: it belongs to the publisher that it continues closest."""

    def __init__(self) -> None:
        self.count = 0
        self._last: list[int] = []

    def begin_anew(self) -> None:
        """A new subscription: what was sent between the old one and it was never meant for us."""
        self._last.clear()

    def saw(self, info: Mapping[str, Any]) -> int:
        """A message came, with what the middleware says of it; returns how many are missing before it."""
        number = info.get("publication_sequence_number")
        if number is None:
            return 0
        missing = 0
        continued = [last for last in self._last if 0 < number - last <= _LONGEST_GAP]
        if continued:
            missing = number - max(continued) - 1
            self._last.remove(max(continued))
        self._last = [*self._last, number][-_PUBLISHERS:]
        self.count += missing
        return missing
