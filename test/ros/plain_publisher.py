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

"""A camera driver, bgra8 at 30 Hz, 1280x720 by default: `plain_publisher.py NAMESPACE PAIRS [reliable] [any] [WxH]`.

Its DDS profile is that of its environment.
"""

import sys
import time

import numpy as np
import rclpy
from camera_messages import image_message
from rclpy.qos import ReliabilityPolicy, qos_profile_sensor_data
from sensor_msgs.msg import Image

rclpy.init()
node = rclpy.create_node("plain_camera", namespace=f"/{sys.argv[1]}")
reliable = "reliable" in sys.argv
qos = 10 if reliable else qos_profile_sensor_data
publishers = [node.create_publisher(Image, f"{side}/image_rect", qos) for side in ("left", "right")]


def asked(publisher):
    """What the subscribers of a topic ask for."""
    return {info.qos_profile.reliability for info in node.get_subscriptions_info_by_topic(publisher.topic_name)}


def connected():
    """Somebody listens, and asks for what we offer (`any`: for best effort, though we offer more)."""
    wanted = ReliabilityPolicy.RELIABLE if reliable and "any" not in sys.argv else ReliabilityPolicy.BEST_EFFORT
    return all(publisher.get_subscription_count() and asked(publisher) == {wanted} for publisher in publishers)


while not connected():
    time.sleep(0.02)
width, height = next((map(int, word.split("x")) for word in sys.argv[3:] if word[0].isdigit()), (1280, 720))
message = image_message(np.zeros((height, width, 3), np.uint8), 0)
for i in range(int(sys.argv[2])):
    message.header.stamp.sec = i + 1
    for publisher in publishers:
        publisher.publish(message)
    time.sleep(1 / 30)
print("sent", flush=True)
sys.stdin.read()  # what was sent must arrive before the sender goes
