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

"""Keypoints as points in space seen from two frames, and how far apart these are in sigmas (paper III-C, III-D)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from macvo_ros.geometry.camera import StereoCamera, rays
from macvo_ros.matching.matcher import PointMatches
from macvo_ros.matching.native.library import kernels
from macvo_ros.motion.covariance import depth_from_disparity, point_covariance

Float64 = npt.NDArray[np.float64]

FLOOR = 1e-12
"""Relative floor of pivots and information, far below anything measurable; chosen."""


@dataclass(frozen=True, eq=False)
class PointPairs:
    """The same points seen from two frames.

    reference, current: (N, 3) metres, in the left optical frame of the reference and the current image.
    reference_cov, current_cov: (N, 3, 3) metres^2, same axes.
    """

    reference: Float64
    reference_cov: Float64
    current: Float64
    current_cov: Float64

    def __len__(self) -> int:
        return len(self.reference)

    def subset(self, keep: npt.NDArray[np.bool_]) -> PointPairs:
        """The points where (N,) `keep` is true."""
        return PointPairs(self.reference[keep], self.reference_cov[keep], self.current[keep], self.current_cov[keep])


def point_pairs(camera: StereoCamera, points: PointMatches) -> PointPairs:
    """Matched keypoints as points in both frames, metres, with their covariances (paper III-C).

    A keypoint is a pixel of the reference by definition: only its depth is uncertain there.
    """
    matched = points.pixel + points.flow
    depth, depth_var = depth_from_disparity(camera, points.disparity, points.disparity_var)
    matched_depth, matched_var = depth_from_disparity(camera, points.matched_disparity, points.matched_disparity_var)
    return PointPairs(
        rays(camera, points.pixel) * depth[:, None],
        point_covariance(camera, points.pixel, np.zeros_like(points.flow_var), depth, depth_var),
        rays(camera, matched) * matched_depth[:, None],
        point_covariance(camera, matched, points.flow_var, matched_depth, matched_var),
    )


def whitened(pairs: PointPairs, rotation: Float64, translation: Float64) -> tuple[Float64, Float64, Float64]:
    """`PoseSolution.whitener` and `.residual` at a motion, and the residuals' squared lengths (N,)."""
    if kernels() is not None:
        return _whitened_natively(pairs, rotation, translation)
    whitener = whitener_of(pairs, rotation)
    residual = (whitener @ (pairs.reference - pairs.current @ rotation.T - translation)[:, :, None])[:, :, 0]
    return whitener, residual, np.asarray(np.einsum("ni,ni->n", residual, residual))


def _whitened_natively(pairs: PointPairs, rotation: Float64, translation: Float64) -> tuple[Float64, Float64, Float64]:
    """`whitened` by a compiled kernel."""
    count = len(pairs)
    whitener, residual, square = np.empty((count, 3, 3)), np.empty((count, 3)), np.empty(count)
    points = (pairs.reference, pairs.reference_cov, pairs.current, pairs.current_cov)
    native = kernels()
    assert native is not None
    native(
        "macvo_whiten", *map(np.ascontiguousarray, points), count, np.ascontiguousarray(rotation),
        np.ascontiguousarray(translation), FLOOR, whitener, residual, square,
    )  # fmt: skip
    return whitener, residual, square


def squared_length(whitener: Float64, residual: Float64) -> Float64:
    """Squared Mahalanobis length of (N, 3) residuals."""
    white = (whitener @ residual[:, :, None])[:, :, 0]
    return np.asarray(np.einsum("ni,ni->n", white, white))


def whitener_of(pairs: PointPairs, rotation: Float64) -> Float64:
    """(N, 3, 3) inverse Cholesky factors of P + R Q R^T, in closed form: residuals times these have unit covariance.

    Depth is often a thousand times less certain than direction; through the factor the weighted cost stays positive
    where the inverse of the matrix itself would lose that to rounding.
    """
    m = pairs.reference_cov + rotated(pairs.current_cov, rotation)
    a = np.sqrt(m[:, 0, 0])
    b, d = m[:, 1, 0] / a, m[:, 2, 0] / a
    c = np.sqrt(np.maximum(m[:, 1, 1] - b * b, FLOOR * m[:, 1, 1]))
    e = (m[:, 2, 1] - d * b) / c
    f = np.sqrt(np.maximum(m[:, 2, 2] - d * d - e * e, FLOOR * m[:, 2, 2]))
    out = np.zeros_like(m)
    out[:, 0, 0], out[:, 1, 1], out[:, 2, 2] = 1 / a, 1 / c, 1 / f
    out[:, 1, 0] = -b / (a * c)
    out[:, 2, 1] = -e / (c * f)
    out[:, 2, 0] = (b * e - c * d) / (a * c * f)
    return np.asarray(out)


def rotated(covariance: Float64, rotation: Float64) -> Float64:
    """(N, 3, 3) R Q R^T of symmetric Q: two large products, which numpy does far faster than many small ones."""
    half = (covariance.reshape(-1, 3) @ rotation.T).reshape(-1, 3, 3).transpose(0, 2, 1)
    return np.asarray((half.reshape(-1, 3) @ rotation.T).reshape(-1, 3, 3))
