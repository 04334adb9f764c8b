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

"""A EuRoC bag: raw images without camera_info, so calibration and camera frames come from here.

rosbags-convert --src MH_01_easy.bag --dst MH_01_easy         # once: `ros2 bag play` wants a ROS 2 bag
ros2 launch macvo_ros euroc.launch.py bag:=MH_01_easy rviz:=true
"""

from pathlib import Path

from ament_index_python.packages import get_package_share_directory
from launch import LaunchDescription
from launch.substitutions import LaunchConfiguration

from macvo_ros.ros.launching import declared, include, static_transform

SHARE = Path(get_package_share_directory("macvo_ros"))

# name, default, description
ARGUMENTS = [
    ("bag", "", "ROS 2 bag to play; empty: somebody else plays it"),
    ("bag_rate", "1.0", "speed of the bag; below 1 for a matcher slower than 20 Hz"),
    ("params_file", str(SHARE / "config" / "euroc.yaml"), "parameter file of the node"),
    ("calibration_file", str(SHARE / "config" / "euroc_calibration.yaml"), "calibration of the raw pair"),
    ("publish_tf", "true", "broadcast odom -> base_link (off beside robot_localization)"),
    ("matcher", "", "who matches images"),
    ("use_sim_time", "true", "follow /clock"),
    ("rviz", "false", "true opens RViz"),
]

# T_BS of the dataset's sensor.yaml files: the body frame is that of the IMU (frame imu4 in the bags). x y z qx qy qz qw
FRAMES = {
    "cam0": (-0.0216401454975, -0.064676986768, 0.00981073058949, -0.00770718, 0.01049932, 0.70175280, 0.71230146),
    "cam1": (-0.0198435579556, 0.0453689425024, 0.00786212447038, -0.00255024, 0.01532393, 0.70248669, 0.71152732),
    "imu4": (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0),
}


def generate_launch_description() -> LaunchDescription:
    """Node, bag and the frames of the rig."""
    topics = {f"{side}_image": f"/cam{index}/image_raw" for index, side in enumerate(("left", "right"))}
    passed_on = {name: LaunchConfiguration(name) for name, _, _ in ARGUMENTS}
    node = include(SHARE / "launch" / "macvo.launch.py", {**passed_on, **topics})
    frames = [static_transform(child, pose) for child, pose in FRAMES.items()]
    return LaunchDescription([*declared(ARGUMENTS), *frames, node])
