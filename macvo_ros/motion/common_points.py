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

The point is looked for on the ray of its pixel in the reference, by its disparity there: images are nearly linear in
that, however far the point is, so one whose disparity is no larger than its error, or is none at all, does no harm and
still tells how the camera turned. No keypoint has to be left out because its disparity was *measured* to be small,
which would keep those that noise made nearer than they are (`python -m bench.selection_bias`).

A departure from the paper, whose covariances are those of the measured points (Eq. 2 and 3).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from macvo_ros.geometry.camera import StereoCamera, rays
from macvo_ros.matching.matcher import PointMatches
from macvo_ros.motion.point_pairs import PointPairs

Float64 = npt.NDArray[np.float64]

_INFINITY = 0.01
"""Disparity that stands for none, pixels: below any that can be measured; keeps metres finite."""
_STEPS = 3
"""Gauss-Newton steps to a point, one unknown that images are nearly linear in; chosen."""
_NEAREST = 0.05
"""Depth after the motion, in depths before it, below which a point is all but passed, and not common; chosen."""


@dataclass(frozen=True, eq=False)
class CommonPoints:
    """pairs: linearised at the common points; reference, current: (N, 3) these in both frames, metres."""

    pairs: PointPairs
    reference: Float64
    current: Float64


def at_common_points(camera: StereoCamera, points: PointMatches, motion: Float64) -> CommonPoints:
    """Keypoints linearised at their common points under a (4, 4) motion."""
    ray, matched = rays(camera, points.pixel), rays(camera, points.pixel + points.flow)
    seen = np.column_stack((points.flow, points.disparity, points.matched_disparity))
    seen[:, :2] += points.pixel
    seen[:, 2:] -= camera.disparity_offset
    disparity, later = _most_likely(camera, points, seen, ray, motion)
    astray = later[:, 2] < _NEAREST  # behind a camera nothing is common
    disparity[astray] = np.maximum(seen[astray, 2], _INFINITY)
    later[astray] = matched[astray] * (disparity[astray] / np.maximum(seen[astray, 3], _INFINITY))[:, None]

    depth = camera.fx * camera.baseline / disparity
    reference, current = ray * depth[:, None], later * depth[:, None]
    later_depth, later_disparity = current[:, 2], disparity / later[:, 2]
    along = depth / disparity, later_depth / later_disparity  # metres per pixel of disparity
    direction = later / later[:, 2:]
    reference_cov = (along[0] ** 2 * points.disparity_var)[:, None, None] * ray[:, :, None] * ray[:, None, :]
    current_cov = along[1] ** 2 * points.matched_disparity_var
    current_cov = current_cov[:, None, None] * direction[:, :, None] * direction[:, None, :]
    current_cov[:, 0, 0] += points.flow_var[:, 0] * (later_depth / camera.fx) ** 2
    current_cov[:, 1, 1] += points.flow_var[:, 1] * (later_depth / camera.fy) ** 2
    pairs = PointPairs(
        reference - ray * (along[0] * (seen[:, 2] - disparity))[:, None],
        reference_cov,
        matched * later_depth[:, None] - direction * (along[1] * (seen[:, 3] - later_disparity))[:, None],
        current_cov,
    )
    return CommonPoints(pairs, reference, current)


def _most_likely(
    camera: StereoCamera, points: PointMatches, seen: Float64, ray: Float64, motion: Float64
) -> tuple[Float64, Float64]:
    """(N,) disparities in the reference, above that of infinity, that explain all that is seen of the points best.

    seen: (N, 4) u and v in the current frame, disparity in the reference and the current one. Also returns (N, 3) where
    the points then are in the current frame, in units of their depth in the reference.
    """
    turned, shift = ray @ motion[:3, :3], -(motion[:3, 3] @ motion[:3, :3]) / (camera.fx * camera.baseline)
    variance = np.column_stack((points.flow_var, points.disparity_var, points.matched_disparity_var))
    focal, centre = np.array([camera.fx, camera.fy]), np.array([camera.cx, camera.cy])
    disparity = np.maximum(seen[:, 2], _INFINITY)
    later = turned + disparity[:, None] * shift
    for _ in range(_STEPS):
        z = np.maximum(later[:, 2], _NEAREST)[:, None]
        expected = np.column_stack((later[:, :2] / z * focal + centre, disparity, disparity / z[:, 0]))
        slope = np.column_stack(
            (
                (shift[:2] * z - later[:, :2] * shift[2]) / z**2 * focal,
                np.ones(len(seen)),
                turned[:, 2] / z[:, 0] ** 2,
            )
        )
        pull, information = ((slope * each / variance).sum(axis=1) for each in (seen - expected, slope))
        disparity = np.maximum(disparity + pull / information, _INFINITY)
        later = turned + disparity[:, None] * shift
    return disparity, later
