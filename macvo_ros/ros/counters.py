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

"""What happened to every image: the numbers behind ~/status and /diagnostics, shared by executor and worker."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field, replace

from macvo_ros.odometry.status import Status


@dataclass(frozen=True)
class Refusals:
    """Unusable pairs of one kind: how many, and what was wrong with the last one."""

    count: int
    last: str


@dataclass(frozen=True)
class Counts:
    """A consistent snapshot. received = processed + refused + dropped + waiting at all times."""

    received: int = 0
    processed: int = 0
    dropped: int = 0
    refused: int = 0
    lost: int = 0
    degraded: int = 0
    unpaired: int = 0
    resets: int = 0
    refusals: dict[str, Refusals] = field(default_factory=dict)

    @property
    def waiting(self) -> int:
        """Pairs in the mailbox or in the worker's hands."""
        return self.received - self.processed - self.refused - self.dropped


class Counters:
    """Thread-safe counting."""

    def __init__(self) -> None:
        self._counts = Counts()
        self._lock = threading.Lock()
        self.last_tracked = time.monotonic()
        """When the last pair was tracked, or counting began; monotonic seconds."""

    def add(self, **increments: int) -> None:
        """Add to counters by name."""
        with self._lock:
            now = {name: getattr(self._counts, name) + step for name, step in increments.items()}
            self._counts = replace(self._counts, **now)

    def tracked(self, status: Status) -> None:
        """Count a pair that was tracked."""
        self.add(processed=1, lost=int(status is Status.LOST), degraded=int(status is Status.DEGRADED))
        self.last_tracked = time.monotonic()

    def refuse(self, kind: str, reason: str) -> int:
        """Count a pair that could not be used; returns how many of this kind there were."""
        with self._lock:
            before = self._counts.refusals.get(kind, Refusals(0, ""))
            refusals = {**self._counts.refusals, kind: Refusals(before.count + 1, reason)}
            self._counts = replace(self._counts, refused=self._counts.refused + 1, refusals=refusals)
        return before.count + 1

    def snapshot(self) -> Counts:
        """All counters at one moment."""
        with self._lock:
            return self._counts
