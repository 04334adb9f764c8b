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

"""The same bag through the live node, in a process of its own, and offline through `macvo bag`: the same poses."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from rclpy.qos import DurabilityPolicy, QoSProfile, qos_profile_sensor_data

from macvo_ros.bags import convert
from macvo_ros.bags.bag import Bag
from macvo_ros.bags.convert import camera_info_message
from macvo_ros.cli import main
from macvo_ros.geometry.se3 import exp_so3
from macvo_ros.ros.pairing import SIDES

TYPES = {"image_rect": "Image", "camera_info": "CameraInfo"}


@dataclasses.dataclass
class Frames:
    """The frames of a list as a sequence without ground truth."""

    frames: list
    name = "frames"
    ground_truth = None

    def __post_init__(self) -> None:
        self.camera = self.frames[0].camera
        self.stamps = np.array([frame.stamp for frame in self.frames])

    def __len__(self) -> int:
        return len(self.frames)

    def __getitem__(self, index: int):
        return self.frames[index]


def offline(bag: Path, new: Path, *flags: str) -> tuple[dict[int, list[float]], dict[int, Any]]:
    """Stamp to every number of the odometry that `macvo bag --output` writes, and stamp to its keypoints."""
    words = ["--matcher", "classic", "--out", str(new.parent / "out"), "--output", str(new), *flags]
    assert main(["bag", str(bag), *words]) == 0
    with Bag(new) as stored:
        odometry = [stored.deserialize(m.raw, "nav_msgs/msg/Odometry") for m in stored.messages(["/macvo/odometry"])]
        clouds = [
            stored.deserialize(m.raw, "sensor_msgs/msg/PointCloud2") for m in stored.messages(["/macvo/keypoints"])
        ]
    return {stamp(m): numbers(m) for m in odometry}, {stamp(m): m for m in clouds}


def raw_frames(frames: list, monkeypatch: pytest.MonkeyPatch) -> list:
    """The frames as cameras that are turned against the rectified ones see them; camera_info will say so."""
    turn = exp_so3(np.array([0.03, -0.02, 0.04]))

    def turned_info(bag, camera, side, stamp, frame_id):
        return dataclasses.replace(camera_info_message(bag, camera, side, stamp, frame_id), r=turn.ravel())

    monkeypatch.setattr(convert, "camera_info_message", turned_info)
    K = frames[0].camera.K
    warp, how = K @ turn @ np.linalg.inv(K), cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    return [
        dataclasses.replace(
            frame, **{side: cv2.warpPerspective(getattr(frame, side), warp, (320, 240), flags=how) for side in SIDES}
        )
        for frame in frames
    ]


def stamp(message) -> int:
    return message.header.stamp.sec * 10**9 + message.header.stamp.nanosec


def numbers(message) -> list[float]:
    p, q, twist = message.pose.pose.position, message.pose.pose.orientation, message.twist.twist
    pose = [p.x, p.y, p.z, q.x, q.y, q.z, q.w, *message.pose.covariance]
    velocity = [axis for v in (twist.linear, twist.angular) for axis in (v.x, v.y, v.z)]
    return [*pose, *velocity, *message.twist.covariance]


@pytest.mark.parametrize("raw", [False, True], ids=["rectified", "raw"])
def test_live_and_offline_agree(frames, start_node, make_peer, tmp_path, monkeypatch, raw):
    import sensor_msgs.msg
    from nav_msgs.msg import Odometry
    from tf2_msgs.msg import TFMessage

    bag = tmp_path / "rec"
    convert.convert_sequence(Frames(raw_frames(frames[:6], monkeypatch) if raw else frames[:6]), bag, progress=False)
    expected, expected_clouds = offline(bag, tmp_path / "new", *(["--rectify"] if raw else []))
    name = "bag_raw" if raw else "bag_live"
    remap = {f"{side}/image_raw": f"/{name}/{side}/image_rect" for side in SIDES}
    node = start_node(name, {**remap, "/tf_static": f"/{name}/tf_static"}, matcher="classic", rectify=raw)
    peer = make_peer(name)
    inbox = peer.listen(Odometry, f"{node.name}/odometry")
    clouds = peer.listen(sensor_msgs.msg.PointCloud2, f"{node.name}/keypoints", qos_profile_sensor_data)
    latched = QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    publishers = {
        f"/stereo/{side}/{topic}": peer.publisher(getattr(sensor_msgs.msg, kind), f"/{name}/{side}/{topic}")
        for side in SIDES
        for topic, kind in TYPES.items()
    }
    transforms = peer.publisher(TFMessage, f"/{name}/tf_static", latched)
    peer.meet(node.name)
    with Bag(bag) as stored:
        for message in stored.messages(["/tf_static"]):
            transforms.publish(message.raw)
        for message in stored.messages(list(publishers)):
            publishers[message.topic].publish(message.raw)  # the bytes as recorded
            if message.topic == "/stereo/right/image_rect":  # the pair is complete: wait, so that no frame is dropped
                at = stored.stamp(message.raw)
                peer.until(
                    lambda at=at: all(any(stamp(m) == at for m in box) for box in (inbox, clouds)), f"odometry of {at}"
                )
    assert [stamp(message) for message in inbox] == list(expected)
    for message in inbox:
        np.testing.assert_allclose(numbers(message), expected[stamp(message)], rtol=1e-9, atol=1e-12)
    assert [stamp(message) for message in clouds] == list(expected_clouds)
    for message in clouds:
        stored_cloud = expected_clouds[stamp(message)]
        assert message.header.frame_id == stored_cloud.header.frame_id
        assert bytes(message.data) == bytes(stored_cloud.data)
    assert clouds[-1].width > 50
    assert node.stop() == 0
