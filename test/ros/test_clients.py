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

"""Clients as they are: they ask for reliable delivery, come late, read slowly or not at all."""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest
from camera_messages import stamp_of
from rclpy.qos import DurabilityPolicy, QoSProfile
from supervised_node import supervised
from viewer import TOPICS

from macvo_ros.odometry.message_fields import CLOUD_DTYPE


@pytest.fixture(scope="module")
def node(start_node, frames):
    process = start_node("clients", camera_at_base=True, watchdog=0.5, publish_tf=False)
    with supervised(process, frames[0].camera) as node:
        node.calibrate()
        yield node


def test_whoever_comes_after_the_last_image_gets_path_and_map(node, frames):
    """Nobody listened before, and nothing moves any more; with RViz's default QoS and with a latched one."""
    for frame in frames[:4]:
        last = node.track(frame)
    latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    for qos in (5, latched):
        inboxes = [node.peer.listen(TOPICS[name], f"{node.node.name}/{name}", qos) for name in ("path", "map")]
        path, cloud = node.peer.until(lambda i=inboxes: all(i) and (i[0][-1], i[1][-1]), "path and map")
        assert stamp_of(path) == stamp_of(cloud) == stamp_of(last)
        assert [stamp_of(pose) for pose in path.poses] == [stamp_of(status) for status in node.status[-4:]]
        assert len(cloud.data) // CLOUD_DTYPE.itemsize > last.inliers


def test_default_subscribers_receive_every_topic(node, frames):
    inboxes = {name: node.peer.listen(kind, f"{node.node.name}/{name}") for name, kind in TOPICS.items()}
    node.peer.meet(node.node.name)
    for frame in frames[4:7]:
        node.track(frame)
    node.peer.until(lambda: all(inboxes.values()), "every topic")
    for info in node.peer.node.get_publishers_info_by_topic(f"{node.node.name}/depth"):
        assert info.qos_profile.reliability.name == "RELIABLE"


def test_a_viewer_that_hangs_does_not_slow_the_node(node, frames):
    """Reliable subscriptions of a stopped process, its queues full: the node tracks and publishes as fast as before."""
    command = [sys.executable, str(Path(__file__).with_name("viewer.py")), node.node.name]
    viewer = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    reading: list[float] = []
    hanging: list[float] = []
    try:
        assert viewer.stdout.readline() == "ready\n"
        node.peer.meet(node.node.name)
        os.kill(viewer.pid, signal.SIGSTOP)
        round_trips(node, frames, 30)  # fills its queues
        for _ in range(3):  # by turns: other programs come and go
            hanging += round_trips(node, frames, 10)
            os.kill(viewer.pid, signal.SIGCONT)
            reading += round_trips(node, frames, 10)
            os.kill(viewer.pid, signal.SIGSTOP)
    finally:
        viewer.kill()
        viewer.wait()
    # A publisher that waits does so for 100 ms (DDS's max_blocking_time) a topic, ten times what a pair takes.
    assert statistics.median(hanging) < 3 * statistics.median(reading)


def round_trips(node, frames, count):
    """Seconds from sending each of so many pairs to its status, one after the other; scenes come after that."""
    found = []
    for i in range(count):
        started = time.monotonic()
        node.track(frames[i % 12])
        found.append(time.monotonic() - started)
    return found
