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

"""Search along the rows: synthetic pairs whose disparity is known, and images that hold nothing to match."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.matching.stereo_search import RowMatch, disparity_range, search_rows

Float64 = npt.NDArray[np.float64]
Image = npt.NDArray[np.uint8]
Texture = Callable[[Float64, Float64], Float64]

HEIGHT, WIDTH = 120, 200
V, U = np.mgrid[:HEIGHT, :WIDTH].astype(np.float64)
CAMERA = StereoCamera(fx=200.0, fy=200.0, cx=99.5, cy=59.5, baseline=0.1, width=WIDTH, height=HEIGHT)


def texture(seed: int) -> Texture:
    """Brightness, grey levels, at any place (u, v): waves of 6 to 60 pixels."""
    rng = np.random.default_rng(seed)
    number = 2 * np.pi / np.exp(rng.uniform(np.log(6), np.log(60), 60))
    angle, phase = rng.uniform(0, 2 * np.pi, (2, 60))

    def brightness(u: Float64, v: Float64) -> Float64:
        waves = [np.sin(k * (np.cos(a) * u + np.sin(a) * v) + p) for k, a, p in zip(number, angle, phase, strict=True)]
        return np.asarray(128 + 6 * np.sum(waves, axis=0))

    return brightness


def image(brightness: Float64, seed: int) -> Image:
    """As a camera with a noise of one grey level would show it."""
    noise = np.random.default_rng(seed).normal(0, 1, brightness.shape)
    return np.asarray(np.clip(brightness + noise, 0, 255).round(), dtype=np.uint8)


def plane(disparity: float, slope: float = 0.0) -> tuple[Image, Image, Float64]:
    """Left and right image of a plane with disparity + slope * u, and that."""
    wall = texture(1)
    source = (U + disparity) / (1 - slope)  # column of the left image that a column of the right one shows
    return image(wall(U, V), 2), image(wall(source, V), 3), disparity + slope * U


def errors(match: RowMatch, truth: Float64, where: npt.NDArray[np.bool_]) -> Float64:
    return np.asarray(np.abs(match.disparity - truth)[where])


@pytest.mark.parametrize(("disparity", "slope"), [(7.0, 0.0), (12.37, 0.0), (3.6, 0.08), (30.0, -0.1)])
def test_planes_are_found_to_a_fraction_of_a_pixel(disparity: float, slope: float) -> None:
    left, right, truth = plane(disparity, slope)
    match = search_rows(left, right, -2.0, 80.0)
    inside = (U - truth > 3) & (U - truth < WIDTH - 4)
    assert match.confirmed[inside].mean() > 0.97
    assert np.median(errors(match, truth, inside)) < 0.08
    assert np.mean(errors(match, truth, inside) > 0.5) < 0.01


def test_what_is_hidden_behind_an_edge_is_known_and_gets_the_disparity_of_the_background() -> None:
    near, far, begin, end = 26.0, 8.0, 90, 140
    wall, box = texture(1), texture(4)
    on_box = np.isin(U, np.arange(begin, end))
    left = image(np.where(on_box, box(U, V), wall(U, V)), 2)
    right_box = np.isin(U + near, np.arange(begin, end))
    right = image(np.where(right_box, box(U + near, V), wall(U + far, V)), 3)
    match = search_rows(left, right, -2.0, 80.0)
    truth = np.where(on_box, near, far)
    hidden = np.isin(U, np.arange(begin - (near - far), begin))
    seen = ~hidden & (U - truth >= 2)
    assert np.mean(errors(match, truth, seen) > 1) < 0.04
    assert match.confirmed[seen].mean() > 0.93
    assert match.confirmed[hidden].mean() < 0.15
    assert np.median(errors(match, truth, hidden)) < 1.5


def test_a_disparity_of_a_third_of_the_width_leaves_the_left_strip_unconfirmed() -> None:
    left, right, truth = plane(0.35 * WIDTH)
    match = search_rows(left, right, *disparity_range(CAMERA, min_depth=0.0))
    beyond = U - truth < -1
    assert match.confirmed[beyond].mean() < 0.05
    assert match.confirmed[U - truth > 2].mean() > 0.95
    assert np.median(errors(match, truth, ~beyond)) < 0.1
    assert np.median(errors(match, truth, beyond)) < 1.0  # filled from its neighbours


def test_the_range_is_a_share_of_the_width_or_what_the_least_depth_allows() -> None:
    _, widest = disparity_range(CAMERA, min_depth=0.0)
    assert 0.35 * WIDTH < widest < 0.5 * WIDTH
    _, narrow = disparity_range(CAMERA, min_depth=0.5)
    assert narrow == pytest.approx(200.0 * 0.1 / 0.5)
    assert disparity_range(CAMERA, min_depth=1e-3)[1] < WIDTH  # beyond that the images share nothing
    lowest, highest = disparity_range(CAMERA, min_depth=100.0)
    assert lowest < 0 < 8 < highest


def test_a_wall_nearer_than_the_range_is_not_found_and_does_no_harm() -> None:
    left, right, _ = plane(60.0)
    match = search_rows(left, right, -2.0, 16.0)
    assert np.isfinite(match.disparity).all()
    assert match.disparity.max() < 40


@pytest.mark.parametrize("offset", [-30.0, 24.0])
def test_cameras_with_shifted_centres_are_searched_around_their_infinity(offset: float) -> None:
    camera = StereoCamera(200.0, 200.0, 99.5, 59.5, 0.1, WIDTH, HEIGHT, cx_right=99.5 - offset)
    left, right, truth = plane(offset + 4.5)
    lowest, highest = disparity_range(camera, min_depth=0.5)
    assert lowest < offset
    assert highest == pytest.approx(offset + 40.0)
    match = search_rows(left, right, lowest, highest)
    inside = (U - truth > 2) & (U - truth < WIDTH - 3)
    assert match.confirmed[inside].mean() > 0.95
    assert np.median(errors(match, truth, inside)) < 0.1
    outside = (U - truth < -1) | (U - truth > WIDTH)
    assert outside.any()
    assert match.confirmed[outside].mean() < 0.05
    assert np.median(errors(match, truth, outside)) < 1.0


@pytest.mark.parametrize("size", [(33, 21), (8, 8), (15, 40), (12, 200), (100, 1), (2, 3), (1, 1)])
@pytest.mark.parametrize("kind", ["uniform", "noise", "opposite"])
def test_every_size_and_content_has_finite_disparities(size: tuple[int, int], kind: str) -> None:
    columns, rows = size
    noise = np.random.default_rng(5).integers(0, 256, (2, rows, columns)).astype(np.uint8)
    flat = np.zeros((rows, columns), np.uint8)
    left, right = {"uniform": (flat + 90, flat + 90), "noise": (noise[0], noise[1]), "opposite": (flat, ~flat)}[kind]
    camera = StereoCamera(20.0, 20.0, columns / 2, rows / 2, 0.1, columns, rows)
    for lowest, highest in (disparity_range(camera, 0.0), (-1.0, 8.0), (-20.5, -3.0), (30.0, 50.0)):
        match = search_rows(left, right, lowest, highest)
        assert match.disparity.shape == match.confirmed.shape == (rows, columns)
        assert match.disparity.dtype == np.float32
        assert np.isfinite(match.disparity).all()
