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

"""Transitions, start and end of the process."""

from __future__ import annotations

import signal

from supervised_node import SupervisedNode

from macvo_ros.odometry.status import Status


def test_lifecycle_walk(start_node, make_peer, frames):
    process = start_node("walk", autostart=False, camera_at_base=True, watchdog=0.3)
    peer = make_peer("walk")
    assert peer.get_state(process.name) == "unconfigured"
    assert not peer.node.count_subscribers("/walk/left/image_rect")
    request_impossible(peer, process)
    assert peer.get_state(process.name) == "unconfigured"
    assert peer.set_parameter(process.name, "keypoints.nms", 9).successful  # nothing is configured yet
    assert peer.change_state(process.name, "configure")
    assert peer.get_state(process.name) == "inactive"
    assert not peer.node.count_subscribers("/walk/left/image_rect")
    answer = peer.set_parameter(process.name, "keypoints.nms", 11)
    assert not answer.successful
    assert "configure again" in answer.reason
    assert peer.change_state(process.name, "activate")
    node = SupervisedNode(process, peer, frames[0].camera)
    node.track(frames[0])
    moved = node.track(frames[1])
    assert moved.state == Status.TRACKING

    assert peer.change_state(process.name, "deactivate")
    peer.until(lambda: not peer.node.count_subscribers("/walk/left/image_rect"), "the node to unsubscribe")
    assert peer.change_state(process.name, "activate")
    peer.until(lambda: peer.node.count_subscribers("/walk/left/image_rect"), "the node to subscribe again")
    node = SupervisedNode(process, peer, frames[0].camera)
    again = node.track(frames[2], stamp=frames[2].stamp)
    assert again.processed == moved.processed + 1  # the same odometry goes on

    assert peer.change_state(process.name, "deactivate")
    assert peer.change_state(process.name, "cleanup")
    assert peer.get_state(process.name) == "unconfigured"
    peer.until(lambda: not peer.node.count_publishers(f"{process.name}/odometry"), "the topics to go")
    assert peer.set_parameter(process.name, "keypoints.nms", 11).successful
    assert peer.change_state(process.name, "configure")
    assert peer.change_state(process.name, "activate")
    node = SupervisedNode(process, peer, frames[0].camera)
    fresh = node.track(frames[0])
    assert (fresh.state, fresh.processed) == (Status.INITIALIZING, 1)
    assert process.stop(signal.SIGTERM) == 0


def request_impossible(peer, process):
    """Activate an unconfigured node: Jazzy raises in the node's executor, which must not end it; Kilted refuses."""
    from lifecycle_msgs.msg import Transition
    from lifecycle_msgs.srv import ChangeState

    request = ChangeState.Request(transition=Transition(id=Transition.TRANSITION_ACTIVATE))
    answer = peer.call(
        ChangeState,
        f"{process.name}/change_state",
        request,
        unless=lambda: "a callback failed" in process.output(),
    )
    assert answer is None or not answer.success


def test_mistakes_at_the_start_end_the_node_with_a_sentence(start_node, tmp_path):
    (tmp_path / "broken.yaml").write_text("width: 3\n")
    cases = {
        "unknown": ({"keypoint__count": 100}, 2, "did you mean keypoints.count?"),
        "calibration": ({"calibration_file": tmp_path / "broken.yaml"}, 1, "broken.yaml"),
    }
    started = {name: start_node(name, **parameters) for name, (parameters, _, _) in cases.items()}
    for name, (_, code, words) in cases.items():
        assert started[name].wait() == code, name
        assert words in started[name].output()
        assert "Traceback" not in started[name].output()
