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

"""What a subscriber receives is what the core computed, to the last bit the message can carry."""

from __future__ import annotations

import numpy as np
import pytest
from camera_messages import OPTICAL_FRAME, CameraDriver, stamp_of
from harness import matrix

from macvo_ros.geometry.se3 import exp_so3, inverse, transform
from macvo_ros.odometry.message_fields import CLOUD_DTYPE, CLOUD_FIELDS, keypoint_cloud, transform_cloud
from macvo_ros.odometry.stereo_odometry import StereoOdometry
from macvo_ros.settings.config import Config
from macvo_ros.uncertainty.trajectory import to_base

TILT = transform(exp_so3(np.array([0.0, np.deg2rad(20.0), 0.1])), np.array([0.1, -0.06, 0.05]))
"""The camera's housing on the base: a lever arm, looking 20 degrees down."""
OPTICAL = transform(np.array([[0.0, 0, 1], [-1, 0, 0], [0, -1, 0]]), np.array([0.4, 0.0, 0.9]))
"""The optical frame in its housing: z forward (REP-103)."""
BASE_FROM_CAMERA = TILT @ OPTICAL
COUNT = 6


@pytest.fixture(scope="module")
def run(frames, start_node, ros):
    """Six frames through the node, and through the core beside it."""
    from harness import Peer

    peer = Peer("scene")
    yield from _run(frames, start_node, peer)
    peer.close()


def _run(frames, start_node, peer):
    from geometry_msgs.msg import PoseWithCovarianceStamped
    from nav_msgs.msg import Odometry, Path
    from rclpy.qos import DurabilityPolicy, QoSProfile, qos_profile_sensor_data
    from sensor_msgs.msg import Image, PointCloud2
    from tf2_msgs.msg import TFMessage

    from macvo_ros.msg import Status

    node = start_node("scene", watchdog=0.5, map_period=0.0, reliability="best_effort")
    latched = QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    static = peer.publisher(TFMessage, "/tf_static", latched)
    static.publish(TFMessage(transforms=[static_transform("base_link", "camera_link", TILT)]))
    static.publish(TFMessage(transforms=[static_transform("camera_link", OPTICAL_FRAME, OPTICAL)]))
    sensor = qos_profile_sensor_data
    topics = {
        "odometry": (Odometry, 10),
        "pose": (PoseWithCovarianceStamped, 10),
        "status": (Status, 10),
        "path": (Path, 10),
        "keypoints": (PointCloud2, sensor),
        "map": (PointCloud2, 10),
        "depth": (Image, sensor),
        "depth_sigma": (Image, sensor),
        "flow_sigma": (Image, sensor),
        "debug/keypoints": (Image, sensor),
    }
    received = {name: peer.listen(kind, f"{node.name}/{name}", qos) for name, (kind, qos) in topics.items()}
    received["tf"] = peer.listen(TFMessage, "/tf")
    driver = CameraDriver(peer, frames[0].camera)
    core = StereoOdometry(Config(matcher="classic"), base_from_camera=BASE_FROM_CAMERA)
    estimates = []
    late = {"flow_sigma": 1}  # the first frame has no flow
    for i, frame in enumerate(frames[:COUNT]):
        driver.send(frame)
        peer.until(
            lambda i=i: all(len(r) > i - late.get(n, 0) for n, r in received.items()),
            f"the topics of frame {i}",
            again=lambda i=i, frame=frame: len(received["status"]) > i or driver.send(frame),  # by best effort
        )
        estimates.append(core.track(frame))
    yield {"received": received, "estimates": estimates, "node": node}
    assert node.stop() == 0


def static_transform(parent, child, pose):
    from geometry_msgs.msg import TransformStamped

    from macvo_ros.ros.transforms import write_transform

    message = TransformStamped(child_frame_id=child)
    message.header.frame_id = parent
    write_transform(message.transform, pose)
    return message


def cloud_of(message):
    """The bytes of a PointCloud2 read by its own field descriptions."""
    assert [field.name for field in message.fields] == list(CLOUD_FIELDS)
    assert [field.offset for field in message.fields] == [4 * i for i in range(len(CLOUD_FIELDS))]
    assert all(field.datatype == field.FLOAT32 and field.count == 1 for field in message.fields)
    assert (message.point_step, message.row_step) == (CLOUD_DTYPE.itemsize, CLOUD_DTYPE.itemsize * message.width)
    return np.frombuffer(message.data, CLOUD_DTYPE)


def floats(message):
    assert message.encoding == "32FC1"
    assert message.step == 4 * message.width
    return np.frombuffer(message.data, "<f4").reshape(message.height, message.width)


def test_stamps_and_frames(run):
    for name, messages in run["received"].items():
        if name in ("tf", "flow_sigma"):
            continue
        stamps = [stamp_of(message) for message in messages[:COUNT]]
        assert stamps == [estimate.frame.stamp for estimate in run["estimates"]], name
        in_camera = name in ("keypoints", "depth", "depth_sigma", "debug/keypoints")
        assert {message.header.frame_id for message in messages} == {OPTICAL_FRAME if in_camera else "odom"}, name
    assert {message.child_frame_id for message in run["received"]["odometry"]} == {"base_link"}


def test_pose_and_covariance_equal_the_core(run):
    for message, pose, estimate in zip(
        run["received"]["odometry"], run["received"]["pose"], run["estimates"], strict=True
    ):
        np.testing.assert_allclose(matrix(message.pose.pose), estimate.pose, atol=1e-12)
        covariance = np.array(message.pose.covariance).reshape(6, 6)
        np.testing.assert_array_equal(covariance, covariance.T)
        assert np.linalg.eigvalsh(covariance)[0] > 0
        np.testing.assert_allclose(covariance, estimate.covariance, rtol=1e-9, atol=2e-12)
        assert pose.pose == message.pose
    first, last = (np.array(run["received"]["odometry"][i].pose.covariance)[[0, 7, 14]] for i in (1, -1))
    assert (last > first).all()  # it grows along the path


def test_twist_and_pose_agree(run):
    odometry = run["received"]["odometry"]
    for before, message, estimate in zip(odometry, odometry[1:], run["estimates"][1:], strict=False):
        seconds = (stamp_of(message) - stamp_of(before)) * 1e-9
        v, w = message.twist.twist.linear, message.twist.twist.angular
        motion = inverse(matrix(before.pose.pose)) @ matrix(message.pose.pose)
        # The exponential of the twist, integrated in small steps, is the motion between the two poses.
        steps = 2000
        step = transform(
            exp_so3(np.array([w.x, w.y, w.z]) * seconds / steps), np.array([v.x, v.y, v.z]) * seconds / steps
        )
        np.testing.assert_allclose(np.linalg.matrix_power(step, steps), motion, atol=2e-6)
        covariance = np.array(message.twist.covariance).reshape(6, 6)
        assert np.linalg.eigvalsh(covariance)[0] > 0
        rotate = np.kron(np.eye(2), estimate.relative_base.motion[:3, :3].T)
        expected = rotate @ estimate.relative_base.covariance @ rotate.T / seconds**2
        scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
        np.testing.assert_allclose(covariance / scale, expected / scale, atol=0.1)


def test_lever_arm_is_applied(run):
    """The published twist covariance is the base's: that of the camera moved through the lever arm."""
    estimate = run["estimates"][-1]
    expected = to_base(estimate.relative, BASE_FROM_CAMERA)
    np.testing.assert_allclose(expected.covariance, estimate.relative_base.covariance, rtol=1e-9)
    assert not np.allclose(np.diag(estimate.relative.covariance), np.diag(expected.covariance), rtol=0.05)


def test_transform_chain(run):
    """odom -> base -> housing -> optical frame, all from TF, puts the camera where the core has it."""
    transforms = [item for message in run["received"]["tf"] for item in message.transforms]
    assert len(transforms) == COUNT
    for item, message, estimate in zip(transforms, run["received"]["odometry"], run["estimates"], strict=True):
        assert (item.header.frame_id, item.child_frame_id) == ("odom", "base_link")
        assert item.header.stamp == message.header.stamp
        camera = matrix(item.transform) @ TILT @ OPTICAL
        np.testing.assert_allclose(camera, estimate.pose @ BASE_FROM_CAMERA, atol=1e-9)
    moved = inverse(run["estimates"][0].pose @ BASE_FROM_CAMERA) @ run["estimates"][-1].pose @ BASE_FROM_CAMERA
    assert np.linalg.norm(moved[:3, 3]) > 0.01  # there is a motion to check


def test_keypoints_equal_the_core_to_float32(run):
    for message, estimate in zip(run["received"]["keypoints"], run["estimates"], strict=True):
        cloud = cloud_of(message)
        landmarks = estimate.landmarks
        if landmarks is None:
            assert len(cloud) == 0
            continue
        keep = landmarks.inlier
        assert len(cloud) == keep.sum() > 50
        for axis, name in enumerate("xyz"):
            np.testing.assert_array_equal(cloud[name], landmarks.point[keep, axis].astype(np.float32))
        for name, (i, j) in {
            "cxx": (0, 0),
            "cxy": (0, 1),
            "cxz": (0, 2),
            "cyy": (1, 1),
            "cyz": (1, 2),
            "czz": (2, 2),
        }.items():
            np.testing.assert_array_equal(cloud[name], landmarks.covariance[keep, i, j].astype(np.float32))
        np.testing.assert_array_equal(cloud["match_sigma"], landmarks.match_sigma[keep].astype(np.float32))


def test_map_is_the_recent_clouds_in_odom(run):
    clouds = [
        transform_cloud(keypoint_cloud(e.landmarks, e.frame.left), e.pose @ BASE_FROM_CAMERA) for e in run["estimates"]
    ]
    received, expected = cloud_of(run["received"]["map"][-1]), np.concatenate(clouds)
    np.testing.assert_array_equal(received["rgb"], expected["rgb"])
    for name in expected.dtype.names:  # two processes may add the same numbers in another order
        np.testing.assert_allclose(received[name], expected[name], rtol=1e-5, atol=1e-9)


def test_dense_images_equal_the_core(run):
    for i, estimate in enumerate(run["estimates"]):
        camera = estimate.frame.camera
        disparity = estimate.match.disparity.numpy()
        sigma = np.sqrt(estimate.match.disparity_var.numpy())
        depth = camera.depth(disparity)
        near = disparity > 1.0
        np.testing.assert_allclose(floats(run["received"]["depth"][i])[near], depth[near], rtol=1e-5)
        expected = (depth**2 / (camera.fx * camera.baseline) * sigma)[near]
        np.testing.assert_allclose(floats(run["received"]["depth_sigma"][i])[near], expected, rtol=1e-5)
    flow_var = run["estimates"][1].match.flow_var.numpy()
    np.testing.assert_allclose(floats(run["received"]["flow_sigma"][0]), np.sqrt(flow_var.mean(axis=0)), rtol=1e-5)
    debug = run["received"]["debug/keypoints"][-1]
    pixels = np.frombuffer(debug.data, np.uint8).reshape(debug.height, debug.width, 3)
    assert debug.encoding == "rgb8"
    assert 0 < (pixels != run["estimates"][-1].frame.left).any(axis=2).mean() < 0.3  # the image, drawn upon


def test_status_tells_the_truth(run):
    for message, estimate in zip(run["received"]["status"], run["estimates"], strict=True):
        assert message.state == estimate.status
        if estimate.landmarks is not None:
            assert message.inliers == estimate.landmarks.inlier.sum()
            assert message.chi2 == pytest.approx(estimate.chi2, rel=1e-9)
        assert 0 < message.core_time <= message.latency
        assert message.received == message.processed + message.refused + message.dropped + message.waiting
    assert run["received"]["status"][-1].processed == COUNT
    assert [pose.header.stamp for pose in run["received"]["path"][-1].poses] == [
        message.header.stamp for message in run["received"]["odometry"]
    ]
