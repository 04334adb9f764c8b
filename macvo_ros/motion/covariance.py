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

"""Metric 3D covariance of a keypoint from its matching uncertainty (paper III-C and appendix A).

All points and covariances are float64, metres, in the left optical frame (x right, y down, z forward). The paper
orders the axes z, x, y in Eq. 3; we use x, y, z throughout.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from macvo_ros.geometry.camera import StereoCamera, rays
from macvo_ros.geometry.interpolation import bilinear
from macvo_ros.matching.matcher import PointMatches

Float64 = npt.NDArray[np.float64]

_MAX_RELATIVE_SIGMA = 0.3
"""Of disparity: beyond, first-order propagation to depth does not hold (paper, appendix A.1)."""


def depth_from_disparity(camera: StereoCamera, disparity: Float64, disparity_var: Float64) -> tuple[Float64, Float64]:
    """Depth fx b / d and its variance (fx b / d^2)^2 var(d): first-order propagation, appendix A.1.

    disparity, disparity_var: (N,) pixels, pixels^2. Returns (N,) metres and (N,) metres^2.
    """
    d = np.maximum(disparity - camera.disparity_offset, 1e-3)
    depth = camera.fx * camera.baseline / d
    return depth, (depth / d) ** 2 * disparity_var


def depth_is_linear(camera: StereoCamera, points: PointMatches) -> npt.NDArray[np.bool_]:
    """(N,) keypoints whose depth is known in both frames."""
    return np.asarray(depth_is_known(camera, points).all(axis=0))


def depth_is_known(camera: StereoCamera, points: PointMatches) -> npt.NDArray[np.bool_]:
    """(2, N) whether the reference and the current frame know a depth so well that first-order propagation holds.

    Appendix A.1: while the disparity's sigma is below 0.3 of it. That is decided by the noise, too: keypoints near the
    limit that pass it are nearer than they are on average. So it is only for where points are needed in metres.
    """
    measured = np.stack((points.disparity, points.matched_disparity)) - camera.disparity_offset
    sigma = np.sqrt(np.stack((points.disparity_var, points.matched_disparity_var)))
    return np.asarray(sigma <= _MAX_RELATIVE_SIGMA * measured)


def point_covariance(
    camera: StereoCamera, pixel: Float64, pixel_var: Float64, depth: Float64, depth_var: Float64
) -> Float64:
    """Covariance of the points that pixels with a depth stand for: Eq. 2 (diagonal) and Eq. 3 (off-diagonal).

    pixel, pixel_var: (N, 2) pixels, pixels^2; depth, depth_var: (N,) metres, metres^2. Returns (N, 3, 3).
    """
    ray = rays(camera, pixel)
    out = np.asarray(depth_var[:, None, None] * ray[:, :, None] * ray[:, None, :])
    spread = depth**2 + depth_var
    out[:, 0, 0] += pixel_var[:, 0] * spread / camera.fx**2
    out[:, 1, 1] += pixel_var[:, 1] * spread / camera.fy**2
    return out


def patch_disparity_variance(disparity: torch.Tensor, pixel: Float64, pixel_var: Float64, patch: int) -> Float64:
    """Variance of the disparity around matched points, weighted by where the match may be (appendix A.2).

    disparity: (H, W) of the current frame, pixels; pixel, pixel_var: (N, 2) matched points and their variance.
    Returns (N,) pixels^2.

    Departures: of disparity, not of depth, which has no variance where things may be far away; samples lie on a grid in
    units of sigma around the sub-pixel match and interpolate, where the paper weights whole pixels (below half a pixel
    of sigma those see nothing but the nearest one); the grid ends at three sigma or at the paper's patch, whichever is
    smaller. The result is *added* to the disparity's own variance (law of total variance); the authors' code replaces
    that by this.
    """
    count = len(pixel)
    if count == 0:
        return np.empty(0)
    steps = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5])
    weights_1d = np.exp(-0.5 * steps**2)
    weight = np.outer(weights_1d, weights_1d).reshape(-1)
    weight /= weight.sum()
    # Largest offset is 2.5 sigma: keep it inside the patch.
    sigma = np.minimum(np.sqrt(pixel_var), patch / 2 / 2.5)
    grid = np.stack(np.meshgrid(steps, steps, indexing="xy"), axis=-1).reshape(-1, 2)
    samples = (pixel[:, None, :] + sigma[:, None, :] * grid[None]).reshape(-1, 2)
    around = bilinear((disparity,), samples)[0].reshape(count, -1)
    mean = around @ weight
    return np.asarray(((around - mean[:, None]) ** 2) @ weight)


def ablated(reference: Float64, current: Float64, model: str) -> tuple[Float64, Float64]:
    """The covariance models of the paper's ablation study, on the (N, 3, 3) covariances of both frames.

    scale_agnostic divides by the mean determinant of the frame's covariances; those of the reference frame are
    singular here (its pixels are exact by definition), so the current frame's determinant scales both.
    """
    if model == "full":
        return reference, current
    if model == "identity":
        identity = np.broadcast_to(np.eye(3), current.shape)
        return identity.copy(), identity.copy()
    if model == "diagonal":
        return reference * np.eye(3), current * np.eye(3)
    if model == "scale_agnostic":
        mean_determinant = float(np.mean(np.linalg.det(current))) if len(current) else 1.0
        scale = max(mean_determinant, 1e-30) ** (1.0 / 3.0)
        return reference / scale, current / scale
    raise ValueError(f"unknown covariance model {model!r}")
