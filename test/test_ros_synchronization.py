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

"""Our stereo synchronization: what it pairs, and that message_filters pairs the same."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from macvo_ros.ros import synchronization
from macvo_ros.ros.pairing import PairingRecord

QUEUE = 4
arrivals = st.lists(st.tuples(st.sampled_from([0, 1]), st.integers(0, 40)), max_size=60)
"""Side and stamp (in steps of 5 ms) of each image, in the order of arrival."""


def message(stamp: int) -> SimpleNamespace:
    sec, nanosec = divmod(stamp, 10**9)
    return SimpleNamespace(header=SimpleNamespace(stamp=SimpleNamespace(sec=sec, nanosec=nanosec)), value=stamp)


def pairs(package, events, slop=None, make=message):
    filters = [package.SimpleFilter(), package.SimpleFilter()]
    if slop is None:
        synchronizer = package.TimeSynchronizer(filters, QUEUE)
    else:
        synchronizer = package.ApproximateTimeSynchronizer(filters, QUEUE, slop)
    found = []
    synchronizer.registerCallback(lambda left, right: found.append((stamp_of(left), stamp_of(right))))
    for side, step in events:
        filters[side].signalMessage(make(step * 5_000_000))
    return found


def stamp_of(item) -> int:
    return item.header.stamp.sec * 10**9 + item.header.stamp.nanosec


def test_exact_pairs_equal_stamps_only():
    assert pairs(synchronization, [(0, 1), (1, 2), (0, 3), (1, 1), (1, 3)]) == [
        (5_000_000, 5_000_000),
        (15_000_000, 15_000_000),
    ]


def test_approximate_pairs_the_nearest_within_the_tolerance():
    events = [(0, 0), (0, 10), (1, 9), (1, 1)]
    assert pairs(synchronization, events, slop=0.02) == [(50_000_000, 45_000_000), (0, 5_000_000)]
    assert pairs(synchronization, [(0, 0), (1, 4)], slop=0.02) == []  # exactly the tolerance is too much


def test_full_queue_loses_the_oldest():
    events = [(0, stamp) for stamp in range(QUEUE + 1)] + [(1, 0), (1, 1)]
    assert pairs(synchronization, events) == [(5_000_000, 5_000_000)]


@settings(max_examples=300, deadline=None)
@given(events=arrivals, slop=st.sampled_from([None, 0.006, 0.02]))
def test_message_filters_pairs_the_same(events, slop):
    message_filters = pytest.importorskip(
        "message_filters", reason="source ROS 2 from apt to run this: message_filters is not on PyPI"
    )
    from std_msgs.msg import Header

    def make(stamp: int) -> SimpleNamespace:
        header = Header()
        header.stamp.sec, header.stamp.nanosec = divmod(stamp, 10**9)
        return SimpleNamespace(header=header)

    assert pairs(synchronization, events, slop, make) == pairs(message_filters, events, slop, make)


@settings(deadline=None)
@given(events=arrivals)
def test_every_image_is_paired_waiting_or_counted_as_unpaired(events):
    record = PairingRecord(QUEUE)
    filters = [synchronization.SimpleFilter(), synchronization.SimpleFilter()]
    synchronizer = synchronization.TimeSynchronizer(filters, QUEUE)
    found = []
    synchronizer.registerCallback(lambda left, right: (found.append(1), record.paired(left.value, right.value)))
    unpaired = replaced = 0
    for side, step in events:
        replaced += step * 5_000_000 in synchronizer.queues[side]
        unpaired += record.saw(("left", "right")[side], step * 5_000_000, arrived=1.0)
        filters[side].signalMessage(message(step * 5_000_000))
    waiting = sum(len(queue) for queue in synchronizer.queues)
    assert len(events) == 2 * len(found) + unpaired + waiting + replaced
    assert record.forget() == waiting


def test_offset_is_that_of_the_nearest_stamps():
    record = PairingRecord(QUEUE)
    assert record.offset is None
    for i in range(30):
        record.saw("left", i * 100_000_000, arrived=1.0)
        record.saw("right", i * 100_000_000 + 40_000_000, arrived=1.0)
    assert record.offset == pytest.approx(0.040)
    assert record.went_back("left", 0)
    assert not record.went_back("left", 29 * 100_000_000)
