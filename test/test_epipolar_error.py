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

"""How far stereo matches leave their rows: images shifted by a known amount, and images that tell nothing."""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt
import pytest

from macvo_ros.matching.epipolar_error import check_rows, dense_epipolar_variance
from macvo_ros.matching.stereo_search import RowMatch, search_rows

Image = npt.NDArray[np.uint8]

HEIGHT, WIDTH = 200, 320
DISPARITY = 11.3


def pair(shift: float, noise: float = 1.0) -> tuple[Image, Image]:
    """Left and right image of a textured wall; the right one shows it `shift` pixels lower."""
    rng = np.random.default_rng(1)
    spots = cv2.GaussianBlur(rng.normal(0, 1, (HEIGHT + 80, WIDTH + 80)).astype(np.float32), (0, 0), 1.6)
    wall = np.clip(128 + 200 * spots, 0, 255).astype(np.float32)
    v, u = np.mgrid[:HEIGHT, :WIDTH].astype(np.float32) + np.float32(40)
    images = (
        cv2.remap(wall, u, v, cv2.INTER_CUBIC),
        cv2.remap(wall, u + np.float32(DISPARITY), v - np.float32(shift), cv2.INTER_CUBIC),
    )
    left, right = (np.clip(i + rng.normal(0, noise, i.shape), 0, 255).round().astype(np.uint8) for i in images)
    return left, right


def searched(left: Image, right: Image) -> RowMatch:
    return search_rows(left, right, -2.0, 40.0)


@pytest.mark.parametrize("shift", [0.0, 0.5, -0.5, 1.5, 2.0])
def test_a_shift_of_the_right_image_is_measured(shift: float) -> None:
    left, right = pair(shift)
    match = searched(left, right)
    assert np.sqrt(check_rows(left, right, match).epipolar_var) == pytest.approx(abs(shift), abs=0.1)
    assert np.sqrt(check_rows(left, right, match, 2.0).epipolar_var) == pytest.approx(2 * abs(shift), abs=0.2)


@pytest.mark.parametrize("shift", [0.25, -0.25, 0.5])
def test_part_of_a_pixel_is_not_taken_for_more_in_sharp_images(shift: float) -> None:
    """Pixels that are means over their area of a fine texture: read between them, it seems to lie farther off."""
    rng = np.random.default_rng(4)
    fine = 8
    spots = cv2.GaussianBlur(rng.normal(0, 1, (fine * 140, fine * 260)).astype(np.float32), (0, 0), 0.5 * fine)
    wall = np.clip(128 + 40 * spots / spots.std(), 0, 255)
    rows = fine * 10 + np.array([0, -round(shift * fine)])
    left, right = (
        cv2.resize(wall[row : row + fine * 120, column : column + fine * 220], (220, 120), interpolation=cv2.INTER_AREA)
        .round()
        .astype(np.uint8)
        for row, column in zip(rows, (fine * 10, fine * 18), strict=True)
    )
    match = RowMatch(np.full(left.shape, 8, np.float32), np.ones(left.shape, bool))
    corners = check_rows(left, right, match).corners
    assert corners is not None
    assert len(corners) > 50
    assert np.median(corners[:, 3]) == pytest.approx(shift, abs=0.03)


def test_noise_alone_is_no_error_of_the_calibration() -> None:
    left, right = pair(0.0, noise=4.0)
    assert check_rows(left, right, searched(left, right)).epipolar_var < 0.03**2


def test_a_rotation_about_the_axis_counts_by_its_mean_square() -> None:
    left, right = pair(0.0)
    roll = 0.01
    turn = np.array([[1, 0, 0], [roll, 1, -roll * (WIDTH - 1) / 2]], np.float32)
    right = np.asarray(cv2.warpAffine(right, turn, (WIDTH, HEIGHT), borderMode=cv2.BORDER_REPLICATE))
    # Uniform over the image, a linear offset has a variance of a twelfth of its range, squared.
    expected = roll * WIDTH / np.sqrt(12)
    assert np.sqrt(check_rows(left, right, searched(left, right)).epipolar_var) == pytest.approx(expected, rel=0.15)


def test_images_without_texture_or_without_relation_say_nothing() -> None:
    rng = np.random.default_rng(2)
    flat = np.full((HEIGHT, WIDTH), 120, np.uint8)
    assert check_rows(flat, flat, searched(flat, flat)).epipolar_var == 0.0
    grainy = [np.clip(flat + rng.normal(0, 1.5, flat.shape), 0, 255).astype(np.uint8) for _ in range(2)]
    assert check_rows(grainy[0], grainy[1], searched(grainy[0], grainy[1])).epipolar_var == 0.0
    left, right = pair(1.5)
    nowhere = RowMatch(np.full((HEIGHT, WIDTH), DISPARITY, np.float32), np.zeros((HEIGHT, WIDTH), bool))
    assert check_rows(left, right, nowhere).epipolar_var == 0.0


def test_wrong_matches_are_left_out() -> None:
    left, right = pair(0.0)
    wrong = RowMatch(np.full((HEIGHT, WIDTH), DISPARITY + 9, np.float32), np.ones((HEIGHT, WIDTH), bool))
    assert check_rows(left, right, wrong).epipolar_var == 0.0


def test_a_part_of_the_image_that_matches_by_chance_does_not_set_the_figure() -> None:
    left, right = pair(0.5)
    rng = np.random.default_rng(3)
    other = cv2.GaussianBlur(rng.normal(0, 1, (HEIGHT, WIDTH // 4)).astype(np.float32), (0, 0), 1.6)
    right = right.copy()
    right[:, WIDTH // 2 : WIDTH // 2 + WIDTH // 4] = np.clip(128 + 200 * other, 0, 255).astype(np.uint8)
    assert np.sqrt(check_rows(left, right, searched(left, right)).epipolar_var) == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize("size", [(33, 21), (8, 8), (1, 1), (64, 14), (15, 200)])
def test_images_too_small_for_a_measurement_give_none(size: tuple[int, int]) -> None:
    columns, rows = size
    left, right = pair(1.5)
    left, right = left[:rows, :columns].copy(), right[:rows, :columns].copy()
    assert check_rows(left, right, searched(left, right)).epipolar_var == 0.0


@pytest.mark.parametrize("offset", [0.0, 0.3])
def test_dense_matches_show_the_offset_and_not_the_noise(offset: float) -> None:
    rng = np.random.default_rng(31)
    vertical = (offset + 0.05 * rng.normal(size=(480, 640))).astype(np.float32)
    vertical[:, 500:] += 5.0  # an occluded side that the variance knows about
    variance = np.full((480, 640), 0.0025, np.float32)
    variance[:, 500:] = 25.0
    assert dense_epipolar_variance(vertical, variance) == pytest.approx(offset**2, abs=1e-3)


def test_dense_matches_of_a_tiny_image_say_nothing() -> None:
    assert dense_epipolar_variance(np.ones((8, 8), np.float32), np.ones((8, 8), np.float32)) == 0.0


@pytest.mark.parametrize("gain", [0.6, 1.5])
def test_cameras_that_expose_differently_are_no_error_of_the_calibration(gain: float) -> None:
    left, right = pair(0.0)
    # Brightness that falls along the columns makes every displacement that brightness alone causes vertical.
    light = np.linspace(0.3, 0.7, HEIGHT)[:, None]
    left, right = (np.clip(40 + light * each, 0, 255).astype(np.uint8) for each in (left, right))
    match = searched(left, right)
    other = np.clip(gain * right.astype(np.float32) + 10, 0, 255).round().astype(np.uint8)
    alike, found = check_rows(left, right, match), check_rows(left, other, match)
    assert np.sqrt(found.epipolar_var) < 0.1
    assert alike.corners is not None
    assert found.corners is not None
    assert len(found.corners) > 0.8 * len(alike.corners)
