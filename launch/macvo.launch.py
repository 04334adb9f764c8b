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

"""The odometry node on any stereo topics, with the FastDDS profile, and on request a bag to play and RViz.

The launch files of cameras and datasets include this one:

    ros2 launch macvo_ros macvo.launch.py left_image:=/cam/left/image_rect right_image:=/cam/right/image_rect \
        left_info:=/cam/left/camera_info right_info:=/cam/right/camera_info base_frame:=base_link rviz:=true
    ros2 launch macvo_ros macvo.launch.py bag:=BAG_MADE_BY_MACVO_BAG_CONVERT
"""

from pathlib import Path

from ament_index_python.packages import get_package_share_directory
from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity
from launch.actions import ExecuteProcess, OpaqueFunction
from launch_ros.actions import Node

from macvo_ros.ros.launching import declared, fastdds_profile, truth, values

SHARE = Path(get_package_share_directory("macvo_ros"))

# name, default, description. An empty default leaves the choice to the parameter file and the node.
ARGUMENTS = [
    ("left_image", "/stereo/left/image_rect", "topic of the left images"),
    ("right_image", "/stereo/right/image_rect", "topic of the right images"),
    ("left_info", "/stereo/left/camera_info", "topic of the left camera_info"),
    ("right_info", "/stereo/right/camera_info", "topic of the right camera_info"),
    ("params_file", "", "parameter file of the node; empty: its defaults"),
    ("base_frame", "", "robot frame whose pose is published"),
    ("odom_frame", "", "frame the pose is published in"),
    ("publish_tf", "", "true or false: broadcast odom -> base (off beside robot_localization)"),
    ("matcher", "", "who matches images"),
    ("calibration_file", "", "calibration for streams without camera_info"),
    ("bag", "", "ROS 2 bag to play; empty: wait for live images"),
    ("bag_rate", "1.0", "speed of the bag; below 1 for a matcher slower than the camera"),
    ("bag_delay", "5.0", "seconds between start and playing, for the node to get ready"),
    ("use_sim_time", "", "true or false: follow /clock; empty: true with a bag"),
    ("rviz", "false", "true opens RViz with cloud, covariance ellipsoids and path"),
]

# Arguments that are parameters of the node, with their types.
PARAMETERS = {"base_frame": str, "odom_frame": str, "publish_tf": bool, "matcher": str, "calibration_file": str}


def generate_launch_description() -> LaunchDescription:
    """Declare the arguments; the actions depend on their values."""
    profile = fastdds_profile(SHARE / "config" / "fastdds.xml")
    return LaunchDescription([*declared(ARGUMENTS), *profile, OpaqueFunction(function=actions)])


def actions(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """The node and whatever was asked for beside it."""
    value = values(context, ARGUMENTS)
    sim_time = truth("use_sim_time", value["use_sim_time"] or str(bool(value["bag"])))
    overrides: dict[str, str | bool] = {"use_sim_time": sim_time}
    for name, kind in PARAMETERS.items():
        if value[name]:
            overrides[name] = truth(name, value[name]) if kind is bool else value[name]
    started = [
        Node(
            package="macvo_ros",
            executable="macvo_node",
            name="macvo",
            output="screen",
            parameters=[*filter(None, [value["params_file"]]), overrides],
            remappings=[
                (f"{side}/{topic}", value[f"{side}_{kind}"])
                for side in ("left", "right")
                for topic, kind in (("image_rect", "image"), ("image_raw", "image"), ("camera_info", "info"))
            ],
        )
    ]
    if value["bag"]:
        started.append(play(value["bag"], value["bag_rate"], value["bag_delay"]))
    if truth("rviz", value["rviz"]):
        view = str(SHARE / "config" / "macvo.rviz")
        fixed = ["-f", value["odom_frame"]] if value["odom_frame"] else []
        started.append(
            Node(
                package="rviz2",
                executable="rviz2",
                arguments=["-d", view, *fixed],
                parameters=[{"use_sim_time": sim_time}],
            )
        )
    return started


def play(bag: str, rate: str, delay: str) -> ExecuteProcess:
    """`ros2 bag play` with a clock; a bag it cannot play is refused here, with the way out."""
    path = Path(bag).expanduser()
    if not path.exists():
        raise RuntimeError(f"bag:={bag} does not exist")
    if path.suffix == ".bag":
        raise RuntimeError(
            f"{bag} is a ROS 1 bag, which `ros2 bag play` cannot play; convert it once: "
            f"rosbags-convert --src {bag} --dst {path.with_suffix('')} (pip install rosbags), or run `macvo bag {bag}`"
        )
    command = ["ros2", "bag", "play", str(path), "--clock", "--rate", rate, "--delay", delay]
    return ExecuteProcess(cmd=command, output="screen")
