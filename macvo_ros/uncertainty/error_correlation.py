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

"""Matching errors of neighbouring pixels are alike, so N keypoints are worth less than N independent ones.

Model: the error of a dense map (disparity, or one axis of flow) at pixels x and y, in units of its own sigma, has
correlation

    k(x, y) = share * exp(-|x - y| / length)      and 1 at x = y.

With e = sum_i g_i s_i xi_i (g_i: the solver's gain, s_i: what one sigma of the map's error does to the residual of
point i, xi_i: that error in sigmas), the covariance of the motion error e is sum_ij (g_i s_i) k_ij (g_j s_j)^T: a
sandwich estimate. The same kernel says how the errors of two motions that share a frame's disparity map are related.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from macvo_ros.geometry.camera import StereoCamera, rays

if TYPE_CHECKING:
    from macvo_ros.motion.pose_solver import PoseSolution

Float32 = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.float64]

_ENOUGH = 3
"""Points of a part of the image whose sum says something."""


@dataclass(frozen=True)
class ErrorCorrelation:
    """share: correlation of two neighbouring pixels' errors, 0 to 1; length: pixels over which it falls to 1/e."""

    share: float
    length: float

    def kernel(self, x: Float64, y: Float64) -> Float32:
        """(N, 2) and (M, 2) pixels to (N, M) correlations; coincident pixels count as neighbours."""
        return self.at(distances(x, y))

    def at(self, distance: Float32) -> Float32:
        """Correlations over distances, pixels."""
        out = distance * (-1.0 / self.length)
        np.exp(out, out=out)
        out *= self.share
        return np.asarray(out)


def distances(x: Float64, y: Float64) -> Float32:
    """(N, M) distances of (N, 2) and (M, 2) pixels, in single precision: no kernel is as exact."""
    near, far = (np.ascontiguousarray(each.T, dtype=np.float32) for each in (x, y))
    u, v = near[0, :, None] - far[0], near[1, :, None] - far[1]
    u *= u
    v *= v
    u += v
    return np.asarray(np.sqrt(u, out=u))


@dataclass(frozen=True, eq=False)
class DisparitySensitivity:
    """What a frame's disparity errors, in sigmas, do to a motion: columns (6, N), at pixels (N, 2) of that frame."""

    columns: Float64
    pixel: Float64

    def in_axes(self, jacobian: Float64) -> DisparitySensitivity:
        """The same for a (6, 6) transformed motion."""
        return DisparitySensitivity(jacobian @ self.columns, self.pixel)


@dataclass(frozen=True, eq=False)
class ErrorSources:
    """One-sigma effect of each source of error on the motion, (6, N) each, and where it was read.

    Independent of each other; each correlated over the image by its kernel.
    """

    reference_disparity: DisparitySensitivity
    current_disparity: DisparitySensitivity
    flow: tuple[Float64, Float64]

    def excess(self, disparity: ErrorCorrelation, flow: ErrorCorrelation) -> Float64:
        """(6, 6) covariance of the motion beyond that of independent points: sum over i != j of the sandwich."""
        reference, current = self.reference_disparity, self.current_disparity
        apart = distances(reference.pixel, reference.pixel)
        total = _off_diagonal((reference.columns,), disparity.at(apart))
        total += _off_diagonal(self.flow, flow.at(apart))
        return total + _off_diagonal((current.columns,), disparity.kernel(current.pixel, current.pixel))


def error_sources(
    camera: StereoCamera,
    solution: PoseSolution,
    reference_pixel: Float64,
    reference_depth_var: Float64,
    current_pixel: Float64,
    current_depth: Float64,
    current_depth_var: Float64,
    flow_var: Float64,
) -> ErrorSources:
    """Columns gain_i @ s_i of each source. Pixels (N, 2), depths and their variances (N,) metres, flow_var (N, 2)."""
    gain = solution.gain
    rotated = gain @ solution.motion[:3, :3]
    reference = _apply(gain, np.sqrt(reference_depth_var)[:, None] * rays(camera, reference_pixel))
    current = -_apply(rotated, np.sqrt(current_depth_var)[:, None] * rays(camera, current_pixel))
    u = -rotated[:, :, 0].T * (np.sqrt(flow_var[:, 0]) * current_depth / camera.fx)
    v = -rotated[:, :, 1].T * (np.sqrt(flow_var[:, 1]) * current_depth / camera.fy)
    return ErrorSources(
        reference_disparity=DisparitySensitivity(reference, reference_pixel),
        current_disparity=DisparitySensitivity(current, current_pixel),
        flow=(u, v),
    )


def regional_chi2(
    residual: Float64, pixel: Float64, size: tuple[int, int], correlation: ErrorCorrelation, parts: int = 4
) -> float:
    """How much more than the model explains the residuals of a part of the image are alike; about 1 if it is right.

    residual: (N, 3) in sigmas, of points that agree, at (N, 2) pixels of an image of `size` (width, height), which is
    looked at in parts x parts parts. The squared sum of the residuals of a part should be the sum of the kernel over
    it. More of it is an error that reaches across the image: a calibration that is off, blur that changes, a large
    object that moves slowly. Six unknowns have been fitted to it, so what is seen is the part of it that does not look
    like a motion; the part that does is taken to be as much larger than promised. Of the three components the worst.
    """
    cell = (pixel * (parts / np.array(size))).astype(np.int64).clip(0, parts - 1) @ np.array([1, parts])
    member = (cell == np.arange(parts * parts)[:, None]).astype(np.float64)
    member = member[member.sum(axis=1) >= _ENOUGH]
    if len(member) <= 4:
        return 1.0
    kernel = correlation.kernel(pixel, pixel)
    np.fill_diagonal(kernel, 1.0)
    expected = float(((member @ kernel) * member).sum())
    squares = ((member @ residual) ** 2).sum(axis=0)
    return float(squares.max()) / expected * len(member) / (len(member) - 2)


def shared_frame_covariance(
    earlier: DisparitySensitivity, later: DisparitySensitivity, correlation: ErrorCorrelation
) -> Float64:
    """(6, 6) covariance of the errors of two motions that share a frame: E[e_earlier e_later^T].

    earlier: sensitivity of the motion *to* that frame, later: of the motion *from* it.
    """
    return np.asarray(earlier.columns @ correlation.kernel(earlier.pixel, later.pixel) @ later.columns.T)


def _apply(gain: Float64, vectors: Float64) -> Float64:
    """(N, 6, 3) gains on (N, 3) vectors to (6, N)."""
    return np.asarray((gain @ vectors[:, :, None])[:, :, 0].T)


def _off_diagonal(sources: tuple[Float64, ...], kernel: Float32) -> Float64:
    """Sum over i != j of column_i k_ij column_j^T; overwrites the kernel's diagonal."""
    np.fill_diagonal(kernel, 0.0)
    return np.asarray(sum(columns @ kernel @ columns.T for columns in sources))
