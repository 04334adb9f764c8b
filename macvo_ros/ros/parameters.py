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

"""The parameters of the node: the core's settings and its own in one tree, declared, described and checked from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from macvo_ros.errors import ConfigError
from macvo_ros.settings.config import Config
from macvo_ros.settings.declaration import Setting, build, section, setting, settings, similar, to_flat


@dataclass(frozen=True)
class PublishConfig:
    """Switches of the topics; images are also computed only while somebody subscribes."""

    odometry: bool = setting(True, "Publish ~/odometry.", live=True)
    pose: bool = setting(True, "Publish ~/pose.", live=True)
    path: bool = setting(True, "Publish ~/path.", live=True)
    keypoints: bool = setting(True, "Publish ~/keypoints.", live=True)
    map: bool = setting(True, "Publish ~/map.", live=True)
    depth: bool = setting(True, "Publish ~/depth and ~/depth_sigma.", live=True)
    flow_sigma: bool = setting(True, "Publish ~/flow_sigma.", live=True)
    debug: bool = setting(True, "Publish ~/debug/keypoints.", live=True)


@dataclass(frozen=True)
class NodeConfig(Config):
    """Everything the node can be told, the core's settings included."""

    odom_frame: str = setting("odom", "Frame the pose is given in.")
    base_frame: str = setting("base_link", "Frame of the robot whose pose is given.")
    camera_at_base: bool = setting(
        False, "Take the base frame for the left optical frame (z forward) instead of asking TF where the camera is."
    )
    approximate_sync: bool = setting(False, "Pair images whose stamps differ; false: stamps must be equal.")
    sync_tolerance: float = setting(
        0.01, "Largest difference of the stamps of a pair under approximate_sync, seconds.", low=1e-6, high=1.0
    )
    compressed: bool = setting(False, "Take sensor_msgs/CompressedImage from left and right image topic/compressed.")
    rectify: bool = setting(False, "Images are raw: rectify them by camera_info (K, D, R, P) or calibration_file.")
    calibration_file: str = setting(
        "", "Calibration of the cameras for streams without camera_info, a YAML file; empty: use camera_info."
    )
    reliability: str = setting(
        "auto",
        "Delivery of the images. auto: reliable where all publishers of a topic offer it, best effort otherwise; "
        "reliable: nothing comes from publishers that do not offer it; best_effort: fits all, loses large images.",
        choices=("auto", "reliable", "best_effort"),
    )
    on_time_jump: str = setting(
        "continue",
        "When stamps go back (bag loop, clock reset). continue: from the last pose, with a covariance that covers the "
        "gap; reset: from the origin.",
        choices=("continue", "reset"),
    )
    niceness: int = setting(
        0,
        "Niceness of the tracking thread: above 0, receiving goes first, and so does every other program.",
        low=0,
        high=19,
    )
    watchdog: float = setting(5.0, "Explain a silence after this long, seconds.", low=0.2, high=3600.0)
    path_poses: int = setting(1000, "Poses in ~/path at most.", low=1, high=100000)
    map_frames: int = setting(30, "Frames whose points are in ~/map.", low=1, high=1000)
    map_period: float = setting(0.5, "Publish ~/path and ~/map at most this often, seconds.", low=0.0, high=60.0)
    trajectory_poses: int = setting(
        100000, "Poses kept for ~/save_trajectory; the oldest leave first.", low=1, high=10000000
    )
    publish_tf: bool = setting(
        True, "Broadcast odom -> base; switch it off beside robot_localization, which does that.", live=True
    )
    publish: PublishConfig = section(PublishConfig)
    autostart: bool = setting(True, "Configure and activate at start; false: wait for lifecycle transitions.")

    def __post_init__(self) -> None:
        for name in ("odom_frame", "base_frame"):
            if not getattr(self, name).strip("/"):
                raise ConfigError(f"{name}: expected the name of a frame, got {getattr(self, name)!r}")
        if self.odom_frame == self.base_frame:
            raise ConfigError(f"odom_frame and base_frame must differ, both are {self.odom_frame!r}")


LEAVES: dict[str, Setting] = {leaf.key: leaf for leaf in settings(NodeConfig)}
"""Every parameter by its dotted name."""

READ_ONLY = frozenset({"autostart"})
"""Read once, when the process starts."""

_OF_RCLPY = ("use_sim_time", "start_type_description_service")
_OF_RCLPY_PREFIX = "qos_overrides."


def is_ours(name: str) -> bool:
    """Whether a parameter belongs to the tree (and not to rclpy itself)."""
    return name not in _OF_RCLPY and not name.startswith(_OF_RCLPY_PREFIX)


def declare(node: Any, shared: Mapping[str, str]) -> NodeConfig:
    """Declare every parameter on a node that was created with `automatically_declare_parameters_from_overrides`.

    shared: the files of parameters that are addressed to many nodes, by name; of these a foreign one is ignored with a
    warning. Raises ConfigError for any other that does not exist and for a value that is not allowed.
    """
    found = {name: parameter.value for name, parameter in node.get_parameters_by_prefix("").items() if is_ours(name)}
    foreign = [name for name in found if name not in LEAVES and name in shared]
    given = {name: value for name, value in found.items() if name not in foreign}
    config = build(NodeConfig, given)
    for name in found:
        node.undeclare_parameter(name)
    for file in dict.fromkeys(shared[name] for name in foreign):
        names = ", ".join(_with_hint(name) for name in foreign if shared[name] == file)
        node.get_logger().warning(
            f"ignored, since this node has no such parameters: {names} (under a wildcard in {file})"
        )
    for name, leaf in LEAVES.items():
        value = leaf.check(given[name]) if name in given else leaf.default
        node.declare_parameter(name, value, descriptor(leaf), ignore_override=True)
    return config


def _with_hint(name: str) -> str:
    near = similar(name, LEAVES)
    return f"{name} (did you mean {near}?)" if near else name


def read(node: Any) -> NodeConfig:
    """The configuration as the node's parameters stand now."""
    return build(NodeConfig, {name: node.get_parameter(name).value for name in LEAVES})


def changed(config: NodeConfig, changes: dict[str, Any]) -> NodeConfig:
    """A copy of `config` with some parameters changed."""
    return build(NodeConfig, {**to_flat(config), **changes})


def descriptor(leaf: Setting) -> Any:
    """rcl_interfaces/ParameterDescriptor of a setting."""
    from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor, ParameterType

    types = {
        bool: ParameterType.PARAMETER_BOOL,
        int: ParameterType.PARAMETER_INTEGER,
        float: ParameterType.PARAMETER_DOUBLE,
        str: ParameterType.PARAMETER_STRING,
    }
    when = "changes at run time" if leaf.live else "read at start" if leaf.key in READ_ONLY else "read by configure"
    message = ParameterDescriptor(
        name=leaf.key,
        type=types[leaf.type],
        description=leaf.doc,
        additional_constraints=f"{leaf.allowed()}; {when}",
        read_only=leaf.key in READ_ONLY,
    )
    if leaf.type is float and (leaf.low is not None or leaf.high is not None):
        low, high = (-1e300 if leaf.low is None else leaf.low), (1e300 if leaf.high is None else leaf.high)
        message.floating_point_range = [FloatingPointRange(from_value=float(low), to_value=float(high), step=0.0)]
    if leaf.type is int and (leaf.low is not None or leaf.high is not None):
        lowest, highest = (-(2**63) if leaf.low is None else leaf.low), (2**63 - 1 if leaf.high is None else leaf.high)
        message.integer_range = [IntegerRange(from_value=int(lowest), to_value=int(highest), step=0)]
    return message


def why_not(name: str, value: Any, *, configured: bool) -> str:
    """Why a parameter cannot be set to `value` now; empty when it can."""
    leaf = LEAVES[name]
    try:
        leaf.check(value)
    except ConfigError as error:
        return str(error)
    if leaf.live or not configured:
        return ""
    live = ", ".join(key for key, other in LEAVES.items() if other.live and not key.startswith("publish"))
    return (
        f"{name} is read when the node is configured and cannot change while it runs; clean up the node, set it, "
        f"and configure again. At run time these change: {live} and the publish switches"
    )
