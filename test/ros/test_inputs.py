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

"""Raw and approximate input, and what the node says when nothing usable comes."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from camera_messages import OPTICAL_FRAME, image_message, info_messages, set_stamp, stamp_of
from harness import Peer, matrix
from rclpy.qos import qos_profile_sensor_data
from supervised_node import SupervisedNode

from macvo_ros.geometry.calibration import load_calibration
from macvo_ros.geometry.se3 import exp_so3
from macvo_ros.images.camera_info import CameraInfo, StereoInput
from macvo_ros.odometry.message_fields import CLOUD_DTYPE, cloud_covariance, cloud_points, keypoint_cloud
from macvo_ros.odometry.stereo_odometry import StereoOdometry
from macvo_ros.settings.config import ClassicConfig, Config

TURN = exp_so3(np.array([0.03, -0.02, 0.04]))
"""Rectifying rotation of both cameras: what the raw pair is turned by."""

CALIBRATION = """width: 320
height: 240
left: {model: plumb_bob, K: [220, 220, 159.5, 119.5], D: [-0.05, 0.01, 0, 0]}
right: {model: plumb_bob, K: [220, 220, 159.5, 119.5], D: [-0.05, 0.01, 0, 0]}
R: [1, 0, 0, 0, 1, 0, 0, 0, 1]
T: [-0.12, 0, 0]
"""


@pytest.fixture(scope="module")
def nodes(start_node, tmp_path_factory):
    """Started together, since most of their start is waiting."""
    calibration = tmp_path_factory.mktemp("calibration") / "raw.yaml"
    calibration.write_text(CALIBRATION)
    common = {"camera_at_base": True, "watchdog": 0.3}
    started = {
        "raw": start_node("raw", rectify=True, map_period=0.0, **common),
        "file": start_node(
            "file",
            rectify=True,
            calibration_file=calibration,
            approximate_sync=True,
            sync_tolerance=0.02,
            pipelined=True,
            classic__seeded=False,
            **common,
        ),
        "explain": start_node("explain", reliability="reliable", **common),
    }
    yield {**started, "calibration": calibration}
    for node in started.values():
        assert node.stop() == 0


def test_raw_pair_is_rectified_by_camera_info(nodes, make_peer, frames):
    from sensor_msgs.msg import PointCloud2

    peer, camera = make_peer("raw"), frames[0].camera
    clouds = peer.listen(PointCloud2, f"{nodes['raw'].name}/keypoints", qos_profile_sensor_data)
    maps = peer.listen(PointCloud2, f"{nodes['raw'].name}/map")
    node = SupervisedNode(nodes["raw"], peer, camera, topic="image_raw")
    infos = info_messages(camera, 0)
    for info in infos:
        info.d, info.r = [], TURN.ravel()
    node.calibrate(*infos)
    stereo = StereoInput.from_camera_info(*(CameraInfo.from_message(info) for info in infos), rectify=True)
    core = StereoOdometry(Config(matcher="classic"), base_from_camera=stereo.raw_from_rectified)
    turned = camera.K @ TURN @ np.linalg.inv(camera.K)  # where a raw pixel is in the rectified image
    for i, frame in enumerate(frames[:4]):
        left, right = (
            cv2.warpPerspective(image, turned, (320, 240), flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP)
            for image in (frame.left, frame.right)
        )
        node.driver.left.publish(image_message(left, frame.stamp, "rgb8"))
        node.driver.right.publish(image_message(right, frame.stamp, "rgb8"))
        peer.until(lambda i=i: len(node.odometry) > i, f"odometry of raw pair {i}")
        estimate = core.track(stereo.frame(left, right, frame.stamp))
        np.testing.assert_allclose(matrix(node.odometry[i].pose.pose), estimate.pose, atol=1e-12)
    assert np.linalg.norm(estimate.pose[:3, 3]) > 1e-3

    # The cloud is in the frame that its header names, that of the raw image, and so are its covariances.
    assert {cloud.header.frame_id for cloud in clouds} == {OPTICAL_FRAME}
    last = peer.until(lambda: next((c for c in clouds if stamp_of(c) == frames[3].stamp), None), "the last keypoints")
    rectified = keypoint_cloud(estimate.landmarks, estimate.frame.left)
    published = np.frombuffer(last.data, CLOUD_DTYPE)
    expected = cloud_points(rectified) @ TURN
    np.testing.assert_allclose(cloud_points(published), expected, rtol=1e-5, atol=1e-5)
    covariance = TURN.T @ cloud_covariance(rectified) @ TURN
    np.testing.assert_allclose(cloud_covariance(published), covariance, rtol=1e-3, atol=1e-6)
    assert np.abs(expected - cloud_points(rectified)).max() > 0.01  # the turn is one that shows
    # In odom, keypoints and map are the same points: header frame, TF (camera at base: none) and pose agree.
    in_odom = expected @ estimate.pose[:3, :3].T + estimate.pose[:3, 3]
    peer.until(lambda: stamp_of(maps[-1]) == frames[3].stamp, "the last map")
    mapped = cloud_points(np.frombuffer(maps[-1].data, CLOUD_DTYPE))[-len(in_odom) :]
    np.testing.assert_allclose(mapped, in_odom, rtol=1e-5, atol=1e-5)


def test_raw_pair_from_a_calibration_file_with_stamps_apart_pipelined(nodes, make_peer, frames):
    peer = make_peer("file")
    node = SupervisedNode(nodes["file"], peer, frames[0].camera, topic="image_raw", infos=False)
    stereo = StereoInput.from_calibration(load_calibration(nodes["calibration"]))
    unseeded = Config(matcher="classic", classic=ClassicConfig(seeded=False))
    core = StereoOdometry(unseeded, base_from_camera=stereo.raw_from_rectified)
    for i, frame in enumerate(frames[:3]):
        node.driver.left.publish(image_message(frame.left, frame.stamp, "mono8"))
        right = set_stamp(image_message(frame.right, frame.stamp, "mono8"), frame.stamp + 5_000_000)
        node.driver.right.publish(right)
        peer.until(lambda i=i: len(node.odometry) > i, f"odometry of pair {i}")
        grey = [cv2.cvtColor(image, cv2.COLOR_RGB2GRAY) for image in (frame.left, frame.right)]
        estimate = core.track(stereo.frame(grey[0], grey[1], frame.stamp))
        np.testing.assert_allclose(matrix(node.odometry[i].pose.pose), estimate.pose, atol=1e-12)
        assert node.odometry[i].header.stamp.nanosec == frame.stamp % 10**9  # the left image's
    assert not peer.node.count_subscribers("left/camera_info")


def test_silence_is_explained_cause_by_cause(nodes, ros, frames):
    from diagnostic_msgs.msg import DiagnosticArray
    from rclpy.qos import QoSProfile, ReliabilityPolicy
    from sensor_msgs.msg import CompressedImage, Image

    process, peer = nodes["explain"], Peer("explain")
    diagnostics = peer.listen(DiagnosticArray, "/diagnostics")

    def told(words):
        return any(
            status.name == "explain/macvo: input" and words in status.message
            for message in diagnostics[-8:]
            for status in message.status
        )

    peer.until(lambda: told("/explain/left/image_rect: no publisher"), "an explanation of the absence")
    peer.until(lambda: told("nobody publishes"), "its cause")

    wrong = peer.publisher(CompressedImage, "left/image_rect", wait=False)
    peer.until(lambda: told("set the parameter compressed"), "an explanation of the wrong type")
    peer.node.destroy_publisher(wrong)

    hasty = QoSProfile(depth=5, reliability=ReliabilityPolicy.BEST_EFFORT)
    publishers = [peer.publisher(Image, f"{side}/image_rect", hasty, wait=False) for side in ("left", "right")]
    peer.until(lambda: told("incompatible QoS (RELIABILITY"), "an explanation of the QoS")
    peer.until(lambda: told("set the parameter reliability to auto"), "its remedy")
    for publisher in publishers:
        peer.node.destroy_publisher(publisher)

    left, right = (peer.publisher(Image, f"{side}/image_rect") for side in ("left", "right"))
    for frame in frames[:4]:
        left.publish(image_message(frame.left, frame.stamp))
        right.publish(image_message(frame.right, frame.stamp))
    peer.until(
        lambda: told("no camera_info on") or told("nobody publishes /explain/left/camera_info"), "the missing info"
    )
    peer.until(lambda: told("refused (camera_info)") or "camera_info: images arrive" in process.output(), "refusals")
    assert process.alive()
    peer.close()
