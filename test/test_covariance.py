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

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import chi2
from simulated_matches import CAMERA, triangulate

from macvo_ros.geometry.camera import rays
from macvo_ros.motion.covariance import ablated, depth_from_disparity, patch_disparity_variance, point_covariance


@pytest.mark.parametrize(
    ("u", "v", "depth", "pixel_sigma", "depth_sigma"),
    [(320, 320, 4.0, 0.5, 0.1), (40, 600, 8.0, 1.0, 0.8), (600, 100, 2.0, 3.0, 0.02), (500, 320, 20.0, 0.3, 2.5)],
)
def test_ellipsoid_of_90_percent_covers_90_percent(u, v, depth, pixel_sigma, depth_sigma):
    rng = np.random.default_rng(1)
    samples = 40_000
    pixel = np.array([u, v]) + pixel_sigma * rng.normal(size=(samples, 2))
    depths = depth + depth_sigma * rng.normal(size=samples)
    points = rays(CAMERA, pixel) * depths[:, None]
    center = np.array([[float(u), float(v)]])
    covariance = point_covariance(
        CAMERA, center, np.full((1, 2), pixel_sigma**2), np.array([depth]), np.array([depth_sigma**2])
    )[0]
    error = points - rays(CAMERA, center)[0] * depth
    inside = np.einsum("ni,ij,nj->n", error, np.linalg.inv(covariance), error) <= chi2(3).ppf(0.9)
    assert 0.88 <= inside.mean() <= 0.92
    np.testing.assert_allclose(covariance, np.cov(error.T), rtol=0.05, atol=0.02 * np.abs(covariance).max())


def test_covariance_from_disparity_noise_covers_90_percent():
    rng = np.random.default_rng(2)
    samples = 40_000
    pixel, disparity = np.array([[100.0, 500.0]]), np.array([10.0])
    sigma_pixel, sigma_disparity = np.array([[0.4, 0.6]]), np.array([0.3])
    _, covariance = triangulate(pixel, sigma_pixel**2, disparity, sigma_disparity**2)
    truth, _ = triangulate(pixel, sigma_pixel**2, disparity, sigma_disparity**2)
    points, _ = triangulate(
        pixel + sigma_pixel * rng.normal(size=(samples, 2)),
        np.zeros((samples, 2)),
        disparity + sigma_disparity * rng.normal(size=samples),
        np.zeros(samples),
    )
    error = points - truth
    inside = np.einsum("ni,ij,nj->n", error, np.linalg.inv(covariance[0]), error) <= chi2(3).ppf(0.9)
    assert 0.88 <= inside.mean() <= 0.92


def test_a_diagonal_covariance_does_not():
    """The off-diagonal terms matter: without them the ellipsoid misses its share off the optical axis."""
    rng = np.random.default_rng(3)
    pixel = np.array([[20.0, 40.0]])
    covariance = point_covariance(CAMERA, pixel, np.full((1, 2), 0.25), np.array([8.0]), np.array([0.64]))
    draws = rng.multivariate_normal(np.zeros(3), covariance[0], size=20_000)
    _, diagonal = ablated(covariance, covariance, "diagonal")
    inside = np.einsum("ni,ij,nj->n", draws, np.linalg.inv(diagonal[0]), draws) <= chi2(3).ppf(0.9)
    assert abs(inside.mean() - 0.9) > 0.02


def test_depth_variance_is_the_derivative():
    depth, variance = depth_from_disparity(CAMERA, np.array([10.0]), np.array([0.04]))
    step = 1e-5
    nearer, _ = depth_from_disparity(CAMERA, np.array([10.0 + step]), np.array([0.0]))
    assert depth[0] == pytest.approx(8.0)
    assert variance[0] == pytest.approx(((nearer[0] - depth[0]) / step) ** 2 * 0.04, rel=1e-4)


def test_zero_disparity_gives_a_finite_point():
    depth, variance = depth_from_disparity(CAMERA, np.zeros(1), np.ones(1))
    assert np.isfinite(depth).all()
    assert np.isfinite(variance).all()
    assert variance[0] > 1e6


@pytest.mark.parametrize("sigma", [0.1, 0.5, 2.0])
def test_patch_variance_on_a_slanted_plane_is_gradient_times_sigma(sigma):
    u = np.arange(640)[None].repeat(640, axis=0)
    depth = 4.0 + 0.01 * (u - 320)
    disparity = torch.from_numpy((CAMERA.fx * CAMERA.baseline / depth).astype(np.float32))
    pixel = np.array([[320.3, 200.7]])
    got = patch_disparity_variance(disparity, pixel, np.full((1, 2), sigma**2), patch=32)
    # The grid ends at 2.5 sigma, which cuts a few percent off a Gaussian's variance.
    gradient = 0.01 * CAMERA.fx * CAMERA.baseline / 4.0**2
    assert got[0] == pytest.approx((gradient * sigma) ** 2, rel=0.1)


def test_patch_variance_grows_at_an_edge_and_nowhere_else():
    depth = np.full((640, 640), 2.0)
    depth[:, 320:] = 6.0
    disparity = torch.from_numpy((CAMERA.fx * CAMERA.baseline / depth).astype(np.float32))
    at = np.array([[319.5, 300.0], [100.0, 300.0]])
    edge, flat = patch_disparity_variance(disparity, at, np.full((2, 2), 1.0), patch=32)
    coin = (CAMERA.fx * CAMERA.baseline * (1 / 2.0 - 1 / 6.0) / 2) ** 2  # half the matches on either side
    assert 0.75 * coin < edge < 1.12 * coin
    assert flat == pytest.approx(0.0, abs=1e-9)


def test_ablations():
    covariance = point_covariance(
        CAMERA, np.array([[100.0, 200.0]]), np.full((1, 2), 0.5), np.array([5.0]), np.array([0.1])
    )
    for each in ablated(covariance, covariance, "identity"):
        np.testing.assert_array_equal(each[0], np.eye(3))
    _, scaled = ablated(covariance, covariance, "scale_agnostic")
    assert np.linalg.det(scaled[0]) == pytest.approx(1.0)
    _, diagonal = ablated(covariance, covariance, "diagonal")
    np.testing.assert_array_equal(diagonal[0], np.diag(np.diag(covariance[0])))
