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

"""Rectification against the lens models themselves: a point is where the rectified camera says it is."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from macvo_ros.errors import CalibrationError, ImageError
from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.geometry.rectification import RawCamera, RawStereoCalibration, StereoRectifier
from macvo_ros.geometry.se3 import exp_so3, log_so3

SIZE = (320, 240)
K = np.array([[200.0, 0, 157.0], [0, 199.0, 122.0], [0, 0, 1]])
LENSES = {
    "plumb_bob": [-0.28, 0.07, 0.0006, -0.0004, -0.01],
    "rational_polynomial": [0.6, -0.2, 0.0005, -0.0003, 0.01, 0.95, -0.1, 0.02],
    "equidistant": [0.0034, 0.0007, -0.002, 0.0002],
}


def raw_pair(model: str) -> RawStereoCalibration:
    """A hand-made rig: cameras turned by a degree against each other, baseline 0.11 m."""
    D = np.array(LENSES[model])
    left = RawCamera(K, D, model, *SIZE)
    right = RawCamera(K + np.array([[-1, 0, 2], [0, -1, -3], [0, 0, 0]]), 0.97 * D, model, *SIZE)
    return RawStereoCalibration(left, right, exp_so3(np.array([0.01, -0.015, 0.02])), np.array([-0.11, 0.002, 0.003]))


def distort(camera: RawCamera, points: np.ndarray) -> np.ndarray:
    """(N, 2) raw pixels of (N, 3) points in the camera's own frame, by OpenCV's forward models."""
    zero = np.zeros(3)
    project = cv2.fisheye.projectPoints if camera.model == "equidistant" else cv2.projectPoints
    if camera.model == "equidistant":
        return project(points.reshape(-1, 1, 3), zero, zero, camera.K, camera.D)[0].reshape(-1, 2)
    return project(points, zero, zero, camera.K, camera.D)[0].reshape(-1, 2)


def raw_coordinates(rectifier: StereoRectifier) -> tuple[np.ndarray, np.ndarray]:
    """(H, W, 3) images whose first two channels are the raw pixel each rectified pixel was taken from."""
    y, x = np.mgrid[: SIZE[1], : SIZE[0]].astype(np.float32)
    ramp = np.stack([x, y, 0 * x], axis=2)
    return rectifier.apply(ramp, ramp)  # type: ignore[arg-type]


def sample(image: np.ndarray, pixels: np.ndarray) -> np.ndarray:
    maps = pixels.astype(np.float32).reshape(-1, 1, 2)
    return cv2.remap(image, maps, None, cv2.INTER_LINEAR)[:, 0, :2]


def assert_points_are_where_the_camera_says(rectifier: StereoRectifier, calibration: RawStereoCalibration) -> None:
    camera = rectifier.camera
    rng = np.random.default_rng(0)
    # Points by their rectified pixel, well inside both images.
    depth = rng.uniform(2, 20, 200)
    pixel = rng.uniform([40, 20], [SIZE[0] - 20, SIZE[1] - 20], (200, 2))
    rays = np.column_stack([(pixel[:, 0] - camera.cx) / camera.fx, (pixel[:, 1] - camera.cy) / camera.fy, np.ones(200)])
    left_points = (rays * depth[:, None]) @ rectifier.R_left  # R_left^T x
    right_points = left_points @ calibration.R.T + calibration.T
    right_pixel = pixel - np.column_stack([camera.disparity(depth), np.zeros(200)])
    left, right = raw_coordinates(rectifier)
    np.testing.assert_allclose(sample(left, pixel), distort(calibration.left, left_points), atol=0.1)
    np.testing.assert_allclose(sample(right, right_pixel), distort(calibration.right, right_points), atol=0.1)


@pytest.mark.parametrize("model", list(LENSES))
def test_rectified_points_have_equal_rows_and_metric_disparity(model: str) -> None:
    calibration = raw_pair(model)
    rectifier = StereoRectifier.from_calibration(calibration)
    assert_points_are_where_the_camera_says(rectifier, calibration)
    assert rectifier.camera.baseline == pytest.approx(np.linalg.norm(calibration.T))
    assert np.linalg.norm(log_so3(rectifier.R_left)) > 0.005


@pytest.mark.parametrize("model", list(LENSES))
def test_camera_info_is_followed_to_the_letter(model: str) -> None:
    """R and P chosen by somebody else, with principal points that differ between the eyes."""
    calibration = raw_pair(model)
    R1, R2 = cv2.stereoRectify(
        K, np.zeros(5), K, np.zeros(5), SIZE, calibration.R, calibration.T.reshape(3, 1), flags=cv2.CALIB_ZERO_DISPARITY
    )[:2]
    chosen = StereoCamera(190.0, 190.0, 160.0, 118.0, float(np.linalg.norm(calibration.T)), *SIZE, cx_right=155.0)
    rectifier = StereoRectifier.from_camera_info(
        calibration.left,
        calibration.right,
        R_left=R1.ravel().tolist(),
        R_right=R2.ravel().tolist(),
        P_left=chosen.P_left.ravel().tolist(),
        P_right=chosen.P_right.ravel().tolist(),
    )
    assert vars(rectifier.camera) == pytest.approx(vars(chosen))
    assert_points_are_where_the_camera_says(rectifier, calibration)


def test_pinhole_view_has_no_black_border() -> None:
    rectifier = StereoRectifier.from_calibration(raw_pair("plumb_bob"))
    white = np.full(SIZE[::-1], 255, np.uint8)
    for image in rectifier.apply(white, white):
        assert (image[2:-2, 2:-2] == 255).all()


def test_fisheye_view_keeps_the_resolution_in_the_middle() -> None:
    """OpenCV's own choice for a 190 px fisheye of 512 px is a focal length of 60 px."""
    lens = RawCamera(np.array([190.978, 190.973, 254.93, 256.897]), np.array(LENSES["equidistant"]), "equi", 512, 512)
    pair = RawStereoCalibration(lens, lens, np.eye(3), np.array([-0.1, 0.001, 0]))
    assert StereoRectifier.from_calibration(pair).camera.fx >= 190


def test_earlier_frames_are_never_overwritten() -> None:
    rectifier = StereoRectifier.from_calibration(raw_pair("plumb_bob"))
    rng = np.random.default_rng(0)
    first = rectifier.apply(*rng.integers(0, 256, (2, *SIZE[::-1]), dtype=np.uint8))
    kept = [image.copy() for image in first]
    second = rectifier.apply(*rng.integers(0, 256, (2, *SIZE[::-1]), dtype=np.uint8))
    for image, copy in zip(first, kept, strict=True):
        np.testing.assert_array_equal(image, copy)
        assert not any(np.shares_memory(image, other) for other in second)


@pytest.mark.parametrize(
    ("name", "model", "count"),
    [
        ("radial-tangential", "plumb_bob", 4),
        ("radtan", "plumb_bob", 5),
        ("none", "plumb_bob", 0),
        ("", "plumb_bob", 0),
        ("Equidistant", "equidistant", 4),
        ("fisheye", "equidistant", 0),
        ("rational_polynomial", "rational_polynomial", 14),
    ],
)
def test_lens_models_by_their_many_names(name: str, model: str, count: int) -> None:
    camera = RawCamera(K, np.full(count, 1e-3), name, *SIZE)
    assert camera.model == model
    assert camera.D.size >= 4


def test_zero_padded_coefficients_are_those_of_the_shorter_model() -> None:
    assert RawCamera(K, np.array([0.1, 0.2, 0, 0, 0.3, 0, 0, 0]), "plumb_bob", *SIZE).D.size == 5


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"model": "omnidirectional"}, "not known"),
        ({"D": [0.1] * 8}, "plumb_bob takes 4 or 5"),
        ({"D": [np.nan] * 4}, "finite"),
        ({"K": [0, 199, 157, 122]}, "not calibrated"),
        ({"K": np.zeros((3, 3))}, "not calibrated"),
        ({"K": [1, 2, 3]}, "9 numbers"),
        ({"width": 0}, "positive"),
        ({"width": 1 << 20, "height": 1 << 20}, "megapixels"),
    ],
)
def test_impossible_lenses_are_refused(change: dict, sentence: str) -> None:
    arguments = {"K": K, "D": [0.1] * 4, "model": "plumb_bob", "width": 320, "height": 240} | change
    with pytest.raises(CalibrationError, match=sentence):
        RawCamera(**arguments)


def test_impossible_rigs_are_refused() -> None:
    pair = raw_pair("plumb_bob")
    other_size = RawCamera(K, np.zeros(4), "plumb_bob", 640, 480)
    fisheye = RawCamera(K, np.zeros(4), "equidistant", *SIZE)
    for arguments, sentence in (
        ((pair.right, pair.left, pair.R.T, -pair.R.T @ pair.T), "swapped"),
        ((pair.left, other_size, pair.R, pair.T), "different sizes"),
        ((pair.left, fisheye, pair.R, pair.T), "one kind"),
        ((pair.left, pair.right, 2 * pair.R, pair.T), "not a rotation"),
        ((pair.left, pair.right, -pair.R, pair.T), "not a rotation"),
        ((pair.left, pair.right, pair.R, np.zeros(2)), "T of 3"),
    ):
        with pytest.raises(CalibrationError, match=sentence):
            RawStereoCalibration(*arguments)
    for T in (np.zeros(3), np.array([0, -0.1, 0])):
        with pytest.raises(CalibrationError):
            StereoRectifier.from_calibration(RawStereoCalibration(pair.left, pair.right, pair.R, T))


def test_images_of_another_size_are_refused() -> None:
    rectifier = StereoRectifier.from_calibration(raw_pair("plumb_bob"))
    good, bad = np.zeros(SIZE[::-1], np.uint8), np.zeros((100, 100), np.uint8)
    with pytest.raises(ImageError, match="right image is 100x100"):
        rectifier.apply(good, bad)
