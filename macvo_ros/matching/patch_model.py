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

"""A patch of an image, linearised: how its samples change with a shift, slopes of the warp, gain, offset and blur.

Gauss-Newton on patches (`patch_fit.py`) needs the same matrices whoever asks: gradients are those of the patch itself
(inverse compositional), so the normal matrices are inverted once.

Blur is an unknown because two views of a surface are never equally sharp: what comes nearer is magnified and the lens
and our smoothing are not, a slanted wall is compressed in one camera of the pair, a fast turn smears, and reading
between pixels smooths as well. Blurring a little adds the Laplacian of the image, and where texture is not symmetric
that looks like a shift (docs/lite.md says what it changes).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from macvo_ros.matching.native.library import kernels

Float32 = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]

_NOISE = 2.0
"""Ordinary residual of a patch, grey levels, against which the certainty of the slopes is weighed."""
_RIDGE = 1.0
_BLUR = 0.3
"""How different the blur of two views is (1 sigma of the ordinary), pixels^2: what half the variance of the blurring
kernel grows by. Found of patches on KITTI 09 and MH_01 without this restraint: 16 % to 84 % in -0.12 to 0.43, mean 0.03
to 0.2 (120 frames each, no log)."""
_SLOPE = 0.05
"""By how much slopes that a patch is expected with may be off (1 sigma), pixels per pixel."""


@dataclass(frozen=True, eq=False)
class PatchModel:
    """N patches of S samples around whole pixels, linearised in P = 3 A + 3 unknowns.

    Unknowns: shift along A axes (2; 1 along rows), two slopes of each axis in pixels at the patch's edge, gain and
    offset of brightness, and blur: what is added of the Laplacian, pixels^2.

    whole: (N, 2) pixels in the middle. offsets: (S, 2) of the samples from there; window: (S,) their weights, of sum 1.
    template: (N, S) grey levels. normal: (N, P, P) weighted squares of their change with each unknown; ridge: (P,) what
    is added to its diagonal; solver: (N, P, P) inverse of that sum; project: (N, P, S) from a difference of grey levels
    to the unknowns. samples: effective number of them. radius: of the patch, pixels.
    """

    whole: Whole
    offsets: Float32
    window: Float32
    template: Float32
    normal: Float32
    ridge: Float32
    solver: Float32
    project: Float32
    samples: float
    radius: int

    @property
    def spread(self) -> Float32:
        """(N, A) variance of a shift per variance of a sample."""
        axes = axes_of(self.normal.shape[1])
        return np.asarray(np.diagonal(self.solver, axis1=1, axis2=2)[:, :axes] / np.float32(self.samples))

    @property
    def explained(self) -> Float32:
        """(N, P, P) how much of the squared difference to another image the unknowns explain.

        For e the difference, B its change with the unknowns and s = (B' W B + ridge)^-1 B' W e,
        |e - B s|^2 = |e|^2 - s' (B' W B + 2 ridge) s.
        """
        return np.asarray(self.normal + 2 * np.diag(self.ridge))


def linearise(image: npt.NDArray[Any], pixel: Float64, radius: int, stride: int, axes: int) -> PatchModel:
    """Patches of an (H, W) image around the whole pixels next to (N, 2) pixels whose patches lie in the image.

    radius: pixels, a multiple of stride (between samples; smooth the image above 1); less in a small image.
    """
    radius = min(radius, (min(image.shape) - 3) // 2 // stride * stride)
    offsets, window = patch_window(radius, stride)
    margin = radius + 1
    whole = np.clip(np.rint(pixel).astype(np.int64), margin, np.array(image.shape[::-1]) - 1 - margin)
    samples = float(window.sum() ** 2 / (window**2).sum())
    steady = _NOISE**2 / samples / (_SLOPE * radius) ** 2
    sharp = _NOISE**2 / samples / _BLUR**2
    ridge = np.array([_RIDGE / len(offsets)] * axes + [steady] * 2 * axes + [1e-3, 0.0, sharp], np.float32)
    linearised = _linearised if kernels() is None else _linearised_natively
    template, normal, solver, project = linearised(image, whole, (radius, stride), window, ridge)
    return PatchModel(whole, offsets, window, template, normal, ridge, solver, project, samples, radius)


def _linearised(
    image: npt.NDArray[Any], whole: Whole, extent: tuple[int, int], window: Float32, ridge: Float32
) -> tuple[Float32, Float32, Float32, Float32]:
    """template, normal, solver and project of `PatchModel`; extent: radius and stride, pixels."""
    axes = axes_of(len(ridge))
    moving = 3 * axes
    template, gradients, laplacian = _template(image, whole, *extent)
    lever = (patch_window(*extent)[0] / extent[0]).T
    basis = np.empty((len(whole), len(ridge), template.shape[1]), np.float32)
    basis[:, :axes] = gradients[:, :axes]
    for axis in range(axes):
        np.multiply(gradients[:, axis, None], lever, out=basis[:, axes + 2 * axis : axes + 2 * axis + 2])
    basis[:, moving] = template - (template @ window)[:, None]
    basis[:, moving + 1] = 1.0
    basis[:, moving + 2] = laplacian
    weighted = basis * window
    normal = weighted @ basis.transpose(0, 2, 1)
    solver = np.linalg.inv(normal.astype(np.float64) + np.diag(ridge)).astype(np.float32)
    return template, normal, solver, solver @ weighted


def _linearised_natively(
    image: npt.NDArray[Any], whole: Whole, extent: tuple[int, int], window: Float32, ridge: Float32
) -> tuple[Float32, Float32, Float32, Float32]:
    """`_linearised` by a compiled kernel."""
    count, samples, unknowns = len(whole), len(window), len(ridge)
    template = np.empty((count, samples), np.float32)
    normal, solver = (np.empty((count, unknowns, unknowns), np.float32) for _ in range(2))
    project = np.empty((count, unknowns, samples), np.float32)
    values = np.ascontiguousarray(image, dtype=np.float32)
    native = kernels()
    assert native is not None
    native(
        "macvo_linearise", values, *values.shape, whole, count, math.isqrt(samples), extent[1], axes_of(unknowns),
        window, ridge, template, normal, solver, project,
    )  # fmt: skip
    return template, normal, solver, project


def axes_of(unknowns: int) -> int:
    """A, of P = 3 A + 3 unknowns."""
    return unknowns // 3 - 1


def _template(image: npt.NDArray[Any], whole: Whole, radius: int, stride: int) -> tuple[Float32, Float32, Float32]:
    """(N, S) values of an (H, W) image around (N, 2) whole pixels, their (N, 2, S) gradients and (N, S) Laplacian.

    The pixels lie at least radius + 1 from the edge.
    """
    side = 2 * radius + 3
    corner = whole - (radius + 1)
    around = sliding_window_view(image, (side, side))[corner[:, 1], corner[:, 0]].astype(np.float32, copy=False)
    middle, before, after = slice(1, -1, stride), slice(0, -2, stride), slice(2, None, stride)
    count, across_it = len(whole), 2 * (radius // stride) + 1
    samples = across_it**2
    gradients = np.empty((count, 2, samples), np.float32)
    across = gradients.reshape(count, 2, across_it, across_it)
    np.subtract(around[:, middle, after], around[:, middle, before], out=across[:, 0])
    np.subtract(around[:, after, middle], around[:, before, middle], out=across[:, 1])
    gradients *= np.float32(0.5)
    here = around[:, middle, middle]
    beside = around[:, middle, after] + around[:, middle, before] + around[:, after, middle] + around[:, before, middle]
    return here.reshape(count, samples), gradients, (beside - 4 * here).reshape(count, samples)


@lru_cache(maxsize=4)
def patch_window(radius: int, stride: int) -> tuple[Float32, Float32]:
    """(P, 2) offsets and (P,) Gaussian window of sum 1."""
    side = np.arange(-radius, radius + 1, stride, dtype=np.float32)
    u, v = np.meshgrid(side, side)
    offsets = np.stack((u.ravel(), v.ravel()), axis=-1)
    window = np.exp(-0.5 * (offsets**2).sum(axis=1) / (0.5 * radius) ** 2)
    return offsets, (window / window.sum()).astype(np.float32)
