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

"""A KITTI bag made by kitti2bag: rectified images with camera_info.

rosbags-convert --src kitti_2011_09_26_drive_0001_synced.bag --dst kitti_0001     # once
ros2 launch macvo_ros kitti.launch.py bag:=kitti_0001 rviz:=true
ros2 launch macvo_ros kitti.launch.py bag:=kitti_data_odometry_gray_sequence_00 kind:=odom
"""

from pathlib import Path

from ament_index_python.packages import get_package_share_directory
from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity
from launch.actions import DeclareLaunchArgument, IncludeLaunchDescription, OpaqueFunction
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

SHARE = Path(get_package_share_directory("macvo_ros"))

# name, default, description, choices
ARGUMENTS = [
    ("bag", "", "ROS 2 bag to play; empty: somebody else plays it", None),
    ("bag_rate", "1.0", "speed of the bag; below 1 for a matcher slower than 10 Hz", None),
    ("kind", "raw", "raw: made of raw_synced, with /tf_static; odom: of the odometry benchmark", ("raw", "odom")),
    ("camera", "gray", "which stereo pair: gray or color", ("gray", "color")),
    ("params_file", str(SHARE / "config" / "kitti.yaml"), "parameter file of the node", None),
    ("publish_tf", "true", "broadcast odom -> base_link (off beside robot_localization)", None),
    ("matcher", "", "who matches images", None),
    ("use_sim_time", "true", "follow /clock", None),
    ("rviz", "false", "true opens RViz", None),
]

PASSED_ON = ("bag", "bag_rate", "params_file", "publish_tf", "matcher", "use_sim_time", "rviz")


def generate_launch_description() -> LaunchDescription:
    """Declare the arguments; the topics depend on their values."""
    declared = [
        DeclareLaunchArgument(name, default_value=value, description=text, choices=choices)
        for name, value, text, choices in ARGUMENTS
    ]
    return LaunchDescription([*declared, OpaqueFunction(function=actions)])


def actions(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """The node on the chosen pair; odometry bags have no frames, so they get the camera's axes."""
    value = {name: LaunchConfiguration(name).perform(context) for name, *_ in ARGUMENTS}
    image = "image_raw" if value["kind"] == "raw" else "image_rect"  # both are rectified
    arguments = {name: value[name] for name in PASSED_ON}
    for side in ("left", "right"):
        topics = f"/kitti/camera_{value['camera']}_{side}"
        arguments[f"{side}_image"] = f"{topics}/{image}"
        arguments[f"{side}_info"] = f"{topics}/camera_info"
    started: list[LaunchDescriptionEntity] = [
        IncludeLaunchDescription(
            PythonLaunchDescriptionSource(str(SHARE / "launch" / "macvo.launch.py")),
            launch_arguments=arguments.items(),
        )
    ]
    if value["kind"] == "odom":
        child = f"camera_{value['camera']}_left"
        axes = ["--qx", "-0.5", "--qy", "0.5", "--qz", "-0.5", "--qw", "0.5"]  # x forward, z up to z forward, y down
        started.append(
            Node(
                package="tf2_ros",
                executable="static_transform_publisher",
                name=f"base_link_to_{child}",
                arguments=[*axes, "--frame-id", "base_link", "--child-frame-id", child],
            )
        )
    return started
