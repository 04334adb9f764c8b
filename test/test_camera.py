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

"""The rectified stereo camera: projection matrices, resizing, cropping, and what is refused."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from macvo_ros.errors import CalibrationError
from macvo_ros.geometry.camera import StereoCamera

CAMERA = StereoCamera(fx=310.0, fy=305.0, cx=161.3, cy=118.7, baseline=0.12, width=320, height=240, cx_right=158.1)


def project(camera: StereoCamera, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Left and right pixels of (N, 3) points in the left optical frame."""
    pixels = []
    for P in (camera.P_left, camera.P_right):
        image = np.column_stack([points, np.ones(len(points))]) @ P.T
        pixels.append(image[:, :2] / image[:, 2:])
    return pixels[0], pixels[1]


def random_points(seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.uniform([-1, -1, 2], [1, 1, 9], (50, 3))


def test_projection_matrices_round_trip() -> None:
    camera = StereoCamera.from_projection(CAMERA.P_left, CAMERA.P_right.ravel(), 320, 240)
    assert vars(camera) == pytest.approx(vars(CAMERA))


def test_camera_info_baseline_counts_the_left_offset() -> None:
    P_left = [700.0, 0, 320, 31.5, 0, 700, 240, 0, 0, 0, 1, 0]
    P_right = [700.0, 0, 320, -52.5, 0, 700, 240, 0, 0, 0, 1, 0]
    camera = StereoCamera.from_projection(P_left, P_right, 640, 480)
    assert camera.baseline == pytest.approx((31.5 + 52.5) / 700)
    assert camera.cx_right is None


def test_kitti_colour_baseline_is_the_distance_along_x() -> None:
    """Camera centres are -K^-1 p4; with P[11] != 0 the short formula is off by a millimetre."""
    P2 = np.array([[718.856, 0, 607.1928, 45.38225], [0, 718.856, 185.2157, -0.1130887], [0, 0, 1, 0.003779761]])
    P3 = np.array([[718.856, 0, 607.1928, -337.2877], [0, 718.856, 185.2157, 2.369057], [0, 0, 1, 0.004915215]])
    centres = [-np.linalg.inv(P[:, :3]) @ P[:, 3] for P in (P2, P3)]
    camera = StereoCamera.from_projection(P2, P3, 1241, 376)
    assert camera.baseline == pytest.approx(centres[1][0] - centres[0][0], abs=1e-9)
    assert camera.baseline == pytest.approx((P2[0, 3] - P3[0, 3]) / 718.856, abs=1.5e-3)


def test_depth_inverts_projection_with_shifted_principal_points() -> None:
    points = random_points()
    left, right = project(CAMERA, points)
    disparity = left[:, 0] - right[:, 0]
    np.testing.assert_allclose(CAMERA.depth(disparity), points[:, 2])
    np.testing.assert_allclose(CAMERA.disparity(points[:, 2]), disparity)


def test_depth_at_and_beyond_infinity_is_infinite_not_negative() -> None:
    depth = CAMERA.depth([CAMERA.disparity_offset, CAMERA.disparity_offset - 3, np.nan])
    assert np.isinf(depth[:2]).all()
    assert (depth[:2] > 0).all()
    assert np.isnan(depth[2])


@pytest.mark.parametrize("size", [(160, 120), (640, 480), (213, 97)])
def test_resized_camera_sees_what_cv2_resize_shows(size: tuple[int, int]) -> None:
    """A blob drawn where a point projects is found where the resized camera projects it."""
    point = np.array([[0.21, -0.13, 2.0]])
    (u, v), *_ = project(CAMERA, point)[0]
    y, x = np.mgrid[:240, :320]
    blob = np.exp(-((x - u) ** 2 + (y - v) ** 2) / (2 * 12.0**2)).astype(np.float32)
    small = cv2.resize(blob, size, interpolation=cv2.INTER_AREA if size[0] < 320 else cv2.INTER_LINEAR)
    ys, xs = np.mgrid[: size[1], : size[0]]
    centre = np.array([(xs * small).sum(), (ys * small).sum()]) / small.sum()
    resized = CAMERA.resized(*size)
    np.testing.assert_allclose(centre, project(resized, point)[0][0], atol=0.02)
    assert (resized.width, resized.height) == size


def test_resize_and_crop_keep_depth() -> None:
    points = random_points(1)
    camera = CAMERA.resized(480, 360).cropped(31, 17, 200, 150)
    left, right = project(camera, points)
    np.testing.assert_allclose(camera.depth(left[:, 0] - right[:, 0]), points[:, 2])
    np.testing.assert_allclose(
        project(CAMERA.cropped(31, 17, 200, 150), points)[0], project(CAMERA, points)[0] - (31, 17)
    )


@pytest.mark.parametrize("crop", [(-1, 0, 10, 10), (0, 0, 321, 10), (311, 0, 10, 10), (0, 0, 0, 10), (0, 239, 5, 2)])
def test_crop_outside_is_refused(crop: tuple[int, int, int, int]) -> None:
    with pytest.raises(CalibrationError, match="crop"):
        CAMERA.cropped(*crop)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({(0, 0, 0): 0.0}, "fx = 0"),
        ({(1, 0, 0): 0.0}, "right.*fx = 0"),
        ({(0, 1, 1): -5.0}, "fy = -5"),
        ({(1, 0, 3): 0.0}, "baseline must be a positive"),
        ({(1, 0, 3): 40.0}, "swapped"),
        ({(0, 0, 2): np.nan}, "not finite"),
        ({(1, 0, 3): np.inf}, "not finite"),
        ({(1, 1, 2): 130.0}, "cy .*not rectified"),
        ({(1, 0, 0): 320.0}, "fx .*not rectified"),
        ({(1, 0, 3): 0.0, (1, 1, 3): -36.0}, "horizontal"),
        ({(0, 1, 0): 3.0}, "row-major"),
        ({(0, 2, 2): 0.0}, "row-major"),
        ({(0, 0, 0): 1e12, (1, 0, 0): 1e12, (0, 2, 2): 0.0}, "row-major"),  # however long the focal length
        ({(0, 0, 0): 1e-320, (1, 0, 0): 1e-320, (1, 0, 3): -1e300}, "inverted|not finite|positive"),
    ],
)
def test_impossible_projections_are_refused_with_a_sentence(change: dict, sentence: str) -> None:
    P = np.stack([CAMERA.P_left, CAMERA.P_right])
    for at, value in change.items():
        P[at] = value
    with pytest.raises(CalibrationError, match=sentence):
        StereoCamera.from_projection(P[0], P[1], 320, 240)


@pytest.mark.parametrize("P", [[1, 2, 3], "text", None, [["a"] * 4] * 3, np.zeros((4, 4)), [[1, 2], [3]]])
def test_projection_of_the_wrong_kind_is_refused(P: object) -> None:
    with pytest.raises(CalibrationError):
        StereoCamera.from_projection(P, CAMERA.P_right, 320, 240)  # type: ignore[arg-type]


@pytest.mark.parametrize("change", [{"width": 0}, {"height": -1}, {"fx": np.nan}, {"cx": np.inf}, {"cx_right": np.nan}])
def test_impossible_cameras_are_refused(change: dict) -> None:
    arguments = {"fx": 1.0, "fy": 1.0, "cx": 0.0, "cy": 0.0, "baseline": 1.0, "width": 4, "height": 3} | change
    with pytest.raises(CalibrationError):
        StereoCamera(**arguments)


@settings(deadline=None, derandomize=True)
@given(st.lists(st.floats() | st.sampled_from([0.0, 1.0, 500.0, -60.0, 1e308]), min_size=24, max_size=24))
def test_any_24_numbers_make_a_camera_or_a_calibration_error(numbers: list[float]) -> None:
    try:
        camera = StereoCamera.from_projection(numbers[:12], numbers[12:], 640, 480)
    except CalibrationError:
        return
    assert camera.fx > 0
    assert camera.baseline > 0
