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

"""Which images never found a partner, and by how much the stamps of the two cameras differ."""

from __future__ import annotations

import time
from collections import deque
from statistics import median

SIDES = ("left", "right")


class PairingRecord:
    """Mirrors the synchronizer's queues, whoever implements it. Stamps in nanoseconds."""

    def __init__(self, queue_size: int) -> None:
        self._queue_size = queue_size
        self._waiting: dict[str, dict[int, float]] = {side: {} for side in SIDES}
        self._recent: dict[str, deque[int]] = {side: deque(maxlen=20) for side in SIDES}
        self.last_pair = 0.0
        """When the last pair was found, `time.monotonic` seconds; 0 before the first."""

    def saw(self, side: str, stamp: int, arrived: float) -> int:
        """An image came, at `time.monotonic` seconds; returns how many left the queue for good without a partner."""
        self._recent[side].append(stamp)
        waiting = self._waiting[side]
        waiting[stamp] = arrived
        gone = 0
        while len(waiting) > self._queue_size:
            del waiting[min(waiting)]
            gone += 1
        return gone

    def paired(self, left: int, right: int) -> float:
        """Two images became a pair; returns when the second of them arrived."""
        self.last_pair = time.monotonic()
        stamps = zip(SIDES, (left, right), strict=True)
        return max(self._waiting[side].pop(stamp, 0.0) for side, stamp in stamps) or self.last_pair

    def excuse(self, side: str, before: int, count: int) -> None:
        """Of the images that wait with stamps below `before`, so many were left alone by us: they do not count."""
        for stamp in sorted(stamp for stamp in self._waiting[side] if stamp < before)[:count]:
            del self._waiting[side][stamp]

    def went_back(self, side: str, stamp: int) -> bool:
        """Whether a stamp lies before everything recent on its side: the queues belong to another time."""
        recent = self._recent[side]
        return bool(recent) and stamp < min(recent)

    def forget(self) -> int:
        """Empty the queues; returns how many images were waiting."""
        gone = sum(len(waiting) for waiting in self._waiting.values())
        for side in SIDES:
            self._waiting[side].clear()
            self._recent[side].clear()
        return gone

    @property
    def offset(self) -> float | None:
        """Median of right stamp minus nearest left stamp, seconds; None before both sides were seen."""
        left, right = (self._recent[side] for side in SIDES)
        if not left or not right:
            return None
        differences = ([stamp - other for other in left] for stamp in right)
        return median(min(candidates, key=abs) for candidates in differences) * 1e-9
