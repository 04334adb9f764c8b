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

"""Everything the node publishes for people to look at, subscribed to by default QoS: `viewer.py NODE`."""

import sys
import time

import rclpy
from nav_msgs.msg import Path
from sensor_msgs.msg import Image, PointCloud2

TOPICS = {"keypoints": PointCloud2, "map": PointCloud2, "path": Path}
TOPICS |= dict.fromkeys(("depth", "depth_sigma", "flow_sigma", "debug/keypoints"), Image)

if __name__ == "__main__":
    rclpy.init()
    node = rclpy.create_node("viewer")
    for name, kind in TOPICS.items():
        node.create_subscription(kind, f"{sys.argv[1]}/{name}", lambda message: None, 10)
    while not all(node.count_publishers(f"{sys.argv[1]}/{name}") for name in TOPICS):
        time.sleep(0.02)
    print("ready", flush=True)
    rclpy.spin(node)
