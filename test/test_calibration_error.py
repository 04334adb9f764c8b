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
from simulated_matches import CAMERA, motion_error, project, triangulate

from macvo_ros.geometry.camera import rays
from macvo_ros.geometry.se3 import exp_so3, transform
from macvo_ros.motion.point_pairs import PointPairs
from macvo_ros.motion.pose_solver import solve_pose
from macvo_ros.settings.config import PoseConfig
from macvo_ros.uncertainty.calibration_error import CalibrationField, RunningMean
from macvo_ros.uncertainty.error_correlation import error_sources


def test_a_field_of_calibration_error_moves_the_pose_as_predicted():
    """Draw smooth fields of calibration error, displace exact matches by them, and compare the pose with X c."""
    rng = np.random.default_rng(30)
    field = CalibrationField.of(CAMERA)
    knots = len(field.covariance) // 3
    motion = transform(exp_so3(np.array([0.01, -0.03, 0.005])), np.array([0.1, 0.02, 0.25]))
    pixel = rng.uniform(40, 600, (300, 2))
    points = rays(CAMERA, pixel) * rng.uniform(2, 10, (300, 1))
    disparity = CAMERA.fx * CAMERA.baseline / points[:, 2]
    matched, matched_disparity = project((points - motion[:3, 3]) @ motion[:3, :3])
    variance = np.full(300, 0.01)
    before, after = field.weights(pixel), field.weights(matched)
    predicted, observed = [], []
    for _ in range(40):
        c = 0.05 * np.linalg.cholesky(field.covariance + 1e-12 * np.eye(3 * knots)) @ rng.normal(size=3 * knots)
        left_u, left_v, right_u = c.reshape(3, knots)
        p, p_cov = triangulate(pixel, np.zeros((300, 2)), disparity + before @ (left_u - right_u), variance)
        shift = np.column_stack(((after - before) @ left_u, (after - before) @ left_v))
        q, q_cov = triangulate(
            matched + shift, np.full((300, 2), 0.01), matched_disparity + after @ (left_u - right_u), variance
        )
        pairs = PointPairs(p, p_cov, q, q_cov)
        solution = solve_pose(pairs, motion, PoseConfig(kernel=0.0))
        sources = error_sources(
            CAMERA, solution, pixel, p_cov[:, 2, 2], matched, q[:, 2], q_cov[:, 2, 2], np.full((300, 2), 0.01)
        )
        x = field.sensitivity(
            -sources.reference_disparity.columns / 0.1,
            -sources.current_disparity.columns / 0.1,
            (sources.flow[0] / 0.1, sources.flow[1] / 0.1),
            pixel,
            matched,
        )
        predicted.append(x @ c)
        observed.append(motion_error(motion, solution.motion))
    predicted, observed = np.array(predicted), np.array(observed)
    for axis in range(6):
        assert np.corrcoef(predicted[:, axis], observed[:, axis])[0, 1] > 0.98
    assert np.sqrt(((observed - predicted) ** 2).mean()) < 0.1 * np.sqrt((observed**2).mean())


def test_weights_sum_to_one_everywhere():
    pixel = np.random.default_rng(0).uniform(-50, 700, (500, 2))
    np.testing.assert_allclose(CalibrationField.of(CAMERA).weights(pixel).sum(axis=1), 1.0)


def test_running_mean_is_the_mean_then_forgets():
    mean = RunningMean(10)
    for value in range(10):
        mean.add(value)
    assert mean.mean == pytest.approx(4.5)
    for _ in range(100):
        mean.add(20.0)
    assert mean.mean == pytest.approx(20.0, abs=1e-2)
