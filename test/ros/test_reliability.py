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

"""Delivery that fits the publishers: reliable from those that offer it, best effort from the others."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from camera_messages import image_message
from rclpy.qos import QoSProfile, ReliabilityPolicy

from macvo_ros.ros.input_watchdog import TopicFacts
from macvo_ros.ros.matched_subscription import matching
from macvo_ros.ros.transport_loss import RecentLoss, loss_hint

PAIRS, MOST = 60, 48
"""Sent, and those that must arrive: 56 to 60 do, however busy the machine; by best effort 3 to 34 (of the right 10)."""
RELIABLE, BEST_EFFORT = ReliabilityPolicy.RELIABLE, ReliabilityPolicy.BEST_EFFORT


class Diagnosed:
    """What a node says of its topics."""

    def __init__(self, process, peer):
        self.peer, self.name = peer, f"{process.name.strip('/')}: input"
        peer.watched = process
        self.inbox = peer.meet(process.name)

    def of(self, role):
        """The newest line on a topic, as in "1 publisher, reliable, 60 messages, ..."."""
        for array in reversed(self.inbox):
            for status in array.status:
                if status.name == self.name:
                    return next((pair.value for pair in status.values if pair.key.startswith(role)), "")
        return ""

    def wait(self, role, *words):
        self.peer.until(lambda: all(word in self.of(role) for word in words), f"{role}: {words}")

    def received(self, role):
        found = re.search(r"(\d+) messages", self.of(role))
        return int(found[1]) if found else 0


def test_images_of_an_ordinary_driver_arrive(start_node, make_peer):
    """1280x720 at 30 Hz from a sender with reliable QoS and 512 KB of shared memory, as installed."""
    process = start_node("ordinary", camera_at_base=True, reliability="auto", watchdog=0.5)
    node = Diagnosed(process, make_peer("ordinary"))
    assert "best effort" in node.of("left image") or "no publisher" in node.of("left image")
    environment = {key: value for key, value in os.environ.items() if not key.endswith("DEFAULT_PROFILES_FILE")}
    script = Path(__file__).with_name("plain_publisher.py")
    command = [sys.executable, str(script), "ordinary", str(PAIRS), "reliable"]
    driver = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE)
    try:
        for side in ("left", "right"):
            node.wait(f"{side} image", "1 publisher, reliable")
            node.peer.until(lambda side=side: node.received(f"{side} image") >= MOST, f"{MOST} of {PAIRS} images")
    finally:
        driver.kill()
        driver.wait()
    assert "/ordinary/left/image_rect (reliable)" in process.output()
    assert process.stop() == 0
    assert "Traceback" not in process.output()


def test_a_loss_that_shared_memory_did_not_cause_is_not_blamed_on_it(start_node, make_peer):
    """The driver has room for its images; the node hangs for a while, and what comes by best effort is gone."""
    process = start_node("hanging", camera_at_base=True, reliability="best_effort", watchdog=0.5)
    node = Diagnosed(process, make_peer("hanging"))
    script = Path(__file__).with_name("plain_publisher.py")
    command = [sys.executable, str(script), "hanging", "9999", "reliable", "any"]
    driver = subprocess.Popen(command, stdin=subprocess.PIPE)
    try:
        node.peer.until(lambda: node.received("left image") > 5, "images")
        os.kill(process.pid, signal.SIGSTOP)
        node.peer.drain(3.0)
        os.kill(process.pid, signal.SIGCONT)
        node.peer.until(lambda: "images lost: " in process.output(), "a line of the log")
    finally:
        driver.kill()
        driver.wait()
    (line, *_) = [line for line in process.output().splitlines() if "images lost: " in line]
    assert "set the parameter reliability to auto" in line
    assert "shared memory" not in line
    assert process.stop() == 0


def test_reliability_follows_publishers_that_come_and_go(start_node, make_peer, frames):
    """Both kinds on one topic are received by best effort; what is left when one has gone decides anew."""
    from sensor_msgs.msg import Image

    process = start_node("follow", camera_at_base=True, reliability="auto", watchdog=0.5)
    peer = make_peer("follow")
    node = Diagnosed(process, peer)

    def publisher(reliability):
        return peer.publisher(Image, "left/image_rect", QoSProfile(depth=5, reliability=reliability), wait=False)

    def received():
        words = node.of("left image").split()
        return int(words[words.index("messages,") - 1]) if "messages," in words else 0

    def send(which):
        before = received()
        peer.until(lambda: received() > before or which.publish(image_message(frames[0].left, 7)), "an image to arrive")

    strict = publisher(RELIABLE)
    node.wait("left image", "1 publisher, reliable")
    send(strict)
    hasty = publisher(BEST_EFFORT)
    node.wait("left image", "2 publishers, best effort")
    send(strict)
    send(hasty)
    peer.node.destroy_publisher(strict)
    node.wait("left image", "1 publisher, best effort")
    send(hasty)
    peer.node.destroy_publisher(hasty)
    again = publisher(RELIABLE)
    node.wait("left image", "1 publisher, reliable")
    send(again)
    assert process.stop() == 0
    assert "Traceback" not in process.output()


@pytest.mark.parametrize(
    ("choice", "offered", "asked"),
    [
        ("auto", [], BEST_EFFORT),
        ("auto", [RELIABLE, RELIABLE], RELIABLE),
        ("auto", [RELIABLE, BEST_EFFORT], BEST_EFFORT),
        ("auto", [ReliabilityPolicy.UNKNOWN], BEST_EFFORT),
        ("reliable", [BEST_EFFORT], RELIABLE),
        ("best_effort", [RELIABLE], BEST_EFFORT),
    ],
)
def test_what_is_asked_for(choice, offered, asked):
    assert matching(choice, offered) == asked


def images(received, lost, asked="best effort", offered="best effort"):
    kind = "sensor_msgs/msg/Image"
    more = {"size": 2_764_800, "asked": asked, "offered": (offered,)}
    return [TopicFacts(f"{side} image", f"/{side}", kind, (kind,), received, lost, "", 0.1, **more) for side in "lr"]


SMALL, LARGE = 549_408, 70_255_136
"""Bytes of a shared-memory segment of FastDDS, as installed and with config/fastdds.xml."""


@pytest.mark.parametrize(
    ("qos", "segments", "words", "unsaid"),
    [
        (("best effort", "reliable"), [LARGE, SMALL], "set the parameter reliability to auto", "queue depth"),
        (("best effort", "best effort"), [LARGE, SMALL], "publish with reliable QoS", "queue depth"),
        (("best effort", "best effort"), [LARGE, SMALL], "too little shared memory for images of 2.8 MB", "smaller"),
        (("best effort", "best effort"), [LARGE, LARGE], "smaller or fewer images", "shared memory"),
        (("best effort", "best effort"), [], "smaller or fewer images", "shared memory"),
        (("reliable", "reliable"), [LARGE], "queue depth", "shared memory"),
    ],
)
def test_the_hint_on_lost_images_names_what_helps(qos, segments, words, unsaid):
    topics = images(40, 60, *qos)
    hint = loss_hint(topics, *RecentLoss().update(topics), segments)
    assert "120 of 200 images were lost in transport (60%)" in hint
    assert words in hint
    assert unsaid not in hint


def test_one_image_in_a_thousand_is_not_worth_a_word():
    recent, segments = RecentLoss(), [SMALL]
    assert not loss_hint(images(3, 1), *recent.update(images(3, 1)[:1]), segments)
    topics = images(500, 1)
    assert not loss_hint(topics, *recent.update(topics), segments)
    topics = images(520, 40)  # and then the driver is started again, without its profile
    assert loss_hint(topics, *recent.update(topics), segments)
    for _ in range(40):  # no longer: what was lost half a minute ago is over
        found = recent.update(topics)
    assert found == (0, 0)
