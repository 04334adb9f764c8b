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

"""CameraInfo of both ROS generations to frames, rectified or raw."""

from __future__ import annotations

from types import SimpleNamespace

import cv2
import numpy as np
import pytest

from macvo_ros.errors import CalibrationError, ImageError
from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.geometry.rectification import RawCamera, RawStereoCalibration
from macvo_ros.images.camera_info import CameraInfo, StereoInput

CAMERA = StereoCamera(100.0, 100.0, 31.5, 23.5, 0.12, 64, 48)
HEADER = SimpleNamespace(frame_id="left_optical")


def info(side: str = "left", **change) -> CameraInfo:
    P = CAMERA.P_left if side == "left" else CAMERA.P_right
    fields = {"width": 64, "height": 48, "model": "plumb_bob", "D": np.zeros(5), "K": P[:, :3].ravel()}
    return CameraInfo(**{**fields, "R": np.eye(3).ravel(), "P": P.ravel(), **change})


@pytest.mark.parametrize("names", ["dkrp", "DKRP"])
def test_messages_of_both_generations(names):
    matrices = (np.arange(5.0), np.arange(9.0), np.eye(3).ravel(), np.arange(12.0))
    message = SimpleNamespace(
        header=HEADER, width=64, height=48, distortion_model="plumb_bob", **dict(zip(names, matrices, strict=True))
    )
    read = CameraInfo.from_message(message)
    assert (read.width, read.height, read.frame_id) == (64, 48, "left_optical")
    for name, matrix in zip("DKRP", matrices, strict=True):
        np.testing.assert_array_equal(getattr(read, name), matrix)


def test_rectified_images_need_only_P():
    """Whatever the driver puts into K, D and R (ZED: a distortion; KITTI odometry: zeros) is not looked at."""
    odd = {"D": np.full(5, 9.0), "K": np.zeros(9), "R": np.zeros(9)}
    stereo = StereoInput.from_camera_info(info(**odd), info("right", **odd), rectify=False)
    assert stereo.camera == CAMERA
    assert stereo.rectifier is None
    image = np.random.default_rng(0).integers(0, 256, (48, 64), dtype=np.uint8)
    assert stereo.frame(image, image, 5).left is image


def test_colour_left_with_its_own_offset_keeps_the_baseline():
    """KITTI's colour cameras: P_left[3] is not zero."""
    left, right = CAMERA.P_left, CAMERA.P_right
    left[0, 3] += 6.0
    right[0, 3] += 6.0
    stereo = StereoInput.from_camera_info(info(P=left.ravel()), info("right", P=right.ravel()), rectify=False)
    assert stereo.camera.baseline == pytest.approx(0.12)


@pytest.mark.parametrize(
    ("left", "right", "words"),
    [
        ({"P": np.zeros(12)}, {}, "not calibrated"),
        ({"P": np.full(12, np.nan)}, {}, "not finite"),
        ({"P": CAMERA.P_right.ravel()}, {"P": CAMERA.P_left.ravel()}, "swapped"),
        ({"width": 32}, {}, "left camera_info is 32x48 but right is 64x48"),
        ({}, {"P": CAMERA.P_left.ravel()}, "baseline"),
    ],
)
def test_impossible_calibrations_are_refused_by_a_sentence(left, right, words):
    with pytest.raises(CalibrationError, match=words):
        StereoInput.from_camera_info(info(**left), info("right", **right), rectify=False)


def test_a_change_is_noticed():
    assert info().same_calibration(info(frame_id="another"))
    assert not info().same_calibration(info(D=np.full(5, 0.1)))
    assert not info().same_calibration(info("right"))
    assert info(P=np.full(12, np.nan)).same_calibration(info(P=np.full(12, np.nan)))


def test_raw_images_are_rectified_as_the_message_says():
    """A dot drawn where the lens puts a direction comes out where the rectified camera puts it."""
    turn = cv2.Rodrigues(np.array([[0.02], [-0.03], [0.01]]))[0]
    D = np.array([-0.2, 0.05, 0.001, -0.001, 0.0])
    raw = {"D": D, "R": turn.ravel()}
    stereo = StereoInput.from_camera_info(info(**raw), info("right", **raw), rectify=True)
    np.testing.assert_allclose(stereo.raw_from_rectified[:3, :3], turn.T, atol=1e-12)
    direction = np.array([0.1, -0.05, 1.0])  # in the rectified camera
    seen = cv2.projectPoints((turn.T @ direction)[None], np.zeros(3), np.zeros(3), CAMERA.K, D)[0].ravel()
    rows, columns = np.mgrid[:48, :64]
    image = (200 * np.exp(-((columns - seen[0]) ** 2 + (rows - seen[1]) ** 2) / 8)).astype(np.uint8)
    left = stereo.frame(image, image, 0).left.astype(float)
    expected = CAMERA.K @ direction / direction[2]
    found = np.array([(left * columns).sum(), (left * rows).sum()]) / left.sum()
    np.testing.assert_allclose(found, expected[:2], atol=0.1)


def test_from_a_calibration_file():
    lens = RawCamera(np.array([100.0, 100, 31.5, 23.5]), np.zeros(4), "plumb_bob", 64, 48)
    raw = StereoInput.from_calibration(RawStereoCalibration(lens, lens, np.eye(3), np.array([-0.12, 0, 0])))
    assert raw.rectifier is not None
    assert raw.camera.baseline == pytest.approx(0.12)
    assert StereoInput.from_calibration(CAMERA).camera is CAMERA


def test_one_eye_grey_and_one_in_colour():
    grey = np.full((48, 64), 90, np.uint8)
    frame = StereoInput(CAMERA).frame(grey, np.dstack([grey] * 3), 0)
    assert frame.left.shape == frame.right.shape == (48, 64)
    assert np.abs(frame.right.astype(int) - 90).max() <= 1


def test_images_of_another_size_are_refused():
    image = np.zeros((10, 10), np.uint8)
    with pytest.raises(ImageError, match="10x10 but the calibration is for 64x48"):
        StereoInput(CAMERA).frame(image, image, 0)
