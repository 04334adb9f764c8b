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

import pytest
import yaml
from supervised_node import SupervisedNode

from macvo_ros.odometry.status import Status


def test_lifecycle_walk(start_node, make_peer, frames):
    process = start_node("walk", autostart=False, camera_at_base=True, watchdog=0.3)
    peer = make_peer("walk")
    assert peer.get_state(process.name) == "unconfigured"
    assert not peer.node.count_subscribers("/walk/left/image_rect")
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


def request(peer, process, number=0, label=""):
    """Ask for a transition and return the answer; None when there is none before the node complains."""
    from lifecycle_msgs.msg import Transition
    from lifecycle_msgs.srv import ChangeState

    return peer.call(
        ChangeState,
        f"{process.name}/change_state",
        ChangeState.Request(transition=Transition(id=number, label=label)),
        unless=lambda: "a callback failed" in process.output(),
    )


@pytest.mark.parametrize("how", [{"number": 3}, {"label": "activate"}, {"label": "dance"}, {"number": 99}])
def test_an_impossible_request_is_answered(unconfigured, how):
    """With success=false, and with a sentence in the log (the answer has no room for one)."""
    process, peer = unconfigured
    before = process.output().count("lifecycle request refused")
    answer = request(peer, process, **how)
    assert answer is not None
    assert not answer.success
    peer.until(lambda: process.output().count("lifecycle request refused") > before, "a line of the log")
    line = process.output().splitlines()[-1]
    assert "while the node is unconfigured (possible: configure, shutdown)" in line
    assert peer.get_state(process.name) == "unconfigured"
    assert "Traceback" not in process.output()


@pytest.fixture(scope="module")
def unconfigured(start_node):
    from harness import Peer

    process, peer = start_node("bare", autostart=False), Peer("bare")
    yield process, peer
    assert process.stop() == 0
    peer.close()


def test_a_manager_that_configures_a_node_that_started_itself_goes_on(start_node, make_peer):
    """As nav2's lifecycle manager does: it asks at once, while the node still loads, and gets its answer."""
    process, peer = start_node("managed"), make_peer("managed")
    assert not request(peer, process, number=1).success
    assert peer.get_state(process.name) == "active"
    assert "'configure' is not possible while the node is active" in process.output()
    assert "set autostart to false" in process.output()
    assert peer.change_state(process.name, "deactivate")  # and the possible ones are granted as ever
    request(peer, process, label="shutdown")
    assert peer.get_state(process.name) == "finalized"
    assert not request(peer, process, number=1).success
    assert "while the node is finalized (possible: nothing)" in process.output()
    assert process.stop() == 0
    assert "Traceback" not in process.output()


@pytest.fixture
def parameter_file(tmp_path):
    """Write a ROS 2 parameter file with one section; a section of a namespace holds one of a node."""

    def write(section, **values):
        file = tmp_path / f"{len(list(tmp_path.iterdir()))}.yaml"
        nested = any(isinstance(value, dict) for value in values.values())
        file.write_text(yaml.safe_dump({section: values if nested else {"ros__parameters": values}}))
        return file

    return write


def test_a_file_shared_by_all_nodes_may_hold_foreign_keys(start_node, make_peer, parameter_file):
    """Those under a wildcard are ignored with a warning, ours are taken, those of other nodes are not looked at."""
    shared = parameter_file("/**", robot_radius=0.3, matchr="classic", watchdog=7.5, use_sim_time=False)
    foreign = parameter_file("/**/planner", speed=1.0)
    process, peer = start_node("shared", params_files=[shared, foreign], autostart=False), make_peer("shared")
    assert peer.get_state(process.name) == "unconfigured"
    (line,) = [line for line in process.output().splitlines() if "no such parameters" in line]
    assert "robot_radius" in line
    assert "matchr (did you mean matcher?)" in line
    assert str(shared) in line
    assert parameter(peer, process, "watchdog") == 7.5
    assert process.stop() == 0


def parameter(peer, process, name):
    from rcl_interfaces.srv import GetParameters

    request = GetParameters.Request(names=[name])
    return peer.call(GetParameters, f"{process.name}/get_parameters", request).values[0].double_value


def test_mistakes_at_the_start_end_the_node_with_a_sentence(start_node, tmp_path, parameter_file):
    (tmp_path / "broken.yaml").write_text("width: 3\n")
    cases = {
        "unknown": ({"keypoint__count": 100}, 2, "did you mean keypoints.count?"),
        "addressed": ({"params_files": [parameter_file("/**/macvo", robot_radius=0.3)]}, 2, "'robot_radius'"),
        "nested": ({"params_files": [parameter_file("nested", macvo={"ros__parameters": {"a": 1}})]}, 2, "'a'"),
        "value": ({"params_files": [parameter_file("/**", watchdog=-1.0)]}, 2, "watchdog: expected a number from"),
        "calibration": ({"calibration_file": tmp_path / "broken.yaml"}, 1, "broken.yaml"),
    }
    started = {name: start_node(name, **parameters) for name, (parameters, _, _) in cases.items()}
    for name, (_, code, words) in cases.items():
        assert started[name].wait() == code, name
        assert words in started[name].output()
        assert "Traceback" not in started[name].output()
