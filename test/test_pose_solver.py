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
from hypothesis import given, settings
from hypothesis import strategies as st
from simulated_matches import motion_error, random_motion, simulate

from macvo_ros.geometry.se3 import exp_so3, transform
from macvo_ros.motion.point_pairs import PointPairs
from macvo_ros.motion.pose_solver import solve_pose
from macvo_ros.motion.pypose_solver import solve_pose_pypose
from macvo_ros.settings.config import PoseConfig
from macvo_ros.uncertainty.motion_prior import MotionPrior


def test_mean_nees_is_six():
    """Mean NEES of the relative motion over simulated matches drawn from the stated noise: 6 +- 0.3."""
    rng = np.random.default_rng(10)
    nees = []
    for _ in range(1500):
        truth, pairs = simulate(rng)
        solution = solve_pose(pairs, np.eye(4), PoseConfig())
        error = motion_error(truth, solution.motion)
        nees.append(error @ np.linalg.solve(solution.covariance(pairs), error))
    assert 5.7 <= np.mean(nees) <= 6.3


@pytest.mark.parametrize("kernel", [0.0, 2.5])
def test_agrees_with_pypose(kernel):
    rng = np.random.default_rng(11)
    for _ in range(3):
        truth, pairs = simulate(rng)
        ours = solve_pose(pairs, np.eye(4), PoseConfig(kernel=kernel)).motion
        theirs = solve_pose_pypose(pairs, np.eye(4), kernel=kernel, metric_updates=3)
        sigma = np.linalg.norm(motion_error(truth, ours))
        assert np.linalg.norm(motion_error(theirs, ours)) < 1e-3 * sigma + 1e-7


def test_exact_points_give_the_exact_motion_far_from_the_start():
    rng = np.random.default_rng(12)
    _, pairs = simulate(rng)
    truth = transform(exp_so3(np.array([0.2, -0.4, 0.3])), np.array([1.5, -0.7, 2.0]))
    exact = PointPairs(
        pairs.current @ truth[:3, :3].T + truth[:3, 3], pairs.reference_cov, pairs.current, pairs.current_cov
    )
    solution = solve_pose(exact, np.eye(4), PoseConfig(max_iterations=100))
    assert np.linalg.norm(motion_error(truth, solution.motion)) < 1e-8


@pytest.mark.parametrize("share", [0.1, 0.3, 0.4])
def test_a_moving_object_is_rejected(share):
    """Points that move together with another motion do not pull the estimate out of its own sigma."""
    rng = np.random.default_rng(13)
    truth, pairs = simulate(rng)
    clean = solve_pose(pairs, np.eye(4), PoseConfig())
    moved = int(share * len(pairs))
    current = pairs.current.copy()
    current[:moved] += np.array([0.5, 0.0, 0.3])
    solution = solve_pose(
        PointPairs(pairs.reference, pairs.reference_cov, current, pairs.current_cov), np.eye(4), PoseConfig()
    )
    assert solution.inlier[:moved].mean() < 0.05
    assert solution.inlier[moved:].mean() > 0.95
    assert (
        np.linalg.norm(motion_error(truth, solution.motion))
        < 3 * np.linalg.norm(motion_error(truth, clean.motion)) + 1e-3
    )


def test_directions_without_information_stay_with_the_prior():
    """Points on one line leave the turn about it free: it follows the prediction, with the prediction's sigma."""
    rng = np.random.default_rng(14)
    z = rng.uniform(3, 6, 100)
    line = np.column_stack((np.zeros(100), np.zeros(100), z))
    cov = np.broadcast_to(np.eye(3) * 1e-6, (100, 3, 3)).copy()
    mean = transform(exp_so3(np.array([0.0, 0.0, 0.1])), np.zeros(3))
    prior = MotionPrior(mean, np.diag([1 / 0.05**2] * 3 + [1 / 0.02**2] * 3))
    solution = solve_pose(PointPairs(line, cov, line, cov), np.eye(4), PoseConfig(), prior)
    error = motion_error(mean, solution.motion)
    assert abs(error[5]) < 1e-6
    assert np.linalg.inv(solution.information)[5, 5] == pytest.approx(0.02**2, rel=0.01)


@given(seed=st.integers(0, 10_000), scale=st.floats(1e-3, 1e3), count=st.integers(3, 60))
@settings(max_examples=60, deadline=None)
def test_any_points_give_finite_answers(seed, scale, count):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(2, count, 3)) * scale
    root = rng.normal(size=(2, count, 3, 3)) * rng.choice([1e-6, 1e-2, 10.0], size=(2, count, 1, 1))
    cov = root @ root.transpose(0, 1, 3, 2) + 1e-14 * np.eye(3)
    prior = MotionPrior(random_motion(rng), np.eye(6))
    solution = solve_pose(PointPairs(points[0], cov[0], points[1], cov[1]), np.eye(4), PoseConfig(), prior)
    assert np.isfinite(solution.motion).all()
    assert np.isfinite(solution.gain).all()
    np.testing.assert_allclose(solution.motion[:3, :3] @ solution.motion[:3, :3].T, np.eye(3), atol=1e-9)
