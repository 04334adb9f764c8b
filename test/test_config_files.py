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

"""What config/ and launch/ hold, checked without ROS: parameters exist, topics agree, matrices are as they must be."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import numpy as np
import pytest
import yaml
from scipy.spatial.transform import Rotation

from macvo_ros.geometry.calibration import load_calibration, load_euroc_calibration
from macvo_ros.images.camera_info import StereoInput
from macvo_ros.ros.parameters import LEAVES, NodeConfig
from macvo_ros.settings.declaration import build, flatten

ROOT = Path(__file__).parents[1]
CONFIG, LAUNCH = ROOT / "config", ROOT / "launch"
LAUNCH_FILES = sorted(LAUNCH.glob("*.launch.py"))


# What matters of mav0/cam0/sensor.yaml and mav0/cam1/sensor.yaml of the Machine Hall and Vicon Room sequences.
EUROC = {
    "cam0.yaml": """
T_BS:
  rows: 4
  cols: 4
  data: [0.0148655429818, -0.999880929698, 0.00414029679422, -0.0216401454975,
         0.999557249008, 0.0149672133247, 0.025715529948, -0.064676986768,
        -0.0257744366974, 0.00375618835797, 0.999660727178, 0.00981073058949,
         0.0, 0.0, 0.0, 1.0]
intrinsics: [458.654, 457.296, 367.215, 248.375]
distortion_coefficients: [-0.28340811, 0.07395907, 0.00019359, 1.76187114e-05]
""",
    "cam1.yaml": """
T_BS:
  cols: 4
  rows: 4
  data: [0.0125552670891, -0.999755099723, 0.0182237714554, -0.0198435579556,
         0.999598781151, 0.0130119051815, 0.0251588363115, 0.0453689425024,
        -0.0253898008918, 0.0179005838253, 0.999517347078, 0.00786212447038,
         0.0, 0.0, 0.0, 1.0]
intrinsics: [457.587, 456.134, 379.999, 255.238]
distortion_coefficients: [-0.28368365,  0.07451284, -0.00010473, -3.55590700e-05]
""",
}


def ros_parameters(name: str) -> dict:
    (content,) = yaml.safe_load((CONFIG / name).read_text()).values()
    return content["ros__parameters"]


def constant(file: str, name: str) -> ast.expr:
    """The expression a launch file assigns to a name, read without importing `launch`."""
    for node in ast.parse((LAUNCH / file).read_text()).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == name:
            return node.value
    raise AssertionError(f"{file} does not assign {name}")


@pytest.mark.parametrize("name", ["zedx.yaml", "euroc.yaml", "kitti.yaml"])
def test_parameter_files_hold_only_parameters_of_the_node(name):
    build(NodeConfig, flatten(ros_parameters(name)))


def test_parameters_that_launch_files_set_exist():
    keys = [key.value for key in constant("macvo.launch.py", "PARAMETERS").keys]
    assert set(keys) <= set(LEAVES)


@pytest.mark.parametrize("file", LAUNCH_FILES, ids=lambda file: file.name)
def test_launch_files_pass_on_only_what_the_included_file_declares(file):
    declared = {element.elts[0].value for element in constant("macvo.launch.py", "ARGUMENTS").elts}
    text = file.read_text()
    passed_on = constant(file.name, "PASSED_ON") if "PASSED_ON = " in text else None
    if passed_on is not None:
        assert set(ast.literal_eval(passed_on)) <= declared


@pytest.mark.parametrize("file", LAUNCH_FILES, ids=lambda file: file.name)
def test_files_that_launch_files_name_exist(file):
    for parts in re.findall(r'SHARE((?: / f?"[^"]+")+)', file.read_text()):
        path = ROOT.joinpath(*re.findall(r'"([^"]+)"', parts))
        assert "{" in path.name or path.is_file(), path


def test_the_node_launched_is_the_one_installed():
    assert 'executable="macvo_node"' in (LAUNCH / "macvo.launch.py").read_text()
    assert (ROOT / "scripts" / "macvo_node").is_file()
    assert "scripts/macvo_node" in (ROOT / "CMakeLists.txt").read_text()


def test_remapped_topics_are_those_the_node_listens_to():
    inputs = (ROOT / "macvo_ros" / "ros" / "inputs.py").read_text()
    for topic in ("image_rect", "image_raw", "camera_info"):
        assert f'"{topic}"' in (LAUNCH / "macvo.launch.py").read_text()
        assert topic in inputs


def test_rviz_shows_topics_the_node_publishes():
    sources = [(ROOT / "macvo_ros" / "ros" / name).read_text() for name in ("outputs.py", "history.py")]
    published = set(re.findall(r'"~/([\w/]+)"', "".join(sources)))
    displays = yaml.safe_load((CONFIG / "macvo.rviz").read_text())["Visualization Manager"]["Displays"]
    shown = {display["Topic"]["Value"] for display in displays if "Topic" in display}
    assert {topic for topic in shown if topic.startswith("/macvo/")} <= {f"/macvo/{name}" for name in published}
    assert {"/macvo/map", "/macvo/keypoints", "/macvo/path", "/macvo/odometry"} <= shown
    ellipsoids = [display for display in displays if display.get("Covariance", {}).get("Position", {}).get("Value")]
    assert ellipsoids


def test_ekf_fuses_our_twist_and_no_pose():
    ekf = ros_parameters("ekf.yaml")
    assert ekf["odom0"] == "/macvo/odometry"
    assert ekf["odom0_config"] == [False] * 6 + [True] * 6 + [False] * 3
    assert not ekf["odom0_differential"]
    assert ekf["smooth_lagged_data"]
    assert ekf["history_length"] >= 1.0
    assert ekf["world_frame"] == ekf["odom_frame"] == ros_parameters("zedx.yaml")["odom_frame"]
    assert len(ekf["imu0_config"]) == 15
    assert not any(ekf["imu0_config"][12:])


@pytest.mark.parametrize("name", ["process_noise_covariance", "initial_estimate_covariance"])
def test_ekf_matrices_are_full_and_positive(name):
    """225 floating point numbers: Humble takes no diagonal, and a whole number among them is an error of type."""
    values = ros_parameters("ekf.yaml")[name]
    assert len(values) == 225
    assert all(isinstance(value, float) for value in values)
    assert (np.linalg.eigvalsh(np.reshape(values, (15, 15))) > 1e-9).all()


def test_euroc_frames_and_calibration_tell_the_same_rig():
    frames = ast.literal_eval(constant("euroc.launch.py", "FRAMES"))
    poses = []
    for name in ("cam0", "cam1"):
        pose = np.eye(4)
        pose[:3, 3] = frames[name][:3]
        pose[:3, :3] = Rotation.from_quat(frames[name][3:]).as_matrix()
        poses.append(pose)
    right_from_left = np.linalg.inv(poses[1]) @ poses[0]
    calibration = load_calibration(CONFIG / "euroc_calibration.yaml")
    np.testing.assert_allclose(calibration.R, right_from_left[:3, :3], atol=1e-5)
    np.testing.assert_allclose(calibration.T, right_from_left[:3, 3], atol=1e-5)
    assert StereoInput.from_calibration(calibration).camera.baseline == pytest.approx(0.11008, abs=1e-4)


def test_euroc_calibration_is_the_datasets_own(tmp_path):
    for name, content in EUROC.items():
        (tmp_path / name).write_text(f"resolution: [752, 480]\ndistortion_model: radial-tangential\n{content}")
    theirs, T_BS = load_euroc_calibration(*(tmp_path / name for name in EUROC))
    ours = load_calibration(CONFIG / "euroc_calibration.yaml")
    for side in ("left", "right"):
        np.testing.assert_array_equal(getattr(ours, side).K, getattr(theirs, side).K)
        np.testing.assert_array_equal(getattr(ours, side).D, getattr(theirs, side).D)
    np.testing.assert_allclose(ours.R, theirs.R, atol=1e-9)
    np.testing.assert_allclose(ours.T, theirs.T, atol=1e-9)
    frames = ast.literal_eval(constant("euroc.launch.py", "FRAMES"))
    np.testing.assert_allclose(Rotation.from_quat(frames["cam0"][3:]).as_matrix(), T_BS[:3, :3], atol=1e-6)


def test_kitti_axes_turn_a_body_into_an_optical_frame():
    numbers = ast.literal_eval(re.search(r"axes = (\(.*?\))", (LAUNCH / "kitti.launch.py").read_text()).group(1))
    expected = [[0, 0, 1], [-1, 0, 0], [0, -1, 0]]  # columns: right, down, forward of the camera in the body
    np.testing.assert_allclose(Rotation.from_quat(numbers).as_matrix(), expected, atol=1e-12)


def test_the_workflow_runs_what_exists() -> None:
    """GitHub's runners were not at hand: at least every file that workflow and Dockerfile name is there."""
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
    test, colcon = workflow["jobs"]["test"], workflow["jobs"]["colcon"]
    assert test["strategy"]["matrix"]["os"] == ["ubuntu-22.04", "ubuntu-24.04"]
    assert colcon["strategy"]["matrix"]["ros"] == ["humble", "jazzy"]
    assert [step["run"] for step in test["steps"] if "run" in step][-1] == ".ci/run"
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o111
    hashed = re.findall(r"'([\w./]+)'", test["steps"][2]["with"]["key"])
    copied = [line.split()[1] for line in (ROOT / "Dockerfile").read_text().splitlines() if line.startswith("COPY")]
    for name in [*hashed, *copied]:
        assert (ROOT / name).exists(), name
    for name in re.findall(r"share/macvo_ros/([\w./]+)", (ROOT / "Dockerfile").read_text()):
        assert (ROOT / name).is_file(), name
