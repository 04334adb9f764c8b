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

"""Pairs dropped because they come faster than they are tracked: how many lately, and what to do about it."""

from __future__ import annotations

import time
from collections.abc import Callable

from macvo_ros.ros.counters import Counts

WINDOW = 5.0
"""Seconds over which a share is taken: one pair dropped in the first of them is not "100 %"."""


SECOND = 30
"""Pairs of a second, or so: whether most of them are dropped is asked anew after as many."""


class Overload:
    """Whether most pairs are dropped: from a second in which more than half were until one in which none was."""

    def __init__(self, counts: Counts) -> None:
        """counts: where counting begins."""
        self.lasts = False
        self._before = counts

    def update(self, counts: Counts) -> bool:
        """The counters as they stand now; returns `lasts`."""
        dropped, received = counts.dropped - self._before.dropped, counts.received - self._before.received
        if received >= SECOND:
            self.lasts = dropped > (0 if self.lasts else received / 2)
            self._before = counts
        return self.lasts


class OverloadLog:
    """Writes one line on dropped pairs now and then, with the counts since it last looked closely."""

    def __init__(self, write: Callable[[str], object], period: float = 30.0) -> None:
        """write: logs a line. period: seconds between two lines at least."""
        self._write, self._period = write, period
        self._since, self._before = time.monotonic(), Counts()
        self._said = -period

    def update(self, counts: Counts) -> None:
        """The counters as they stand now."""
        now = time.monotonic()
        seconds = now - self._since
        if seconds < WINDOW:
            return
        hint = overload_hint(counts, self._before, seconds)
        if hint and now - self._said < self._period:
            return  # they add up until the next line
        if hint:
            self._write(hint)
            self._said = now
        self._since, self._before = now, counts


def overload_hint(counts: Counts, before: Counts, seconds: float) -> str:
    """What to say of pairs dropped between two counts `seconds` apart; empty when none were."""
    dropped, received = counts.dropped - before.dropped, counts.received - before.received
    if not dropped:
        return ""
    done = counts.processed + counts.refused - before.processed - before.refused
    return (
        f"{dropped} of {received} pairs dropped ({dropped / max(dropped, received):.0%}): {received / seconds:.1f} a "
        f"second come and {done / seconds:.1f} are tracked; lower the rate or size of the images, take a faster "
        "matcher, or leave the node more of the processor"
    )
