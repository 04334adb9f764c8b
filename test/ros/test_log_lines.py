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

"""What the node says when something lasts: once, where people look, and with what to do."""

from __future__ import annotations

import itertools
import math

from supervised_node import SupervisedNode


def test_simulated_time_that_never_begins_is_told_of(start_node, make_peer, frames):
    from rosgraph_msgs.msg import Clock

    process = start_node("frozen", camera_at_base=True, watchdog=0.3, publish_tf=False, use_sim_time=True)
    peer = make_peer("frozen")
    node = SupervisedNode(process, peer, frames[0].camera)
    words = "nothing has come on /clock"
    peer.until(lambda: words in node.values()["message"], "a word about the clock")
    assert math.isnan(node.track(frames[0]).age)
    assert process.output().count(words) == 1

    clock = peer.publisher(Clock, "/clock")
    now = Clock()
    now.clock.sec = 1_790_000_001
    peer.until(lambda: clock.publish(now) or words not in node.values()["message"], "time to begin")
    assert abs(node.track(frames[1]).age) < 10
    assert process.stop() == 0


def test_one_line_for_one_silence(start_node, make_peer, frames):
    """Though its cause changes as one topic after the other appears, and the seconds in it grow."""
    process = start_node("quiet", camera_at_base=True, watchdog=0.3, publish_tf=False)
    peer = make_peer("quiet")
    node = SupervisedNode(process, peer, frames[0].camera)  # its four publishers come one by one
    peer.until(lambda: "stopped" in node.values()["message"] or "camera_info" in node.values()["message"], "a cause")
    for _ in range(4):
        node.refresh()
    written = [float(line.split("] [")[1]) for line in process.output().splitlines() if "silence: " in line]
    assert written
    assert all(later - earlier > 29 for earlier, later in itertools.pairwise(written))
    assert "more since the last line" not in process.output().partition("silence: ")[2]

    node.calibrate()
    node.track(frames[0])
    peer.until(
        lambda: process.output().count("silence: ") > len(written), "the next silence"
    )  # a new one is told of at once
    values = node.values("tracking")
    assert {"position_sigma, m", "rotation_sigma, rad"} <= set(values)
    assert process.stop() == 0
