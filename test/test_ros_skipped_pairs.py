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

"""Every frame a camera sent is tracked, skipped, or has an image that was lost on the way."""

from __future__ import annotations

import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed; run `make build`")

from hypothesis import given, settings
from hypothesis import strategies as st

from macvo_ros.ros.counters import Counts
from macvo_ros.ros.overload import SECOND, Overload
from macvo_ros.ros.pairing import SIDES, PairingRecord
from macvo_ros.ros.skipped_pairs import SkippedPairs
from macvo_ros.ros.synchronization import SimpleFilter, TimeSynchronizer
from macvo_ros.ros.topic_record import TopicRecord

QUEUE = 8


class Message:
    def __init__(self, number):
        self.number = number
        self.header = type("Header", (), {"stamp": type("Stamp", (), {"sec": number, "nanosec": 0})})


class Camera:
    """A camera, a middleware that keeps the newest image of each side, and who takes them while nothing is in work."""

    def __init__(self):
        self.records = {side: TopicRecord(f"{side} image", side, None) for side in SIDES}
        self.skipped, self.pairing = SkippedPairs(*self.records.values()), PairingRecord(QUEUE)
        self.filters = {side: SimpleFilter() for side in SIDES}
        TimeSynchronizer(list(self.filters.values()), QUEUE).registerCallback(self.pair)
        self.newest = {}
        self.tracked, self.dropped, self.unpaired, self.busy = 0, 0, 0, False

    def pair(self, left, right):
        self.pairing.paired(left.number, right.number)
        found = self.skipped.paired(left.number, right.number)
        self.dropped += found.pairs
        for side, count in found.partners.items():
            self.pairing.excuse(side, left.number, count)
        self.tracked += 1
        self.busy = True
        self.skipped.busy()

    def send(self, side, number, lost):
        if lost:
            self.records[side].lost += 1
        else:
            self.newest[side] = number
        self.take()

    def take(self):
        for side in SIDES:
            if self.busy or side not in self.newest:
                continue
            number = self.newest.pop(side)
            record = self.records[side]
            self.skipped.saw(side, record.missed.saw({"publication_sequence_number": number}))
            record.saw()
            self.skipped.took(side, number)
            self.unpaired += self.pairing.saw(side, number, arrived=1.0)
            self.filters[side].signalMessage(Message(number))

    def finish(self):
        self.busy = False
        self.take()


@settings(deadline=None)
@given(
    steps=st.lists(st.sampled_from([0, 1, "free"]), min_size=1, max_size=120),
    lost=st.sets(st.tuples(st.sampled_from(SIDES), st.integers(2, 40))),
)
@pytest.mark.parametrize("lossy", [False, True])
def test_every_frame_is_accounted_for(lossy, steps, lost):
    """steps: the next image of a side is sent, or the work on a pair ends."""
    camera, sent = Camera(), dict.fromkeys(SIDES, 0)
    lost = lost if lossy else set()
    for step in steps:
        if step != "free":
            side = SIDES[step]
            if sent[side] - sent[SIDES[1 - step]] < 3:  # one side may be ahead
                sent[side] += 1
                camera.send(side, sent[side], (side, sent[side]) in lost)
            continue
        camera.finish()
    frames = max(sent.values()) + 1
    for side in SIDES:
        while sent[side] < frames - 1:
            sent[side] += 1
            camera.send(side, sent[side], (side, sent[side]) in lost)
    for side in SIDES:  # a last frame that arrives, to a worker that is free
        camera.finish()
        camera.send(side, frames, lost=False)
    camera.finish()
    for side, record in camera.records.items():
        assert record.received + record.skipped + record.lost + record.overwritten == frames, side
    known = camera.tracked + camera.dropped
    if not lossy:
        assert known == frames
        assert camera.unpaired == 0
        assert all(record.overwritten == 0 for record in camera.records.values())
    else:
        gone = len({number for _, number in lost if number < frames})
        assert frames - 2 * gone - camera.unpaired <= known <= frames


def counts(received, dropped):
    return Counts(received=received, dropped=dropped)


def test_overload_begins_with_half_of_a_second_dropped_and_ends_with_none():
    overload = Overload(counts(1000, 900))  # what was before is of no interest
    assert not overload.update(counts(1000 + SECOND - 1, 900 + SECOND - 1))  # too few to say
    assert not overload.update(counts(1000 + SECOND, 900 + SECOND // 2))
    assert overload.update(counts(1000 + 2 * SECOND, 900 + 2 * SECOND))
    assert overload.update(counts(1000 + 3 * SECOND, 901 + 2 * SECOND))
    assert overload.update(counts(1000 + 4 * SECOND - 1, 901 + 2 * SECOND))
    assert not overload.update(counts(1000 + 4 * SECOND, 901 + 2 * SECOND))
