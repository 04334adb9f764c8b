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

"""Points whose disparity is no larger than its error: chosen without bias, and used without harm."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from simulated_matches import motion_error

from macvo_ros.geometry.camera import StereoCamera, pixels, rays
from macvo_ros.geometry.se3 import exp_so3, transform
from macvo_ros.matching.matcher import PointMatches
from macvo_ros.motion.common_points import at_common_points
from macvo_ros.motion.covariance import depth_is_known
from macvo_ros.motion.keypoints import select_keypoints
from macvo_ros.motion.pose_solver import PoseSolution, solve_linearised
from macvo_ros.settings.config import KeypointConfig, PoseConfig

CAMERA = StereoCamera(fx=300.0, fy=300.0, cx=160.0, cy=120.0, baseline=0.1, width=320, height=240)
FORWARD = transform(exp_so3(np.array([0.002, -0.004, 0.003])), np.array([0.02, -0.01, 0.5]))


def seen(rng: np.random.Generator, disparity: np.ndarray, sigma: tuple[float, float, float]) -> PointMatches:
    """Points of so true disparities, seen with noise; sigma: of reference disparity, match and current disparity."""
    count = len(disparity)
    pixel = rng.uniform((20, 20), (300, 220), (count, 2))
    depth = CAMERA.fx * CAMERA.baseline / np.maximum(disparity, 1e-6)
    later = (rays(CAMERA, pixel) * depth[:, None] - FORWARD[:3, 3]) @ FORWARD[:3, :3]
    match = pixels(CAMERA, later) + sigma[1] * rng.normal(size=(count, 2))
    return PointMatches(
        pixel=pixel,
        disparity=disparity + sigma[0] * rng.normal(size=count),
        disparity_var=np.full(count, sigma[0] ** 2),
        flow=match - pixel,
        flow_var=np.full((count, 2), sigma[1] ** 2),
        matched_disparity=CAMERA.disparity(later[:, 2]) + sigma[2] * rng.normal(size=count),
        matched_disparity_var=np.full(count, sigma[2] ** 2),
    )


def solved(points: PointMatches) -> tuple[PoseSolution, np.ndarray]:
    """From the true motion, and its covariance."""
    near = FORWARD
    for _ in range(3):
        common = at_common_points(CAMERA, points, near)
        solution = solve_linearised(common.pairs, common.current, near, PoseConfig(kernel=0.0))
        near = solution.motion
    return solution, solution.covariance(common.pairs)


def test_motion_from_disparities_of_one_sigma_has_no_bias_and_its_covariance_is_true() -> None:
    """Half of the points are nearer than three sigma of disparity, a tenth is at infinity."""
    rng, errors, nees = np.random.default_rng(3), [], []
    disparity = np.concatenate((np.zeros(20), rng.uniform(0.3, 3.0, 180)))
    for _ in range(300):
        solution, covariance = solved(seen(rng, disparity, (0.5, 0.3, 0.5)))
        errors.append(motion_error(FORWARD, solution.motion))
        nees.append(errors[-1] @ np.linalg.solve(covariance, errors[-1]))
    scatter = np.std(errors, axis=0)
    assert (np.abs(np.mean(errors, axis=0)) < 0.25 * scatter).all()  # 4.3 standard errors of the mean
    assert 5.0 < np.mean(nees) < 7.0


def test_points_at_infinity_alone_tell_how_the_camera_turned() -> None:
    """No disparity is above its noise, some are negative; what is left of the covariance is translation."""
    rng = np.random.default_rng(4)
    solution, covariance = solved(seen(rng, np.zeros(100), (0.5, 0.2, 0.5)))
    error = motion_error(FORWARD, solution.motion)
    sigma = np.sqrt(np.diag(covariance))
    assert solution.inlier.sum() >= 95
    assert (np.abs(error[3:]) < 4 * sigma[3:]).all()
    assert (sigma[3:] < 5e-4).all()
    assert np.isfinite(covariance).all()


def test_choice_of_keypoints_does_not_depend_on_the_noise_of_their_disparity() -> None:
    """A plane of disparity 2 with errors of 0.7: those chosen have errors of zero mean."""
    rng, mean = np.random.default_rng(5), []
    for _ in range(10):
        noise = rng.normal(0.0, 0.7, (240, 320)).astype(np.float32)
        chosen = select_keypoints(
            torch.from_numpy(2.0 + noise),
            torch.full((240, 320), 0.49),
            torch.zeros((2, 240, 320)),
            torch.from_numpy(rng.uniform(0.01, 0.02, (2, 240, 320)).astype(np.float32)),
            CAMERA,
            KeypointConfig(),
        )
        assert len(chosen) == 200
        mean.append(noise[chosen[:, 1], chosen[:, 0]].mean())
    assert abs(np.mean(mean)) < 4 * 0.7 / np.sqrt(2000)


def test_depth_is_known_of_each_frame_as_far_as_its_noise_allows() -> None:
    """Near points and points at infinity; where cameras are swapped, disparities have the other sign."""
    rng = np.random.default_rng(6)
    sound = seen(rng, np.repeat([8.0, 0.0], 100), (0.2, 0.2, 0.2))
    assert depth_is_known(CAMERA, sound)[:, :100].all()
    assert depth_is_known(CAMERA, sound)[:, 100:].mean() < 0.01
    swapped = replace(sound, matched_disparity=-sound.matched_disparity)
    np.testing.assert_array_equal(depth_is_known(CAMERA, swapped)[0], depth_is_known(CAMERA, sound)[0])
    assert depth_is_known(CAMERA, swapped)[1].mean() < 0.01
