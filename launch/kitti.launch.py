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
from launch.actions import OpaqueFunction

from macvo_ros.ros.launching import declared, include, static_transform, values

SHARE = Path(get_package_share_directory("macvo_ros"))

# name, default, description and, where not anything goes, the choices
ARGUMENTS = [
    ("bag", "", "ROS 2 bag to play; empty: somebody else plays it"),
    ("bag_rate", "1.0", "speed of the bag; below 1 for a matcher slower than 10 Hz"),
    ("kind", "raw", "raw: made of raw_synced, with /tf_static; odom: of the odometry benchmark", ("raw", "odom")),
    ("camera", "gray", "which stereo pair: gray or color", ("gray", "color")),
    ("params_file", str(SHARE / "config" / "kitti.yaml"), "parameter file of the node"),
    ("publish_tf", "true", "broadcast odom -> base_link (off beside robot_localization)"),
    ("matcher", "", "who matches images"),
    ("use_sim_time", "true", "follow /clock"),
    ("rviz", "false", "true opens RViz"),
]

PASSED_ON = ("bag", "bag_rate", "params_file", "publish_tf", "matcher", "use_sim_time", "rviz")


def generate_launch_description() -> LaunchDescription:
    """Declare the arguments; the topics depend on their values."""
    return LaunchDescription([*declared(ARGUMENTS), OpaqueFunction(function=actions)])


def actions(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """The node on the chosen pair; odometry bags have no frames, so they get the camera's axes."""
    value = values(context, ARGUMENTS)
    image = "image_raw" if value["kind"] == "raw" else "image_rect"  # both are rectified
    arguments = {name: value[name] for name in PASSED_ON}
    for side in ("left", "right"):
        topics = f"/kitti/camera_{value['camera']}_{side}"
        arguments[f"{side}_image"] = f"{topics}/{image}"
        arguments[f"{side}_info"] = f"{topics}/camera_info"
    started: list[LaunchDescriptionEntity] = [include(SHARE / "launch" / "macvo.launch.py", arguments)]
    if value["kind"] == "odom":
        axes = (-0.5, 0.5, -0.5, 0.5)  # x forward, z up to z forward, y down
        started.append(static_transform(f"camera_{value['camera']}_left", (0.0, 0.0, 0.0, *axes)))
    return started
