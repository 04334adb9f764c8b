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

"""Launch files: what they declare, start, remap and pass on. Needs the `launch` and `launch_ros` packages of ROS 2."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
if importlib.util.find_spec("launch_ros") is None:
    pytest.skip("source ROS 2 from apt to run this: launch_ros is not on PyPI", allow_module_level=True)

from launch import LaunchContext  # noqa: E402
from launch.actions.execute_local import ExecuteLocal  # noqa: E402
from launch.launch_description_sources import get_launch_description_from_python_launch_file  # noqa: E402

EXECUTABLES = {
    "macvo_ros": "macvo_node",
    "rviz2": "rviz2",
    "tf2_ros": "static_transform_publisher",
    "robot_localization": "ekf_node",
    "zed_wrapper": "",
}

# Stands for the driver's launch file: starts a process whose command line shows every argument it was given.
DRIVER = """
from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, ExecuteProcess, OpaqueFunction
from launch.substitutions import LaunchConfiguration
NAMES = {"camera_model": "", "camera_name": "zed", "publish_tf": "true", "publish_map_tf": "true",
         "publish_imu_tf": "false", "use_sim_time": "false", "param_overrides": ""}
def start(context):
    return [ExecuteProcess(cmd=["zed", *(f"{n}={LaunchConfiguration(n).perform(context)}" for n in NAMES)])]
def generate_launch_description():
    declared = [DeclareLaunchArgument(name, default_value=value) for name, value in NAMES.items()]
    return LaunchDescription([*declared, OpaqueFunction(function=start)])
"""


@pytest.fixture
def prefix(tmp_path, monkeypatch):
    """An install prefix with our package as colcon would install it, and stand-ins for the others."""
    index = tmp_path / "share" / "ament_index" / "resource_index" / "packages"
    index.mkdir(parents=True)
    for package, executable in EXECUTABLES.items():
        (index / package).touch()
        (tmp_path / "lib" / package).mkdir(parents=True)
        if executable:
            file = tmp_path / "lib" / package / executable
            file.touch()
            file.chmod(0o755)
    share = tmp_path / "share" / "macvo_ros"
    share.mkdir()
    for folder in ("launch", "config"):
        (share / folder).symlink_to(ROOT / folder)
    driver = tmp_path / "share" / "zed_wrapper" / "launch"
    driver.mkdir(parents=True)
    (driver / "zed_camera.launch.py").write_text(DRIVER)
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path))
    for name in ("FASTRTPS_DEFAULT_PROFILES_FILE", "FASTDDS_DEFAULT_PROFILES_FILE"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


class Started:
    """One process a launch file would start."""

    def __init__(self, action: ExecuteLocal, context: LaunchContext) -> None:
        action.prepare(context)
        self.command = list(action.process_description.final_cmd)
        self.program = Path(self.command[0]).name
        self.environment = dict(context.environment)
        self.parameters: dict[str, object] = {}
        for before, word in zip(self.command, self.command[1:], strict=False):
            if before == "--params-file":
                (content,) = yaml.full_load(Path(word).read_text()).values()  # launch writes lists as tuples
                self.parameters.update(content["ros__parameters"])
        words = [word for before, word in zip(self.command, self.command[1:], strict=False) if before == "-r"]
        self.remaps = dict(word.split(":=") for word in words)


@pytest.fixture
def start(prefix, monkeypatch):
    """A function: all that a launch file starts, by program (static transforms by their child), without starting it."""
    found: dict[str, Started] = {}

    def record(action: ExecuteLocal, context: LaunchContext) -> None:
        process = Started(action, context)
        name = process.program
        if "--child-frame-id" in process.command:
            name = process.command[process.command.index("--child-frame-id") + 1]
        found[name] = process

    def walk(entity, context: LaunchContext) -> None:
        for inner in entity.visit(context) or []:
            walk(inner, context)

    def run(file: str, **arguments: str) -> dict[str, Started]:
        context = LaunchContext(argv=[])
        context.launch_configurations.update(arguments)
        walk(get_launch_description_from_python_launch_file(str(ROOT / "launch" / file)), context)
        return found

    monkeypatch.setattr(ExecuteLocal, "execute", record)
    return run


FILES = sorted(path.name for path in (ROOT / "launch").glob("*.launch.py"))


@pytest.mark.parametrize("file", FILES)
def test_every_argument_is_described(prefix, file):
    arguments = get_launch_description_from_python_launch_file(str(ROOT / "launch" / file)).get_launch_arguments()
    assert arguments
    assert all(argument.description and argument.default_value is not None for argument in arguments)


@pytest.mark.parametrize("file", FILES)
def test_every_process_gets_the_profile_for_large_images(start, file):
    for process in start(file).values():
        if process.program not in ("ekf_node", "static_transform_publisher"):
            for name in ("FASTRTPS_DEFAULT_PROFILES_FILE", "FASTDDS_DEFAULT_PROFILES_FILE"):
                assert Path(process.environment[name]).samefile(ROOT / "config" / "fastdds.xml")


def test_a_profile_of_the_users_own_is_kept(start, monkeypatch):
    monkeypatch.setenv("FASTRTPS_DEFAULT_PROFILES_FILE", "/mine.xml")
    assert start("macvo.launch.py")["macvo_node"].environment["FASTRTPS_DEFAULT_PROFILES_FILE"] == "/mine.xml"


def test_plain_node(start):
    started = start("macvo.launch.py", left_image="/l", right_image="/r", left_info="/li", right_info="/ri")
    assert list(started) == ["macvo_node"]
    node = started["macvo_node"]
    assert node.parameters == {"use_sim_time": False}
    assert node.remaps["left/image_rect"] == node.remaps["left/image_raw"] == "/l"
    assert (node.remaps["right/image_rect"], node.remaps["left/camera_info"]) == ("/r", "/li")
    assert node.remaps["right/camera_info"] == "/ri"
    assert node.remaps["__node"] == "macvo"


def test_bag_and_rviz(start, tmp_path):
    bag = tmp_path / "rec"
    bag.mkdir()
    started = start("macvo.launch.py", bag=str(bag), bag_rate="0.5", rviz="true", publish_tf="false", matcher="classic")
    assert started["macvo_node"].parameters == {"use_sim_time": True, "publish_tf": False, "matcher": "classic"}
    assert started["ros2"].command == ["ros2", "bag", "play", str(bag), "--clock", "--rate", "0.5", "--delay", "5.0"]
    rviz = started["rviz2"]
    assert rviz.parameters == {"use_sim_time": True}
    assert Path(rviz.command[rviz.command.index("-d") + 1]).samefile(ROOT / "config" / "macvo.rviz")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"bag": "/nowhere"}, "does not exist"),
        ({"rviz": "maybe"}, "rviz:=maybe: expected true or false"),
    ],
)
def test_wrong_arguments_are_refused_by_a_sentence(start, arguments, words):
    with pytest.raises(RuntimeError, match=words):
        start("macvo.launch.py", **arguments)


def test_a_ros1_bag_is_refused_with_the_way_out(start, tmp_path):
    (tmp_path / "x.bag").touch()
    with pytest.raises(RuntimeError, match="rosbags-convert"):
        start("euroc.launch.py", bag=str(tmp_path / "x.bag"))


def test_zedx_starts_the_driver_with_left_right_on_and_its_tracking_off(start):
    started = start("zedx.launch.py", frame_rate="30", downscale="1.5", driver_overrides="debug.sdk_verbose:=1")
    assert set(started) == {"macvo_node", "zed"}
    node = started["macvo_node"]
    assert node.remaps["left/image_rect"] == "/zed/zed_node/left/color/rect/image"
    assert node.remaps["right/camera_info"] == "/zed/zed_node/right/color/rect/camera_info"
    assert node.parameters["base_frame"] == "zed_camera_link"
    given = dict(word.split("=", 1) for word in started["zed"].command[1:])
    overrides = dict(pair.split(":=") for pair in given.pop("param_overrides").split(";"))
    assert given == {
        "camera_model": "zedx",
        "camera_name": "zed",
        "publish_tf": "false",
        "publish_map_tf": "false",
        "publish_imu_tf": "false",
        "use_sim_time": "false",
    }
    assert overrides["video.publish_left_right"] == "true"
    assert overrides["pos_tracking.pos_tracking_enabled"] == "false"
    assert overrides["depth.depth_mode"] == "NONE"
    assert (overrides["general.grab_frame_rate"], overrides["general.pub_frame_rate"]) == ("30", "30.0")
    assert overrides["general.pub_downscale_factor"] == "1.50"
    assert overrides["debug.sdk_verbose"] == "1"


def test_zedx_without_the_driver(start):
    started = start("zedx.launch.py", start_camera="false", camera_name="front", base_frame="base_link")
    assert list(started) == ["macvo_node"]
    assert started["macvo_node"].remaps["left/image_rect"] == "/front/zed_node/left/color/rect/image"
    assert started["macvo_node"].parameters["base_frame"] == "base_link"


def test_euroc_brings_calibration_and_frames(start):
    started = start("euroc.launch.py")
    assert set(started) == {"macvo_node", "cam0", "cam1", "imu4"}
    node = started["macvo_node"]
    assert (node.remaps["left/image_raw"], node.remaps["right/image_raw"]) == ("/cam0/image_raw", "/cam1/image_raw")
    assert node.parameters["rectify"] is True
    assert Path(node.parameters["calibration_file"]).samefile(ROOT / "config" / "euroc_calibration.yaml")
    assert node.parameters["use_sim_time"] is True


@pytest.mark.parametrize(
    ("arguments", "left", "frames"),
    [
        ({}, "/kitti/camera_gray_left/image_raw", set()),
        ({"kind": "odom", "camera": "color"}, "/kitti/camera_color_left/image_rect", {"camera_color_left"}),
    ],
)
def test_kitti(start, arguments, left, frames):
    started = start("kitti.launch.py", **arguments)
    assert set(started) == {"macvo_node"} | frames
    node = started["macvo_node"]
    assert node.remaps["left/image_rect"] == left
    assert node.remaps["right/image_rect"] == left.replace("left", "right")
    assert node.remaps["left/camera_info"] == left.rpartition("/")[0] + "/camera_info"


def test_fusion_leaves_tf_to_the_filter(start):
    started = start("fusion.launch.py")
    assert started["macvo_node"].parameters["publish_tf"] is False
    assert "publish_imu_tf=true" in started["zed"].command
    ekf = started["ekf_node"]
    assert (ekf.parameters["imu0"], ekf.parameters["odom0"]) == ("/zed/zed_node/imu/data", "/macvo/odometry")
    assert ekf.parameters["base_link_frame"] == started["macvo_node"].parameters["base_frame"] == "zed_camera_link"
    assert ekf.parameters["use_sim_time"] is False


def test_fusion_on_a_bag_with_an_imu_that_does_not_know_up(start, tmp_path):
    bag = tmp_path / "rec"
    bag.mkdir()
    started = start("fusion.launch.py", source="euroc", bag=str(bag))
    ekf = started["ekf_node"]
    assert ekf.parameters["imu0"] == "/imu0"
    assert list(ekf.parameters["imu0_config"]) == [False] * 9 + [True] * 3 + [False] * 3
    assert ekf.parameters["use_sim_time"] is True
    assert started["ros2"].command[3] == str(bag)


@pytest.mark.parametrize("given", ["true", "false"])
@pytest.mark.parametrize("source", ["zedx", "euroc", "kitti", "none"])
def test_fusion_gives_odometry_and_filter_one_clock(start, source, given):
    started = start("fusion.launch.py", source=source, use_sim_time=given)
    clocks = {name: process.parameters["use_sim_time"] for name, process in started.items() if process.parameters}
    nodes = {"ekf_node"} if source == "none" else {"ekf_node", "macvo_node"}
    assert clocks == dict.fromkeys(nodes, given == "true")


@pytest.mark.parametrize(("source", "played"), [("zedx", False), ("euroc", True), ("kitti", True), ("none", False)])
def test_fusion_follows_the_clock_where_a_bag_is_played(start, source, played):
    started = start("fusion.launch.py", source=source)
    assert {process.parameters["use_sim_time"] for process in started.values() if process.parameters} == {played}


def test_fusion_lists_and_takes_what_it_passes_on(start):
    file = str(ROOT / "launch" / "fusion.launch.py")
    listed = {argument.name for argument in get_launch_description_from_python_launch_file(file).get_launch_arguments()}
    assert {"start_camera", "use_sim_time", "bag", "rviz"} <= listed
    assert set(start("fusion.launch.py", start_camera="false")) == {"macvo_node", "ekf_node"}


def test_fusion_refuses_a_clock_that_is_neither(start):
    with pytest.raises(RuntimeError, match="use_sim_time:=maybe: expected true or false"):
        start("fusion.launch.py", use_sim_time="maybe")


def test_fusion_beside_a_running_odometry(start):
    started = start("fusion.launch.py", source="none", imu="/imu/data", base_frame="base_footprint")
    assert list(started) == ["ekf_node"]
    assert started["ekf_node"].parameters["base_link_frame"] == "base_footprint"
