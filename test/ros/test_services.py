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

"""Services and parameters of the running node."""

from __future__ import annotations

import numpy as np
import pytest
from harness import matrix
from supervised_node import supervised

from macvo_ros.geometry.calibration import load_calibration
from macvo_ros.geometry.rectification import RawStereoCalibration
from macvo_ros.geometry.se3 import exp_so3, transform
from macvo_ros.odometry.status import Status
from macvo_ros.sequences.tum import read_tum


@pytest.fixture(scope="module")
def node(start_node, frames):
    process = start_node("serve", camera_at_base=True, watchdog=0.3)
    with supervised(process, frames[0].camera) as node:
        yield node


def trigger(node, name):
    from std_srvs.srv import Trigger

    return node.peer.call(Trigger, f"{node.node.name}/{name}")


def test_reset_starts_at_the_origin(node, frames):
    for frame in frames[:3]:
        node.track(frame)
    assert np.linalg.norm(matrix(node.newest_odometry().pose.pose)[:3, 3]) > 1e-3
    assert trigger(node, "reset").success
    status = node.track(frames[3])
    assert (status.state, status.resets) == (Status.INITIALIZING, 1)
    message = node.newest_odometry()
    np.testing.assert_array_equal(matrix(message.pose.pose), np.eye(4))
    assert message.pose.covariance[0] < 1e-9


def test_reset_to_pose_continues_from_it(node, frames):
    from macvo_ros.ros.transforms import write_transform
    from macvo_ros.srv import ResetToPose

    pose = transform(exp_so3(np.array([0.1, -0.4, 1.2])), np.array([3.0, -2.0, 0.5]))
    request = ResetToPose.Request()
    target = request.pose.pose.pose
    target.position.x, target.position.y, target.position.z = pose[:3, 3]

    class Both:  # a Transform's names over a Pose
        translation, rotation = target.position, target.orientation

    write_transform(Both, pose)
    request.pose.pose.covariance = np.diag([0.1, 0.2, 0.3, 0.01, 0.02, 0.03]).ravel()
    answer = node.peer.call(ResetToPose, f"{node.node.name}/reset_to_pose", request)
    assert answer.success, answer.message
    node.track(frames[4])
    message = node.newest_odometry()
    np.testing.assert_allclose(matrix(message.pose.pose), pose, atol=1e-9)
    np.testing.assert_allclose(np.diag(np.reshape(message.pose.covariance, (6, 6)))[:3], [0.1, 0.2, 0.3], rtol=1e-6)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda p: setattr(p.pose.pose.orientation, "w", 0.0), "unit quaternion"),
        (lambda p: setattr(p.pose.pose.position, "x", float("nan")), "not finite"),
        (lambda p: setattr(p.header, "frame_id", "map"), "'map'"),
        (lambda p: setattr(p.pose, "covariance", -np.eye(6).ravel()), "negative eigenvalue"),
        (lambda p: setattr(p.pose, "covariance", np.triu(np.ones((6, 6))).ravel()), "symmetric"),
    ],
)
def test_reset_to_an_impossible_pose_is_refused(node, spoil, words):
    from macvo_ros.srv import ResetToPose

    request = ResetToPose.Request()
    spoil(request.pose)
    answer = node.peer.call(ResetToPose, f"{node.node.name}/reset_to_pose", request)
    assert not answer.success
    assert words in answer.message


def test_pause_and_resume(node, frames):
    node.track(frames[5])
    received = node.status[-1].received
    assert trigger(node, "pause").success
    topics = [publisher.topic_name for publisher in (node.driver.left, node.driver.right)]
    node.refresh()
    before = [node.received(topic) for topic in topics]
    node.driver.send(frames[6], stamp=node.next_stamp())
    node.peer.until(
        lambda: all(node.received(topic) > n for topic, n in zip(topics, before, strict=True)),
        "the node to see the images it ignores",
    )
    assert "paused" in node.values("tracking")["message"]
    assert trigger(node, "resume").success
    status = node.track(frames[6])
    assert status.received == received + 1
    assert status.state == Status.TRACKING  # the gap is short and bridged


def test_save_trajectory(node, frames, tmp_path):
    from macvo_ros.srv import SaveTrajectory

    kind, service = SaveTrajectory, f"{node.node.name}/save_trajectory"
    path = tmp_path / "run.txt"
    answer = node.peer.call(kind, service, kind.Request(path=str(path)))
    assert answer.success, answer.message
    node.newest_odometry()
    saved, with_covariance = read_tum(path), read_tum(tmp_path / "run_covariance.txt")
    assert answer.poses == len(saved) == len(node.odometry)
    for i, message in enumerate(node.odometry):
        assert saved.stamps[i] == message.header.stamp.sec * 10**9 + message.header.stamp.nanosec
        np.testing.assert_allclose(saved.poses[i], matrix(message.pose.pose), atol=1e-8)
        np.testing.assert_allclose(
            with_covariance.covariance[i].ravel(), message.pose.covariance, rtol=1e-8, atol=1e-11
        )
    for impossible in ("", str(tmp_path), str(tmp_path / "no" / "such" / "folder.txt")):
        answer = node.peer.call(kind, service, kind.Request(path=impossible))
        assert not answer.success
        assert answer.message


def test_save_calibration(node, tmp_path):
    from macvo_ros.srv import SaveCalibration

    kind, service = SaveCalibration, f"{node.node.name}/save_calibration"
    folder = tmp_path / "new" / "camera"
    answer = node.peer.call(kind, service, kind.Request(folder=str(folder)))
    assert answer.success, answer.message
    saved, told = load_calibration(folder / "calibration.yaml"), node.driver.camera
    assert (folder / "left.yaml").is_file()
    assert (folder / "right.yaml").is_file()
    assert isinstance(saved, RawStereoCalibration)
    assert saved.left.K[0, 0] == pytest.approx(told.fx, rel=0.02)
    (tmp_path / "file").touch()
    for impossible in ("", str(tmp_path / "file" / "folder")):
        answer = node.peer.call(kind, service, kind.Request(folder=impossible))
        assert not answer.success
        assert answer.message


def test_live_parameters_change_and_others_say_why_not(node, frames):
    name = node.node.name
    assert node.peer.set_parameter(name, "keypoints.count", 60).successful
    assert node.track(frames[7]).keypoints <= 60
    assert node.peer.set_parameter(name, "keypoints.count", 200).successful
    assert node.track(frames[8]).keypoints > 60
    for key, value, words in (
        ("keypoints.count", 3, ""),
        ("matcher", "classic", "configure again"),
        ("base_frame", "elsewhere", "configure again"),
        ("autostart", False, "read-only"),
        ("no_such_parameter", 1, ""),
    ):
        answer = node.peer.set_parameter(name, key, value)
        assert not answer.successful, key
        assert words in answer.reason


def test_publishing_switches(node, frames):
    assert node.peer.set_parameter(node.node.name, "publish.odometry", False).successful
    silent = node.track(frames[9])
    assert node.peer.set_parameter(node.node.name, "publish.odometry", True).successful
    node.track(frames[10])
    node.newest_odometry()
    assert silent.header.stamp not in [message.header.stamp for message in node.odometry]


def test_parameter_descriptors(node):
    from rcl_interfaces.srv import DescribeParameters

    names = ["keypoints.count", "sync_tolerance", "autostart", "matcher"]
    request = DescribeParameters.Request(names=names)
    answer = node.peer.call(DescribeParameters, f"{node.node.name}/describe_parameters", request)
    count, tolerance, autostart, matcher = answer.descriptors
    assert (count.integer_range[0].from_value, count.integer_range[0].to_value) == (8, 5000)
    assert tolerance.floating_point_range[0].to_value == 1.0
    assert autostart.read_only
    assert not count.read_only
    assert "classic" in matcher.additional_constraints
    assert all(descriptor.description for descriptor in answer.descriptors)
