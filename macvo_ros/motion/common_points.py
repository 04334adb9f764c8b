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

"""Points linearised where both frames together see them, not where each happened to measure them.

Depth is f b / d, and its variance grows with the fourth power of depth: a disparity that noise made too small becomes a
point that is too far *and* counts less, one that it made too large counts more. Weighed by what was measured, noise
therefore pulls every motion to one side, and what it leaves in the residuals looks like a right camera that is turned
(`python -m bench.calibration apparent`). At the point that both frames agree on, residual and weight know nothing of
each other to first order, and the pull is gone.

A departure from the paper, whose covariances are those of the measured points (Eq. 2 and 3).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from macvo_ros.geometry.camera import StereoCamera, rays
from macvo_ros.matching.matcher import PointMatches
from macvo_ros.motion.covariance import point_covariance
from macvo_ros.motion.pose_solver import PointPairs

Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CommonPoints:
    """pairs: linearised at the common points; reference, current: (N, 3) these in both frames, metres."""

    pairs: PointPairs
    reference: Float64
    current: Float64


def at_common_points(
    camera: StereoCamera, points: PointMatches, patch_var: Float64, pairs: PointPairs, motion: Float64
) -> CommonPoints:
    """The pairs of matched keypoints linearised at their common points under a (4, 4) motion.

    patch_var: (N,) metres^2, see `point_pairs`. With p and q the points of both frames, P and Q their covariances and
    T the motion, the common point is  p - P (P + R Q R^T)^-1 (p - T q),  in the current frame T^-1 of it.
    """
    rotation, translation = motion[:3, :3], motion[:3, 3]
    apart = pairs.reference - pairs.current @ rotation.T - translation
    both = pairs.reference_cov + rotation @ pairs.current_cov @ rotation.T
    common = pairs.reference - (pairs.reference_cov @ np.linalg.solve(both, apart[:, :, None]))[:, :, 0]
    later = (common - translation) @ rotation
    astray = np.minimum(common[:, 2], later[:, 2]) <= 0.0  # behind a camera nothing is common
    common[astray], later[astray] = pairs.reference[astray], pairs.current[astray]
    reference, reference_cov = _linearised(
        camera, points.pixel, np.zeros_like(points.flow_var), points.disparity, points.disparity_var, 0.0, common[:, 2]
    )
    current, current_cov = _linearised(
        camera, points.pixel + points.flow, points.flow_var, points.matched_disparity, points.matched_disparity_var,
        patch_var, later[:, 2],
    )  # fmt: skip
    return CommonPoints(PointPairs(reference, reference_cov, current, current_cov), common, later)


def _linearised(
    camera: StereoCamera,
    pixel: Float64,
    pixel_var: Float64,
    disparity: Float64,
    disparity_var: Float64,
    patch_var: Float64 | float,
    depth: Float64,
) -> tuple[Float64, Float64]:
    """(N, 3) points and (N, 3, 3) covariances, depth taken as linear in disparity around (N,) `depth`, metres."""
    measured = np.maximum(disparity - camera.disparity_offset, 1e-3)
    scale = camera.fx * camera.baseline
    along = depth * (2.0 - measured * depth / scale)
    depth_var = (depth**2 / scale) ** 2 * disparity_var + patch_var
    return rays(camera, pixel) * along[:, None], point_covariance(camera, pixel, pixel_var, depth, depth_var)
