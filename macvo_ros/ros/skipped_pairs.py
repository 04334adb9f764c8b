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

Under overload images stay in the middleware while a pair is tracked (`image_gate`), and each gives way to the next one
of its side. What the images that are taken afterwards leave out is what was skipped, unless the middleware says that it
was lost on the way. A frame counts once, also where one of its images was taken and only the other one skipped.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from macvo_ros.ros.pairing import SIDES
from macvo_ros.ros.topic_record import TopicRecord

_REMEMBERED = 32
"""Images of a side that may still find a partner: four times as many as wait for one."""


@dataclass(frozen=True)
class Skipped:
    """Between two pairs: whole frames, and images by side that were taken although their partner was skipped."""

    pairs: int
    partners: dict[str, int]


@dataclass(frozen=True)
class _Place:
    """An image in its stream: how many were taken up to it, itself included, and how many skipped before it."""

    taken: int = 0
    skipped: int = 0


@dataclass
class _Side:
    """The stream of one camera. accounted: of `record.lost`, those that explain a gap already."""

    record: TopicRecord
    busy: bool = False
    accounted: int = 0
    taken: int = 0
    places: dict[int, _Place] = field(default_factory=dict)
    last: _Place = field(default_factory=_Place)

    def saw(self, missing: int) -> None:
        # A loss is told of before the image after it is taken. What is missing while nothing was in work was lost, or
        # overwritten for want of processor.
        lost = min(missing, max(0, self.record.lost - self.accounted)) if self.busy else missing
        self.accounted += lost
        self.record.skipped += missing - lost
        self.busy = False

    def took(self, stamp: int) -> None:
        self.taken += 1
        self.places[stamp] = self._here()
        if len(self.places) > _REMEMBERED:
            del self.places[next(iter(self.places))]

    def advance(self, stamp: int) -> _Place:
        """To the image of the next pair: how many were taken and skipped between it and the one of the last."""
        place, last = self.places.get(stamp, self._here()), self.last
        self.places = {stamp: later for stamp, later in self.places.items() if later.taken > place.taken}
        self.last = max(place, last, key=lambda each: each.taken)
        return _Place(max(0, place.taken - last.taken - 1), max(0, place.skipped - last.skipped))

    def _here(self) -> _Place:
        return _Place(self.taken, self.record.skipped)


class SkippedPairs:
    """Told of each image, each pair found, and when images begin to be left alone."""

    def __init__(self, left: TopicRecord, right: TopicRecord) -> None:
        self._sides = dict(zip(SIDES, (_Side(left), _Side(right)), strict=True))

    def busy(self) -> None:
        """From now on images are left alone: what is missing before the next one of a side was skipped."""
        for side in self._sides.values():
            side.busy = True

    def saw(self, side: str, missing: int) -> None:
        """An image came, and so many between it and the one before did not."""
        self._sides[side].saw(missing)

    def took(self, side: str, stamp: int) -> None:
        """That image is to find a partner. stamp: nanoseconds."""
        self._sides[side].took(stamp)

    def paired(self, left: int, right: int) -> Skipped:
        """Two images, by their stamps, became a pair; returns what was skipped since the pair before."""
        between_left, between_right = (
            self._sides[side].advance(stamp) for side, stamp in zip(SIDES, (left, right), strict=True)
        )
        # Of each frame an image was taken or skipped on either side; of those to count, at least one was skipped.
        frames = min(between_left.taken + between_left.skipped, between_right.taken + between_right.skipped)
        return Skipped(
            min(frames, between_left.skipped + between_right.skipped),
            {
                "left": min(between_left.taken, between_right.skipped),
                "right": min(between_right.taken, between_left.skipped),
            },
        )
