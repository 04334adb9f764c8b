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

import numpy as np
from rclpy.qos import DurabilityPolicy, QoSProfile

from macvo_ros.bags.bag import Bag
from macvo_ros.bags.convert import convert_sequence
from macvo_ros.cli import main

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


def offline(bag: Path, new: Path) -> dict[int, list[float]]:
    """Stamp to every number of the odometry that `macvo bag --output` writes."""
    assert main(["bag", str(bag), "--matcher", "classic", "--out", str(new.parent / "out"), "--output", str(new)]) == 0
    with Bag(new) as stored:
        messages = [stored.deserialize(m.raw, "nav_msgs/msg/Odometry") for m in stored.messages(["/macvo/odometry"])]
    return {stamp(message): numbers(message) for message in messages}


def stamp(message) -> int:
    return message.header.stamp.sec * 10**9 + message.header.stamp.nanosec


def numbers(message) -> list[float]:
    p, q, twist = message.pose.pose.position, message.pose.pose.orientation, message.twist.twist
    pose = [p.x, p.y, p.z, q.x, q.y, q.z, q.w, *message.pose.covariance]
    velocity = [axis for v in (twist.linear, twist.angular) for axis in (v.x, v.y, v.z)]
    return [*pose, *velocity, *message.twist.covariance]


def test_live_and_offline_agree(frames, start_node, make_peer, tmp_path):
    import sensor_msgs.msg
    from nav_msgs.msg import Odometry
    from tf2_msgs.msg import TFMessage

    bag = tmp_path / "rec"
    convert_sequence(Frames(frames[:6]), bag, progress=False)
    expected = offline(bag, tmp_path / "new")
    name = "bag_live"
    remap = {f"{side}/{topic}": f"/stereo/{side}/{topic}" for side in ("left", "right") for topic in TYPES}
    # Reliable: of best-effort messages the first are lost while the two processes still find each other.
    node = start_node(name, {**remap, "/tf_static": f"/{name}/tf_static"}, reliable=True, matcher="classic")
    peer = make_peer(name)
    inbox = peer.listen(Odometry, f"{node.name}/odometry")
    latched = QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    publishers = {
        f"/stereo/{side}/{topic}": peer.publisher(getattr(sensor_msgs.msg, kind), f"/stereo/{side}/{topic}")
        for side in ("left", "right")
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
                peer.until(lambda at=at: any(stamp(m) == at for m in inbox), f"odometry of {at}")
    assert [stamp(message) for message in inbox] == list(expected)
    for message in inbox:
        np.testing.assert_allclose(numbers(message), expected[stamp(message)], rtol=1e-9, atol=1e-12)
