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

"""robot_localization on our twist and an IMU, beside one of the other launch files.

ros2 launch macvo_ros fusion.launch.py                                  # a ZED X and its IMU
ros2 launch macvo_ros fusion.launch.py source:=euroc bag:=MH_01_easy
ros2 launch macvo_ros fusion.launch.py source:=none imu:=/imu/data base_frame:=base_link
"""

from pathlib import Path

from ament_index_python.packages import get_package_share_directory
from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity
from launch.actions import OpaqueFunction
from launch_ros.actions import Node

from macvo_ros.ros.launching import declared, include, truth, values

SHARE = Path(get_package_share_directory("macvo_ros"))

# What each source calls its IMU and its robot, and whether that IMU knows which way is up (roll and pitch).
SOURCES = {
    "zedx": ("/zed/zed_node/imu/data", "zed_camera_link", True),
    "euroc": ("/imu0", "base_link", False),
    "kitti": ("/kitti/oxts/imu", "base_link", True),
    "none": ("", "base_link", True),
}

# name, default, description and, where not anything goes, the choices
ARGUMENTS = [
    ("source", "zedx", "which launch file gives the images; none: the odometry runs already", tuple(SOURCES)),
    ("bag", "", "ROS 2 bag to play instead of a camera"),
    ("imu", "", "topic of the IMU; empty: the source's own"),
    ("base_frame", "", "robot frame; empty: the source's own"),
    (
        "use_sim_time",
        "",
        "true or false: follow /clock, odometry and filter alike; empty: true with a bag, EuRoC, KITTI",
    ),
    ("start_camera", "true", "source:=zedx: false when the driver runs already"),
    ("ekf_file", str(SHARE / "config" / "ekf.yaml"), "parameter file of robot_localization"),
    ("rviz", "false", "true opens RViz"),
]


def generate_launch_description() -> LaunchDescription:
    """Declare the arguments; the actions depend on their values."""
    return LaunchDescription([*declared(ARGUMENTS), OpaqueFunction(function=actions)])


def actions(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """The source with its TF off, since the filter broadcasts odom -> base, and the filter."""
    value = values(context, ARGUMENTS)
    source = value["source"]
    imu, base_frame, knows_up = SOURCES[source]
    imu, base_frame = value["imu"] or imu, value["base_frame"] or base_frame
    played = bool(value["bag"]) or source in ("euroc", "kitti")
    sim_time = truth("use_sim_time", value["use_sim_time"] or str(played))  # one clock for both, or the filter is mute
    started: list[LaunchDescriptionEntity] = []
    if source != "none":
        arguments = {name: value[name] for name in ("bag", "rviz")}
        arguments.update(publish_tf="false", use_sim_time=str(sim_time).lower())
        if source == "zedx":
            arguments.update(base_frame=base_frame, publish_imu_tf="true", start_camera=value["start_camera"])
        started.append(include(SHARE / "launch" / f"{source}.launch.py", arguments))
    overrides: dict[str, object] = {"base_link_frame": base_frame, "use_sim_time": sim_time}
    if imu:
        overrides["imu0"] = imu
    if not knows_up:  # an IMU without orientation: angular velocity only
        overrides["imu0_config"] = [False] * 9 + [True] * 3 + [False] * 3
    started.append(
        Node(
            package="robot_localization",
            executable="ekf_node",
            name="ekf_filter_node",
            output="screen",
            parameters=[value["ekf_file"], overrides],
        )
    )
    return started
