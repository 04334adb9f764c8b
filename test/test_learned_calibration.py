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

"""What was learned of a calibration, for people and as files that others read."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import yaml

from macvo_ros.geometry.calibration import load_calibration
from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.geometry.camera_info_file import save_camera_infos, save_raw_calibration
from macvo_ros.geometry.rectification import RawStereoCalibration
from macvo_ros.images.camera_info import StereoInput
from macvo_ros.settings.config import CalibrationConfig
from macvo_ros.uncertainty.calibration_model import (
    AHEAD,
    FOCAL,
    K1,
    PITCH,
    ROLL,
    SIZE,
    YAW,
    CalibrationModel,
    Keypoints,
)
from macvo_ros.uncertainty.learned_calibration import LearnedCalibration
from macvo_ros.uncertainty.online_calibration import OnlineCalibration

CAMERA = StereoCamera(fx=700.0, fy=700.0, cx=600.0, cy=180.0, baseline=0.5, width=1200, height=370)

_INDEX = {"pitch": PITCH, "yaw": YAW, "roll": ROLL, "focal": FOCAL, "k1": K1, "ahead": AHEAD}


def learned(**errors: float) -> LearnedCalibration:
    prior = OnlineCalibration(CAMERA, CalibrationConfig()).prior
    error = np.zeros(SIZE)
    for name, value in errors.items():
        error[_INDEX[name]] = value
    return LearnedCalibration(CAMERA, error, 0.1 * prior, prior)


def test_what_is_off_is_said_with_its_sigma_and_what_is_not_is_silence() -> None:
    assert learned().findings() == []
    assert learned(yaw=1e-7).findings() == []
    (sentence,) = learned(yaw=np.radians(0.024)).findings()
    assert sentence == "the right camera is turned by +0.024 +- 0.003 deg about y: recalibrate"
    (sentence,) = learned(focal=0.0125).findings()
    assert "the focal length is 1.250 +- 0.030 % too small" in sentence
    assert "beyond what calibration.prior allows" in sentence


def test_files_read_back_and_undo_the_error(tmp_path: Path) -> None:
    """Matches that the error moved, rectified once more by the written file, are those of a perfect pair."""
    error = learned(
        yaw=np.radians(0.05), pitch=np.radians(-0.04), roll=np.radians(0.03), focal=0.004, k1=-0.01, ahead=0.005
    )
    save_raw_calibration(tmp_path / "calibration.yaml", error.as_raw())
    raw = load_calibration(tmp_path / "calibration.yaml")
    assert isinstance(raw, RawStereoCalibration)
    np.testing.assert_allclose(raw.R, error.as_raw().R, atol=1e-11)
    rng = np.random.default_rng(0)
    pixel, disparity = rng.uniform((100, 60), (1100, 310), (200, 2)), rng.uniform(8, 60, 200)
    perfect = Keypoints(pixel, disparity, pixel, disparity)
    seen = CalibrationModel(CAMERA).distorted(perfect, error.error)
    rectifier = StereoInput.from_calibration(raw).rectifier
    assert rectifier is not None
    right = seen.pixel - np.column_stack((seen.disparity, np.zeros(200)))
    x, y = (pixel[:, 0] - disparity - CAMERA.cx) / CAMERA.fx, (pixel[:, 1] - CAMERA.cy) / CAMERA.fy
    right[:, 1] = pixel[:, 1] + CAMERA.fy * y * (error.error[FOCAL] + error.error[K1] * (x * x + y * y))
    right[:, 1] += CalibrationModel(CAMERA).row_jacobian(pixel, disparity)[:, :3] @ error.error[[PITCH, YAW, ROLL]]
    right[:, 1] += y * disparity * error.error[AHEAD]
    sides = []
    for points, side, rotation, projection in (
        (seen.pixel, raw.left, rectifier.R_left, rectifier.camera.P_left),
        (right, raw.right, rectifier.R_right, rectifier.camera.P_right),
    ):
        rectified = cv2.undistortPoints(points[:, None], side.K, side.D, R=rotation, P=projection)
        sides.append(rectified[:, 0])
    rows = sides[0][:, 1] - sides[1][:, 1]
    assert np.abs(right[:, 1] - seen.pixel[:, 1]).max() > 0.5, "matches left their rows"
    assert np.abs(rows).max() < 0.05
    depth = rectifier.camera.depth(sides[0][:, 0] - sides[1][:, 0])
    np.testing.assert_allclose(depth, CAMERA.depth(disparity), rtol=5e-3)


def test_camera_info_pair_is_what_camera_info_manager_reads(tmp_path: Path) -> None:
    paths = save_camera_infos(tmp_path, learned(yaw=np.radians(0.05), k1=-0.01).as_raw())
    for name, path in zip(("left", "right"), paths, strict=True):
        content = yaml.safe_load(path.read_text())
        assert content["camera_name"] == name
        assert (content["image_width"], content["image_height"]) == (1200, 370)
        assert content["distortion_model"] == "plumb_bob"
        assert content["distortion_coefficients"]["data"][0] == -0.01
        for key, rows, columns in (
            ("camera_matrix", 3, 3),
            ("distortion_coefficients", 1, 5),
            ("rectification_matrix", 3, 3),
            ("projection_matrix", 3, 4),
        ):
            assert (content[key]["rows"], content[key]["cols"]) == (rows, columns)
            assert len(content[key]["data"]) == rows * columns
    right = yaml.safe_load(paths[1].read_text())["projection_matrix"]["data"]
    np.testing.assert_allclose(-right[3] / right[0], CAMERA.baseline, rtol=1e-6)
