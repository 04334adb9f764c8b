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

"""The explanation of a silence names every topic and the first cause that fits."""

from __future__ import annotations

import dataclasses
import logging
from types import SimpleNamespace

import pytest

from macvo_ros.ros.core_log import forward_core_log
from macvo_ros.ros.input_watchdog import PairFacts, TopicFacts, explain_silence
from macvo_ros.ros.repeated_log import RepeatedLog

IMAGE, INFO = "sensor_msgs/msg/Image", "sensor_msgs/msg/CameraInfo"
PAIRS = PairFacts(approximate=False, tolerance=0.01, offset=0.0, since=100.0, last_refusal="")


def healthy() -> dict[str, TopicFacts]:
    facts = {}
    for side in ("left", "right"):
        for kind, wanted in (("image", IMAGE), ("camera_info", INFO)):
            role = f"{side} {kind}"
            facts[role] = TopicFacts(role, f"/cam/{side}/{kind}", wanted, (wanted,), 50, 0, "", 0.1)
    return facts


@pytest.mark.parametrize(
    ("changes", "pairs", "words"),
    [
        ({"left image": {"types": (), "received": 0, "alternatives": ("/zed/left",)}}, {}, "published now: /zed/left"),
        ({"left image": {"types": ("sensor_msgs/msg/CompressedImage",), "received": 0}}, {}, "parameter compressed"),
        ({"left camera_info": {"types": ("std_msgs/msg/String",), "received": 0}}, {}, "remap the topic"),
        ({"right image": {"incompatible": "RELIABILITY", "received": 0}}, {}, "reliability to auto"),
        ({"right camera_info": {"received": 0}}, {}, "no camera_info on /cam/right/camera_info"),
        ({"left image": {"received": 0}}, {}, "sends nothing"),
        ({"left image": {"received": 2, "lost": 48}}, {"loss": "48 of 50 were lost"}, "48 of 50 were lost"),
        ({}, {"offset": 0.04}, "right stamps are 40.000 ms after the left ones; set approximate_sync to true"),
        ({}, {"offset": -0.04}, "before the left ones"),
        ({}, {"offset": 0.04, "approximate": True}, "sync_tolerance is 0.01 s: raise it above 0.04 s"),
        ({}, {"since": 1.0, "last_refusal": "left image is green"}, "refused: left image is green"),
        ({"right image": {"age": 9.0}}, {}, "/cam/right/image stopped 9.0 s ago"),
    ],
)
def test_cause(changes, pairs, words):
    topics = healthy()
    for role, fields in changes.items():
        topics[role] = dataclasses.replace(topics[role], **fields)
    loss = pairs.pop("loss", "1 of 500 images were lost")  # told elsewhere; only so much of it explains a silence
    text = explain_silence(5.0, list(topics.values()), dataclasses.replace(PAIRS, **pairs), loss)
    assert words in text.splitlines()[-1]
    for topic in topics.values():
        assert topic.name in text


def test_what_the_core_logs_reaches_the_nodes_log():
    lines: list[tuple[str, str]] = []
    levels = ("info", "warning", "error")
    logger = SimpleNamespace(**{level: lambda text, level=level: lines.append((level, text)) for level in levels})
    ours = logging.getLogger("macvo_ros")
    before = ours.handlers, ours.level, ours.propagate
    try:
        forward_core_log(logger)
        logging.getLogger("macvo_ros.matching.auto").info("chose %s", "lite")
        logging.getLogger("macvo_ros.odometry.stereo_odometry").critical("gone")
        logging.getLogger("macvo_ros.odometry.stereo_odometry").debug("chatter")
    finally:
        ours.handlers, ours.propagate = before[0], before[2]
        ours.setLevel(before[1])
    assert lines == [("info", "chose lite"), ("error", "gone")]


def test_repeated_lines_are_counted_not_written():
    lines: list[str] = []
    log = RepeatedLog(lines.append, period=1e9)
    for _ in range(3):
        log.say("image", "truncated")
    log.say("stamp", "late")
    log.say("image", "too small", key="another cause")
    assert lines == ["image: truncated", "stamp: late", "image: too small (2 more since the last line)"]
