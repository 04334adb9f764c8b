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
from simulated_matches import CAMERA, motion_error, project, random_motion, simulate, triangulate

from macvo_ros.geometry.camera import rays
from macvo_ros.geometry.se3 import exp_so3, inverse, transform
from macvo_ros.motion.point_pairs import PointPairs
from macvo_ros.motion.pose_solver import solve_pose
from macvo_ros.settings.config import PoseConfig
from macvo_ros.uncertainty.error_correlation import (
    DisparitySensitivity,
    ErrorCorrelation,
    error_sources,
    shared_frame_covariance,
)
from macvo_ros.uncertainty.relative_motion import RelativeMotion
from macvo_ros.uncertainty.trajectory import (
    PoseWithCovariance,
    between,
    block_rotation,
    extend,
    symmetric_positive,
    to_base,
)

START = PoseWithCovariance(np.eye(4), np.zeros((6, 6)))
MOUNT = transform(exp_so3(np.array([-1.2, 1.1, -1.0])), np.array([0.3, -0.1, 0.5]))


def disturbed(motion: np.ndarray, error: np.ndarray) -> np.ndarray:
    """The truth whose estimate is `motion` with this error."""
    return transform(exp_so3(error[3:]) @ motion[:3, :3], motion[:3, 3] + error[:3])


def random_covariance(rng: np.random.Generator) -> np.ndarray:
    root = rng.normal(size=(6, 6)) * np.array([0.01] * 3 + [0.004] * 3)[:, None]
    return root @ root.T


def test_propagated_nees_is_six_after_100_steps():
    """Noise drawn from each step's covariance, chained 100 times, in the axes and at the lever arm of a base frame."""
    rng = np.random.default_rng(20)
    motions = [random_motion(rng) for _ in range(100)]
    covariances = [0.01 * random_covariance(rng) for _ in motions]
    roots = [np.linalg.cholesky(c) for c in covariances]
    place = START
    for motion, covariance in zip(motions, covariances, strict=True):
        place = extend(place, to_base(RelativeMotion(motion, covariance), MOUNT))
    nees = []
    for _ in range(2000):
        truth = np.eye(4)
        for motion, root in zip(motions, roots, strict=True):
            truth = truth @ MOUNT @ disturbed(motion, root @ rng.normal(size=6)) @ inverse(MOUNT)
        error = motion_error(truth, place.pose)
        nees.append(error @ np.linalg.solve(place.covariance, error))
    assert 5.7 <= np.mean(nees) <= 6.3


def test_steps_that_share_a_frame_are_not_independent():
    """Consecutive motions share a frame's disparity errors: with the cross term the pose's NEES is 6, without it not.

    Landmarks seen in every frame with one disparity each, as when a keypoint is matched into a frame and selected
    again in it: 100 steps of a real solve.
    """
    rng = np.random.default_rng(21)
    full, naive = [], []
    same = ErrorCorrelation(share=1.0, length=1e-6)  # the same pixel has the same error, others are independent
    for _ in range(60):
        place, independent, truth = START, START, np.eye(4)
        points = rays(CAMERA, rng.uniform(100, 540, (60, 2))) * rng.uniform(3, 8, (60, 1))
        pixel, disparity = project(points)
        sigma, flow_sigma = 0.1, 2.0  # poor matches, so that depths decide
        measured = disparity + sigma * rng.normal(size=60)
        arrival = None
        for step in range(100):
            motion = transform(
                exp_so3(0.01 * np.sin(0.1 * step + np.arange(3))), 0.02 * np.cos(0.15 * step + np.arange(3.0))
            )
            points = (points - motion[:3, 3]) @ motion[:3, :3]
            next_pixel, next_disparity = project(points)
            next_measured = next_disparity + sigma * rng.normal(size=60)
            # The match is drawn around the true position; the next step starts at the true pixel again.
            matched = next_pixel + flow_sigma * rng.normal(size=(60, 2))
            p, p_cov = triangulate(pixel, np.zeros((60, 2)), measured, np.full(60, sigma**2))
            q, q_cov = triangulate(matched, np.full((60, 2), flow_sigma**2), next_measured, np.full(60, sigma**2))
            pairs = PointPairs(p, p_cov, q, q_cov)
            solution = solve_pose(pairs, motion, PoseConfig(kernel=0.0))
            relative = RelativeMotion(solution.motion, solution.covariance(pairs))
            sources = error_sources(
                CAMERA,
                solution,
                pixel,
                p_cov[:, 2, 2],
                next_pixel,
                q[:, 2],
                q_cov[:, 2, 2],
                np.full((60, 2), flow_sigma**2),
            )
            cross = None
            if arrival is not None:
                cross = shared_frame_covariance(arrival, sources.reference_disparity, same)
            axes = block_rotation(place.pose)
            place = extend(place, relative, cross)
            arrival = DisparitySensitivity(axes @ sources.current_disparity.columns, next_pixel)
            independent = extend(independent, relative)
            truth = truth @ motion
            pixel, measured = next_pixel, next_measured
        error = motion_error(truth, place.pose)
        full.append(error @ np.linalg.solve(place.covariance, error))
        naive.append(error @ np.linalg.solve(independent.covariance, error))
    assert 4.8 <= np.mean(full) <= 7.2  # 60 runs: the mean of 60 chi-squares with 6 freedoms has a sigma of 0.45
    assert np.mean(naive) < 0.75 * np.mean(full)


def test_lever_arm_and_axes():
    """A camera on an arm: a pure turn of the base moves the camera, and the base's covariance knows the arm."""
    rng = np.random.default_rng(22)
    motion, covariance = random_motion(rng), random_covariance(rng) * 1e-4
    base = to_base(RelativeMotion(motion, covariance), MOUNT)
    root = np.linalg.cholesky(covariance)
    errors = np.array(
        [
            motion_error(MOUNT @ disturbed(motion, root @ rng.normal(size=6)) @ inverse(MOUNT), base.motion)
            for _ in range(20_000)
        ]
    )
    nees = np.einsum("ni,ij,nj->n", errors, np.linalg.inv(base.covariance), errors)
    assert 5.8 < nees.mean() < 6.2


def test_between_two_motions_from_one_reference():
    rng = np.random.default_rng(23)
    earlier, later = (RelativeMotion(random_motion(rng), random_covariance(rng) * 1e-4) for _ in range(2))
    got = between(earlier, later)
    roots = [np.linalg.cholesky(m.covariance) for m in (earlier, later)]
    errors = []
    for _ in range(20_000):
        a, b = (disturbed(m.motion, r @ rng.normal(size=6)) for m, r in zip((earlier, later), roots, strict=True))
        errors.append(motion_error(inverse(a) @ b, got.motion))
    nees = np.einsum("ni,ij,nj->n", errors, np.linalg.inv(got.covariance), errors)
    assert 5.8 < nees.mean() < 6.2


def test_covariances_are_positive_definite_whatever_comes():
    broken = np.diag([1.0, -1e-3, 0.0, 1e-20, 1.0, 1.0]) + np.triu(np.full((6, 6), 1e-4), 1)
    mended = symmetric_positive(broken)
    np.testing.assert_array_equal(mended, mended.T)
    assert np.linalg.eigvalsh(mended)[0] > 0


def test_solver_covariance_knows_correlated_errors():
    """Neighbouring points with a common error: the sandwich covers it, the independent covariance does not."""
    rng = np.random.default_rng(24)
    correlation = ErrorCorrelation(share=0.6, length=150.0)
    nees_full, nees_naive = [], []
    sigma = 0.1

    def draw(at: np.ndarray) -> np.ndarray:
        kernel = correlation.kernel(at, at)
        np.fill_diagonal(kernel, 1.0)
        return np.linalg.cholesky(kernel + 1e-9 * np.eye(len(at))) @ rng.normal(size=len(at)) * sigma

    for _ in range(300):
        truth, pairs = simulate(rng, count=80, sigma=1e-4)
        pixel, disparity = project(pairs.reference)
        matched, matched_disparity = project((pairs.reference - truth[:3, 3]) @ truth[:3, :3])
        variance = np.full(80, sigma**2)
        p, p_cov = triangulate(pixel, np.zeros((80, 2)), disparity + draw(pixel), variance)
        flow_noise = np.column_stack((draw(pixel), draw(pixel)))
        q, q_cov = triangulate(
            matched + flow_noise, np.full((80, 2), sigma**2), matched_disparity + draw(matched), variance
        )
        noisy = PointPairs(p, p_cov, q, q_cov)
        solution = solve_pose(noisy, truth, PoseConfig(kernel=0.0))
        sources = error_sources(
            CAMERA, solution, pixel, p_cov[:, 2, 2], matched, q[:, 2], q_cov[:, 2, 2], np.full((80, 2), sigma**2)
        )
        naive = solution.covariance(noisy)
        covariance = naive + sources.excess(correlation, correlation)
        error = motion_error(truth, solution.motion)
        nees_full.append(error @ np.linalg.solve(covariance, error))
        nees_naive.append(error @ np.linalg.solve(naive, error))
    assert 5.4 <= np.mean(nees_full) <= 6.6
    assert np.mean(nees_naive) > 8.0
