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

"""Pairs that came and were never taken because another was in work: counted by the numbers of the images missing.

Images stay in the middleware while a pair is tracked (`image_gate`), and each gives way to the next one of its side.
What the images that are taken afterwards leave out is what was skipped, unless the middleware says that it was lost on
the way. A frame counts once, also where one of its images was taken and only the other one skipped.
"""

from __future__ import annotations

from dataclasses import dataclass

from macvo_ros.ros.pairing import SIDES
from macvo_ros.ros.topic_record import TopicRecord


@dataclass
class _Side:
    """Images of one camera since the last pair. accounted: of `record.lost`, those that explain a gap already."""

    record: TopicRecord
    busy: bool = False
    skipped: int = 0
    taken: int = 0
    accounted: int = 0

    def saw(self, missing: int) -> None:
        # A loss is told of before the image after it can be taken. One while nothing was in work is no skipping.
        lost = min(missing, max(0, self.record.lost - self.accounted)) if self.busy else missing
        self.accounted += lost
        self.skipped += missing - lost
        self.record.skipped += missing - lost
        self.taken += 1
        self.busy = False


@dataclass(frozen=True)
class Skipped:
    """Between two pairs: whole frames, and images by side that were taken although their partner was skipped."""

    pairs: int
    partners: dict[str, int]


class SkippedPairs:
    """Told of each image that is taken, each pair found and each pair handed over."""

    def __init__(self, left: TopicRecord, right: TopicRecord) -> None:
        self._sides = dict(zip(SIDES, (_Side(left), _Side(right)), strict=True))

    def handed_over(self) -> None:
        """From now on a pair is in work: what is missing before the next image of a side may have been skipped."""
        for side in self._sides.values():
            side.busy = True

    def saw(self, side: str, missing: int) -> None:
        """An image was taken, and so many between it and the one before were not."""
        self._sides[side].saw(missing)

    def paired(self) -> Skipped:
        """Two images became a pair; returns what was skipped since the pair before."""
        for side in self._sides.values():
            side.taken = max(0, side.taken - 1)  # 0: it was taken before another pair was found
        return self.settle()

    def settle(self) -> Skipped:
        """What was skipped since this was last asked; the images taken since are no pair's."""
        left, right = (self._sides[side] for side in SIDES)
        # Of each frame sent an image was taken or skipped on either side; of those counted, at least one was skipped.
        sent = min(left.skipped + left.taken, right.skipped + right.taken)
        found = Skipped(
            min(sent, left.skipped + right.skipped),
            {"left": min(left.taken, right.skipped), "right": min(right.taken, left.skipped)},
        )
        for side in (left, right):
            side.skipped = side.taken = 0
        return found
