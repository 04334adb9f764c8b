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

"""A ZED X (or any ZED): the driver with what stereo odometry needs and nothing else, and the odometry node.

ros2 launch macvo_ros zedx.launch.py
ros2 launch macvo_ros zedx.launch.py start_camera:=false      # the driver runs already, or a bag plays
"""

from pathlib import Path

from ament_index_python.packages import get_package_share_directory
from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity
from launch.actions import GroupAction, OpaqueFunction

from macvo_ros.ros.launching import declared, fastdds_profile, include, values

SHARE = Path(get_package_share_directory("macvo_ros"))

# name, default, description
ARGUMENTS = [
    ("start_camera", "true", "false: only the odometry, the driver runs already"),
    ("camera_model", "zedx", "model of the camera, as the ZED driver calls it"),
    ("camera_name", "zed", "name of the camera: topics are /<name>/zed_node/..., frames <name>_..."),
    ("resolution", "HD1200", "what the camera grabs: HD1200, HD1080 or SVGA"),
    ("downscale", "2.0", "published images are this much smaller: HD1200 / 2 is 960x600"),
    ("frame_rate", "15", "stereo pairs a second"),
    ("driver_overrides", "", "more driver parameters, key:=value;key:=value"),
    ("publish_imu_tf", "false", "let the driver publish the frame of its IMU (for fusion)"),
    ("params_file", str(SHARE / "config" / "zedx.yaml"), "parameter file of the node"),
    ("base_frame", "", "robot frame; empty: <camera_name>_camera_link, the driver's own"),
    ("odom_frame", "odom", "frame the pose is published in"),
    ("publish_tf", "true", "broadcast odom -> base (off beside robot_localization)"),
    ("matcher", "", "who matches images"),
    ("bag", "", "play this ROS 2 bag instead of a camera"),
    ("use_sim_time", "", "true or false: follow /clock; empty: true with a bag"),
    ("rviz", "false", "true opens RViz"),
]

PASSED_ON = ("params_file", "odom_frame", "publish_tf", "matcher", "bag", "use_sim_time", "rviz")


def generate_launch_description() -> LaunchDescription:
    """Declare the arguments; the actions depend on their values."""
    return LaunchDescription([*declared(ARGUMENTS), OpaqueFunction(function=actions)])


def actions(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """The node on the driver's topics, and the driver."""
    value = values(context, ARGUMENTS)
    topics = f"/{value['camera_name']}/zed_node"
    arguments = {
        **{name: value[name] for name in PASSED_ON},
        **{f"{side}_image": f"{topics}/{side}/color/rect/image" for side in ("left", "right")},
        **{f"{side}_info": f"{topics}/{side}/color/rect/camera_info" for side in ("left", "right")},
        "base_frame": value["base_frame"] or f"{value['camera_name']}_camera_link",
    }
    started: list[LaunchDescriptionEntity] = [include(SHARE / "launch" / "macvo.launch.py", arguments)]
    if value["start_camera"].lower() == "true" and not value["bag"]:
        driver = Path(get_package_share_directory("zed_wrapper")) / "launch" / "zed_camera.launch.py"
        # In a scope of its own: arguments of ours that share a name with the driver's (use_sim_time) must not reach it.
        # The scope begins with a clean environment, and the driver, as the sender, needs the FastDDS profile most.
        inside = [*fastdds_profile(SHARE / "config" / "fastdds.xml"), include(driver, driver_arguments(value))]
        started.append(GroupAction(inside, scoped=True, forwarding=False))
    return started


def driver_arguments(value: dict[str, str]) -> dict[str, str]:
    """Left and right on, at a size and rate a network can carry; the driver's own depth, tracking and TF off."""
    overrides = {
        "video.publish_left_right": "true",  # off by default
        "video.enable_24bit_output": "true",  # bgr8: a quarter less than bgra8
        "general.grab_resolution": value["resolution"],
        "general.grab_frame_rate": value["frame_rate"],
        "general.pub_frame_rate": f"{float(value['frame_rate']):.1f}",
        "general.pub_resolution": "CUSTOM",
        "general.pub_downscale_factor": f"{float(value['downscale']):.2f}",
        "pos_tracking.pos_tracking_enabled": "false",
        "depth.depth_mode": "NONE",
    }
    listed = [f"{key}:={text}" for key, text in overrides.items()]
    return {
        "camera_model": value["camera_model"],
        "camera_name": value["camera_name"],
        "publish_tf": "false",
        "publish_map_tf": "false",
        "publish_imu_tf": value["publish_imu_tf"],
        "param_overrides": ";".join([*listed, *filter(None, [value["driver_overrides"]])]),
    }
