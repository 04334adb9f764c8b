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

"""What our launch files share: a table of arguments, its values, other launch files, fixed frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from launch import LaunchContext
from launch.actions import DeclareLaunchArgument, IncludeLaunchDescription, SetEnvironmentVariable
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import EnvironmentVariable, LaunchConfiguration
from launch_ros.actions import Node

Argument = tuple[str, str, str] | tuple[str, str, str, Sequence[str]]
"""Name, default, description and, where not anything goes, the choices."""


def declared(arguments: Sequence[Argument]) -> list[DeclareLaunchArgument]:
    """The arguments as `ros2 launch --show-args` lists them."""
    return [
        DeclareLaunchArgument(name, default_value=value, description=text, choices=choices[0] if choices else None)
        for name, value, text, *choices in arguments
    ]


def values(context: LaunchContext, arguments: Sequence[Argument]) -> dict[str, str]:
    """What was given for each argument, by name."""
    return {name: str(LaunchConfiguration(name).perform(context)) for name, *_ in arguments}


def truth(name: str, text: str) -> bool:
    """A launch argument as a truth value."""
    if text.lower() not in ("true", "false"):
        raise RuntimeError(f"{name}:={text}: expected true or false")
    return text.lower() == "true"


def include(path: Path, arguments: Mapping[str, Any]) -> IncludeLaunchDescription:
    """Another launch file with its arguments."""
    return IncludeLaunchDescription(PythonLaunchDescriptionSource(str(path)), launch_arguments=arguments.items())


def static_transform(child: str, pose: Sequence[float]) -> Node:
    """Publish the place of `child` on base_link; pose: x y z (metres) qx qy qz qw."""
    names = ("--x", "--y", "--z", "--qx", "--qy", "--qz", "--qw")
    numbers = [text for name, number in zip(names, pose, strict=True) for text in (name, str(number))]
    return Node(
        package="tf2_ros",
        executable="static_transform_publisher",
        name=f"base_link_to_{child}",
        arguments=[*numbers, "--frame-id", "base_link", "--child-frame-id", child],
    )


def fastdds_profile(file: Path) -> list[SetEnvironmentVariable]:
    """Room for large images, without which most are lost; a profile of the user's own is left alone.

    The names of the variable are those of Jazzy and of Kilted.
    """
    names = ("FASTRTPS_DEFAULT_PROFILES_FILE", "FASTDDS_DEFAULT_PROFILES_FILE")
    return [SetEnvironmentVariable(name, EnvironmentVariable(name, default_value=str(file))) for name in names]
