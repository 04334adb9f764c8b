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

"""Point pairs drawn from the noise that the covariance model states, shared by the tests of solver and covariance."""

from __future__ import annotations

import numpy as np

from macvo_ros.geometry.camera import StereoCamera, rays
from macvo_ros.geometry.se3 import exp_so3, log_so3, transform
from macvo_ros.motion.covariance import depth_from_disparity, point_covariance
from macvo_ros.motion.point_pairs import PointPairs

CAMERA = StereoCamera(fx=320.0, fy=320.0, cx=319.5, cy=319.5, baseline=0.25, width=640, height=640)


def project(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pixels (N, 2) and disparities (N,) of points (N, 3) in the left optical frame."""
    pixel = np.column_stack(
        (
            points[:, 0] / points[:, 2] * CAMERA.fx + CAMERA.cx,
            points[:, 1] / points[:, 2] * CAMERA.fy + CAMERA.cy,
        )
    )
    return pixel, CAMERA.fx * CAMERA.baseline / points[:, 2]


def random_motion(rng: np.random.Generator) -> np.ndarray:
    return transform(exp_so3(rng.normal(0, 0.03, 3)), rng.normal(0, 0.1, 3))


def triangulate(pixel, pixel_var, disparity, disparity_var) -> tuple[np.ndarray, np.ndarray]:
    """Points (N, 3) and covariances (N, 3, 3) as the odometry computes them."""
    depth, depth_var = depth_from_disparity(CAMERA, disparity, disparity_var)
    return rays(CAMERA, pixel) * depth[:, None], point_covariance(CAMERA, pixel, pixel_var, depth, depth_var)


def simulate(rng: np.random.Generator, count: int = 200, sigma: float = 0.1) -> tuple[np.ndarray, PointPairs]:
    """A motion and noisy point pairs: exact reference pixels, noisy disparities and matches."""
    pixel = rng.uniform(20, 620, (count, 2))
    depth = rng.uniform(2, 12, count)
    motion = random_motion(rng)
    points = rays(CAMERA, pixel) * depth[:, None]
    matched, matched_disparity = project((points - motion[:3, 3]) @ motion[:3, :3])
    disparity_sigma, matched_sigma = sigma * rng.uniform(0.5, 2, (2, count))
    flow_sigma = sigma * rng.uniform(0.5, 2, (count, 2))
    reference, reference_cov = triangulate(
        pixel,
        np.zeros((count, 2)),
        CAMERA.fx * CAMERA.baseline / depth + disparity_sigma * rng.normal(size=count),
        disparity_sigma**2,
    )
    current, current_cov = triangulate(
        matched + flow_sigma * rng.normal(size=(count, 2)),
        flow_sigma**2,
        matched_disparity + matched_sigma * rng.normal(size=count),
        matched_sigma**2,
    )
    return motion, PointPairs(reference, reference_cov, current, current_cov)


def motion_error(truth: np.ndarray, estimate: np.ndarray) -> np.ndarray:
    """[dt, dtheta] with t_true = t + dt and R_true = Exp(dtheta) R."""
    return np.concatenate((truth[:3, 3] - estimate[:3, 3], log_so3(truth[:3, :3] @ estimate[:3, :3].T)))
