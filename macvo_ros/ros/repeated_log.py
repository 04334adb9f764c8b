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

"""Says a thing that repeats at once, and then only now and then."""

from __future__ import annotations

import time
from collections.abc import Callable


class RepeatedLog:
    """Logs each kind of message when it is new or has not been said for a while, with how often it came."""

    def __init__(self, write: Callable[[str], object], period: float = 5.0, counting: bool = True) -> None:
        """write: logs a line; a function of its own, since rclpy allows each line of code one severity only.

        period: seconds between two lines of a kind. counting: say how many there were in between.
        """
        self._write, self._period, self._counting = write, period, counting
        self._said: dict[str, tuple[float, str]] = {}
        self._unsaid: dict[str, int] = {}

    def say(self, kind: str, text: str, key: str = "") -> None:
        """Log `text` now, or count it. key: what makes it a new message of its kind; by default only time does."""
        now = time.monotonic()
        then, last_key = self._said.get(kind, (-1e9, ""))
        if now - then < self._period and key == last_key:
            self._unsaid[kind] = self._unsaid.get(kind, 0) + 1
            return
        more = self._unsaid.pop(kind, 0) if self._counting else 0
        self._said[kind] = (now, key)
        self._write(f"{kind}: {text}" + (f" ({more} more since the last line)" if more else ""))
