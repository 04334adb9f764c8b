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

"""Whether a stamp continues the stream: late and doubled ones are left out, a clock that went back is noticed."""

from __future__ import annotations

LATE = 1_000_000_000
"""A pair up to this much before the newest one, nanoseconds, is a late one; further back it is a new time."""

RUN = 3
"""This many "late" pairs in a row, each after the other, are a new time as well (the loop of a very short bag)."""


class StampOrder:
    """Remembers the newest stamp, nanoseconds."""

    def __init__(self) -> None:
        self._newest: int | None = None
        self._late: list[int] = []

    def why_refused(self, stamp: int) -> str:
        """A sentence when the pair must be left out; empty when it continues the stream or begins a new one."""
        if self._newest is None or stamp > self._newest:
            return ""
        back = self._newest - stamp
        if back == 0:
            return (
                f"a second pair with the stamp {stamp * 1e-9:.9f} s; each pair needs a stamp of its own: check that "
                "the driver stamps its images and that nobody publishes them twice"
            )
        self._late = [*(late for late in self._late if late < stamp), stamp]
        if back > LATE or len(self._late) >= RUN:
            return ""
        return f"the pair is {back * 1e-6:.1f} ms older than one already tracked: it came late or out of order"

    def went_back(self, stamp: int) -> int:
        """By how many nanoseconds an accepted stamp lies before the newest one; 0 for one that continues."""
        return 0 if self._newest is None else max(0, self._newest - stamp)

    def accept(self, stamp: int) -> None:
        """The pair was tracked."""
        self._newest = stamp
        self._late.clear()

    def forget(self) -> None:
        """A new beginning: any stamp continues."""
        self._newest = None
        self._late.clear()
