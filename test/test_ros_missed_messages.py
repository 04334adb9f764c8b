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

"""Messages that never came are counted by the gaps in their numbers, whoever publishes."""

from __future__ import annotations

import random

import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed; run `make build`")

from macvo_ros.ros.missed_messages import MissedMessages


def missed(numbers: list[int | None]) -> int:
    record = MissedMessages()
    for number in numbers:
        record.saw({"publication_sequence_number": number})
    return record.count


@pytest.mark.parametrize(
    ("numbers", "count"),
    [
        ([1, 2, 3], 0),
        ([7, 8, 12, 13], 3),  # those before the first are none of ours
        ([90, 91, 93, 1, 2, 4], 2),  # the driver was started again
        ([90, 5, 91, 6, 94, 7, 9], 3),  # two publishers
        ([None, None], 0),  # a middleware that does not number
    ],
)
def test_gaps_are_counted(numbers, count):
    assert missed(numbers) == count


def test_publishers_in_any_order_are_told_apart():
    rng = random.Random(0)
    publishers = [iter(range(first, first + 50)) for first in (1, 2000, 40000)]
    numbers = []
    while publishers:
        numbers.append(next(chosen := rng.choice(publishers), None))
        publishers = [each for each in publishers if numbers[-1] is not None or each is not chosen]
    assert missed(numbers) == 0


def test_a_message_without_a_word_on_it_is_no_gap():
    record = MissedMessages()
    record.saw({})
    assert record.count == 0
