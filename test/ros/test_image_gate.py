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

"""Under overload images wait in the middleware until a pair is wanted, and those that give way are counted."""

from __future__ import annotations

import itertools
import time

import pytest
from harness import DEADLINE


class BusyWorker:
    """Takes a pair and wants no other until it is told to."""

    def __init__(self):
        self.pairs, self.wants, self.asked = [], True, 0

    def put(self, pair):
        self.pairs.append(pair)
        self.wants = False

    def wanted(self):
        self.asked += 1
        return self.wants


class Stage:
    """The real subscriptions of a node, a camera on the other side of DDS, and a worker that a test controls."""

    def __init__(self, node, camera):
        from rclpy.executors import SingleThreadedExecutor
        from sensor_msgs.msg import Image

        from macvo_ros.ros.counters import Counters
        from macvo_ros.ros.inputs import StereoInputs

        self.counters, self.worker = Counters(), BusyWorker()
        refused = []
        self.inputs = StereoInputs(
            node,
            node.config,
            self.counters,
            lambda pair: (self.counters.add(received=1, processed=1), self.worker.put(pair)),
            lambda *why: refused.append(why),
            self.worker.wanted,
        )
        self.records = [self.inputs.topics[f"{side} image"] for side in ("left", "right")]
        self.publishers = [camera.create_publisher(Image, record.name, 100) for record in self.records]
        self.executor = SingleThreadedExecutor()
        self.executor.add_node(node)
        self.stamps = itertools.count(1_000_000_000, 33_000_000)

    def until(self, condition, what):
        end = time.monotonic() + DEADLINE
        while not condition():
            assert time.monotonic() < end, f"waited in vain for {what}"
            self.executor.spin_once(timeout_sec=0.05)

    def send(self, *sides, stamp=None):
        """An image of each side (0 left, 1 right) with one stamp; returns that once they are in the node's process."""
        from camera_messages import set_stamp
        from rclpy.duration import Duration
        from sensor_msgs.msg import Image

        stamp = stamp or next(self.stamps)
        for side in sides or (0, 1):
            self.publishers[side].publish(set_stamp(Image(), stamp))
        assert all(publisher.wait_for_all_acked(Duration(seconds=60)) for publisher in self.publishers)
        return stamp

    def connect(self):
        """Send pairs until one comes through: subscriptions are made anew when overload begins and ends."""
        self.worker.wants = True
        before = len(self.worker.pairs)

        def arrived():
            self.send()
            self.executor.spin_once(timeout_sec=0.05)
            return len(self.worker.pairs) > before

        self.until(arrived, "a pair")
        self.drain()

    def drain(self):
        """Track whatever is still in the middleware."""
        last = self.send()
        self.worker.wants = True
        self.until(lambda: self.worker.pairs[-1].stamp == last, "the last pair")

    def overload(self):
        """Have most of a second's pairs dropped, and wait until the images are behind the gate."""
        self.connect()
        self.counters.add(received=100, dropped=100)
        self.until(lambda: self.inputs.gated, "the gate")
        self.connect()

    def gained(self, before):
        after = self.counters.snapshot()
        return {name: getattr(after, name) - getattr(before, name) for name in ("received", "dropped", "unpaired")}


@pytest.fixture
def stage(ros):
    import rclpy
    from rclpy.parameter import Parameter

    from macvo_ros.ros.node import MacvoNode

    values = {"camera_at_base": True, "reliability": "reliable", "calibration_file": "none is read here"}
    node = MacvoNode(parameter_overrides=[Parameter(key, value=value) for key, value in values.items()])
    camera = rclpy.create_node("gate_camera")
    stage = Stage(node, camera)
    yield stage
    stage.inputs.close()
    stage.executor.remove_node(node)
    camera.destroy_node()
    node.release()
    node.destroy_node()


def all_are_handed_over(stage):
    """Also while the worker wants none."""
    stage.connect()
    stage.worker.wants = False
    before = stage.counters.snapshot()
    sent = [stage.send() for _ in range(5)]
    stage.until(lambda: stage.worker.pairs[-1].stamp == sent[-1], "the last pair")
    assert [pair.stamp for pair in stage.worker.pairs[-5:]] == sent
    assert stage.gained(before) == {"received": 5, "dropped": 0, "unpaired": 0}


def test_without_overload_every_pair_is_handed_over_in_order(stage):
    """Whether the worker wants one or not: the mailbox is behind it."""
    all_are_handed_over(stage)
    assert not stage.inputs.gated


def test_behind_the_gate_the_newest_pair_wins_and_the_others_are_counted(stage):
    stage.overload()
    before, taken, skipped = (
        stage.counters.snapshot(),
        [record.received for record in stage.records],
        [record.skipped for record in stage.records],
    )
    sent = [stage.send() for _ in range(6)]
    ready = time.monotonic()
    stage.executor.spin_once(timeout_sec=0.3)
    assert [record.received for record in stage.records] == taken  # the worker is busy, and nothing was taken
    stage.worker.wants = True
    stage.until(lambda: not stage.worker.wants, "a pair")
    assert stage.worker.pairs[-1].stamp == sent[-1]
    assert stage.worker.pairs[-1].arrived <= ready  # when it came, not when it was taken
    assert [record.received for record in stage.records] == [count + 1 for count in taken]
    assert [record.skipped for record in stage.records] == [count + 5 for count in skipped]
    assert [record.overwritten for record in stage.records] == [0, 0]
    assert stage.gained(before) == {"received": 6, "dropped": 5, "unpaired": 0}


@pytest.mark.parametrize("first", [0, 1], ids=["left first", "right first"])
def test_images_whose_partner_was_skipped_belong_to_dropped_pairs(stage, first):
    """The gate opens between the two images of a pair: the older of the other side is useless, and nobody's fault."""
    stage.overload()
    before = stage.counters.snapshot()
    for _ in range(12):  # more than wait for a partner
        stage.send()
        half = stage.send(first)
        taken = stage.records[1 - first].received
        stage.worker.wants = True
        stage.until(lambda taken=taken: stage.records[1 - first].received > taken, "the older image")
        assert stage.worker.wants  # these two do not pair
        stage.send(1 - first, stamp=half)
        stage.until(lambda: not stage.worker.wants, "the pair")
        assert stage.worker.pairs[-1].stamp == half
    assert stage.gained(before) == {"received": 24, "dropped": 12, "unpaired": 0}


def test_an_executor_before_a_shut_gate_sleeps(stage):
    """An image that waits must not wake it again and again: that would cost more than taking it."""
    stage.overload()
    stage.send()
    stage.worker.asked = 0
    for _ in range(5):
        stage.executor.spin_once(timeout_sec=0.1)
    assert 0 < stage.worker.asked < 1000


def test_when_overload_ends_all_pairs_are_taken_again(stage):
    stage.overload()
    stage.until(
        lambda: stage.counters.add(received=100, processed=100) or not stage.inputs.gated, "the gate to be taken away"
    )
    all_are_handed_over(stage)
