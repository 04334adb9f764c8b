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

"""Sub-pixel refinement on scenes whose displacement is known everywhere."""

from __future__ import annotations

import numpy as np
import pytest

import macvo_ros.matching.patch_fit as patch_fit
import macvo_ros.matching.patch_model as patch_model
import macvo_ros.matching.patch_refinement as patch_refinement
from macvo_ros.images.frame import smoothed
from macvo_ros.matching.patch_refinement import refine_matches

SIZE = 240
SLANT = np.array([[0.06, -0.03], [0.02, 0.05]])
"""Change of the displacement (u, v) along u and v: a slanted surface."""
SHIFT = np.array([3.3, -1.6])


def waves(u: np.ndarray, v: np.ndarray, blur: float = 0.0) -> np.ndarray:
    """Of a sensor that blurs with a Gaussian kernel of variance `blur`, pixels^2."""
    rng = np.random.default_rng(5)
    value = np.full(u.shape, 120.0)
    for _ in range(60):
        a, b, phase = *rng.normal(0, 0.35, 2), rng.uniform(0, 6.28)
        value += np.exp(-0.5 * blur * (a * a + b * b)) * rng.uniform(4, 9) * np.sin(a * u + b * v + phase)
    return value


def slanted_pair(slant: np.ndarray, shift: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Source, target and (H, W, 2) true displacement shift + slant x."""
    v, u = np.mgrid[:SIZE, :SIZE].astype(np.float64)
    x = np.stack((u, v), axis=-1)
    back = (x - shift) @ np.linalg.inv(np.eye(2) + slant).T  # where the pixels of the target come from
    source, target = waves(u, v), waves(back[..., 0], back[..., 1])
    return source.round().astype(np.float32), target.round().astype(np.float32), shift + x @ slant.T


def rough(truth: np.ndarray, sigma: float) -> np.ndarray:
    """A dense match with errors of its own in every pixel."""
    return (truth + np.random.default_rng(6).normal(0, sigma, truth.shape)).astype(np.float32)


@pytest.fixture(params=["as installed", "OpenCV 4"])
def any_opencv(request, monkeypatch):
    if request.param == "OpenCV 4":
        monkeypatch.setattr(patch_fit, "_remap_is_exact", lambda: False)


@pytest.mark.parametrize(("radius", "stride"), [(7, 1), (12, 2)])
def test_a_slanted_surface_is_refined_without_bias(radius, stride, any_opencv):
    source, target, truth = slanted_pair(SLANT, SHIFT)
    pixel = np.random.default_rng(7).uniform(50, 170, (150, 2))  # between pixels, too
    got = refine_matches(source, target, rough(truth, 0.2), pixel, axes=2, radius=radius, stride=stride)
    assert got.ok.mean() > 0.95
    error = (got.displacement - (SHIFT + pixel @ SLANT.T))[got.ok]
    assert np.abs(np.median(error, axis=0)).max() < 0.01
    assert np.sqrt((error**2).mean()) < 0.08  # the dense match is off by 0.2
    assert np.median(got.likeness) > 0.95


@pytest.mark.parametrize("native", [True, False])
def test_a_view_that_is_less_sharp_is_not_shifted(native, monkeypatch):
    if not native:
        monkeypatch.setattr(patch_fit, "kernels", lambda: None)
        monkeypatch.setattr(patch_model, "kernels", lambda: None)
    v, u = np.mgrid[:SIZE, :SIZE].astype(np.float64)
    shift = np.array([0.3, -0.4])
    views = waves(u, v), waves(u - shift[0], v - shift[1], blur=0.4)
    source, target = (smoothed(view.round().astype(np.uint8)) for view in views)
    dense = np.tile(shift.astype(np.float32), (SIZE, SIZE, 1))
    pixel = np.random.default_rng(8).uniform(50, 170, (300, 2))

    def rms() -> float:
        got = refine_matches(source, target, dense, pixel, axes=2, radius=6, stride=3)
        return float(np.sqrt(((got.displacement - shift) ** 2).mean()))

    with_blur = rms()
    monkeypatch.setattr(patch_model, "_BLUR", 1e-4)  # views are taken for equally sharp
    assert with_blur < 0.6 * rms()
    assert with_blur < 0.03


def test_stereo_moves_along_rows_only(any_opencv):
    slant = np.array([[0.05, 0.04], [0.0, 0.0]])
    source, target, truth = slanted_pair(slant, np.array([-6.4, 0.0]))
    pixel = np.random.default_rng(8).uniform(50, 170, (150, 2))
    got = refine_matches(source, target, rough(truth, 0.15)[..., :1], pixel, axes=1, radius=12, stride=2)
    error = (got.displacement[:, 0] - (-6.4 + pixel @ slant[0]))[got.ok]
    assert got.displacement.shape == (150, 1)
    assert abs(np.median(error)) < 0.01
    assert np.sqrt((error**2).mean()) < 0.06


def test_what_lies_far_from_the_dense_match_is_not_taken():
    source, target, truth = slanted_pair(np.zeros((2, 2)), SHIFT)
    pixel = np.random.default_rng(9).uniform(50, 170, (100, 2))
    wrong = (truth + 4.0).astype(np.float32)
    got = refine_matches(source, target, wrong, pixel, axes=2)
    np.testing.assert_allclose(got.displacement[~got.ok], np.tile(SHIFT + 4.0, ((~got.ok).sum(), 1)), atol=1e-4)
    assert got.ok.mean() < 0.1


def test_keypoints_at_the_border_are_answered_for():
    source, target, truth = slanted_pair(np.zeros((2, 2)), np.array([0.4, 0.2]))
    corners = np.array([[0.0, 0.0], [SIZE - 1.0, 0.0], [0.3, SIZE - 1.2], [SIZE - 1.0, SIZE - 1.0]])
    got = refine_matches(source, target, truth.astype(np.float32), corners, axes=2)
    assert np.isfinite(got.displacement).all()
    assert np.isfinite(got.patch_var).all()


def test_a_match_whose_patch_leaves_the_other_image_stays_that_of_the_dense_match():
    source, target, truth = slanted_pair(np.zeros((2, 2)), np.array([-30.4, 0.0]))
    pixel = np.column_stack((np.arange(32.0, 50.0), np.full(18, 100.0)))  # 2 to 19 pixels from the target's edge
    dense = rough(truth, 0.2)[..., :1]
    got = refine_matches(source, target, dense, pixel, axes=1, radius=10, stride=2)
    assert np.array_equal(got.ok, pixel[:, 0] - 30.4 >= 10.6)
    np.testing.assert_allclose(got.displacement[~got.ok], dense[100, 32:50][~got.ok], atol=1e-5)


@pytest.mark.parametrize("native", [True, False])
def test_no_points_have_no_planes(native, monkeypatch):
    if not native:
        monkeypatch.setattr(patch_refinement, "kernels", lambda: None)
    none = np.empty((0, 2), np.int64)
    value, slope, bend = patch_refinement.fitted_plane(np.zeros((60, 80, 1), np.float32), none, np.ones(2))
    assert (value.shape, slope.shape, bend.shape) == ((0, 1), (0, 1, 2), (0,))


def test_bend_tells_a_surface_from_a_step_in_depth():
    source, target, truth = slanted_pair(SLANT, SHIFT)
    pixel = np.random.default_rng(10).uniform(60, 160, (50, 2))
    assert refine_matches(source, target, truth.astype(np.float32), pixel, axes=2).bend.max() < 1e-3
    step = truth + 2.0 * (np.arange(SIZE) > 110)[None, :, None]
    at_step = np.column_stack((np.full(50, 110.0), pixel[:, 1]))
    assert refine_matches(source, target, step.astype(np.float32), at_step, axes=2).bend.min() > 0.5


def test_slopes_of_the_dense_match_need_not_be_right():
    """A dense match without any slope: its plane is found with the shift, and does not bias it."""
    source, target, truth = slanted_pair(SLANT, SHIFT)
    pixel = np.random.default_rng(11).uniform(50, 170, (200, 2))
    flat = np.empty_like(truth, dtype=np.float32)
    errors = []
    for place in pixel:
        flat[...] = SHIFT + SLANT @ place
        found = refine_matches(source, target, flat, place[None], axes=2, radius=12, stride=2)
        errors.append(np.abs(found.displacement[0] - (SHIFT + SLANT @ place)))
    assert np.median(errors) < 0.02


def test_a_dense_match_of_smaller_images_leads_to_the_same_place():
    source, target, truth = slanted_pair(SLANT, SHIFT)
    pixel = np.random.default_rng(12).uniform(50, 170, (200, 2))
    half = (truth[::2, ::2] + SLANT @ (0.5, 0.5)) / 2  # at the centres of pixels twice as large
    found = refine_matches(source, target, half.astype(np.float32), pixel, axes=2, radius=12, stride=2)
    np.testing.assert_allclose(found.displacement, SHIFT + pixel @ SLANT.T, atol=0.1)


@pytest.mark.parametrize(("contrast", "sigma"), [(1.0, 0.04), (0.1, 0.5), (0.05, 1.0)])
def test_noise_is_no_texture(contrast, sigma):
    """Where noise hides the texture, a patch stays where it was looked for, and its variance says so."""
    source, target, truth = slanted_pair(np.zeros((2, 2)), SHIFT)
    rng = np.random.default_rng(13)
    pair = [smoothed((contrast * grey + rng.normal(0, 6, grey.shape)).astype(np.float32)) for grey in (source, target)]
    pixel = rng.uniform(50, 170, (400, 2))
    got = refine_matches(*pair, (truth + np.array([0.8, -0.8])).astype(np.float32), pixel, axes=2, radius=12, stride=3)
    np.testing.assert_allclose(np.median(np.sqrt(got.patch_var)), sigma, rtol=0.2)
    # 1.06, 4.8 and 5.8 with the gradients of noise taken for texture.
    assert 0.5 < np.mean((got.displacement - SHIFT) ** 2 / got.patch_var) < 1.8
