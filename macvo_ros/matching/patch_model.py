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

"""A patch of an image, linearised: how its samples change with a shift, slopes of the warp, gain and offset.

Gauss-Newton on patches needs the same matrices whoever asks (`patch_refinement.py`, `patch_tracking.py`): gradients are
those of the patch itself (inverse compositional), so the normal matrices are inverted once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

Float32 = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]

CONVERGED = 0.02
"""A step below this is the last one of a patch, pixels."""
READ_NOISE = 1.0
"""Of a grey level, grey levels: no patch is matched better than that."""
_NOISE = 2.0
"""Ordinary residual of a patch, grey levels, against which the certainty of the slopes is weighed."""
_RIDGE = 1.0
_LEAST_DEPTH = np.float32(0.5)
"""Of the depth in a patch's middle: at depth edges the plane through a patch may pass the camera; chosen."""
_SLOPE = 0.05
"""By how much slopes that a patch is expected with may be off (1 sigma), pixels per pixel."""


@dataclass(frozen=True, eq=False)
class PatchModel:
    """N patches of S samples around whole pixels, linearised in P = 3 A + 2 unknowns.

    Unknowns: shift along A axes (2; 1 along rows), two slopes of each axis in pixels at the patch's edge, gain and
    offset of brightness.

    whole: (N, 2) pixels in the middle. offsets: (S, 2) of the samples from there; window: (S,) their weights, of sum 1.
    template: (N, S) grey levels. basis: (N, P, S) their change with each unknown. normal: (N, P, P) weighted squares of
    it; ridge: (P,) what is added to its diagonal; solver: (N, P, P) inverse of that sum; project: (N, P, S) from a
    difference of grey levels to the unknowns. samples: effective number of them. radius: of the patch, pixels.
    """

    whole: Whole
    offsets: Float32
    window: Float32
    template: Float32
    basis: Float32
    normal: Float32
    ridge: Float32
    solver: Float32
    project: Float32
    samples: float
    radius: int

    @property
    def lever(self) -> Float32:
        """(2, S) offsets in radii: what a slope moves samples by."""
        return np.asarray((self.offsets / self.radius).T)


def linearise(image: npt.NDArray[Any], pixel: Float64, radius: int, stride: int, axes: int) -> PatchModel:
    """Patches of an (H, W) image around the whole pixels next to (N, 2) pixels whose patches lie in the image.

    radius: pixels, a multiple of stride (between samples; smooth the image above 1); less in a small image.
    """
    radius = min(radius, (min(image.shape) - 3) // 2 // stride * stride)
    offsets, window = patch_window(radius, stride)
    margin = radius + 1
    whole = np.clip(np.rint(pixel).astype(np.int64), margin, np.array(image.shape[::-1]) - 1 - margin)
    template, gradients = _template(image, whole, radius, stride)
    lever = (offsets / radius).T
    moving = 3 * axes
    basis = np.empty((len(pixel), moving + 2, template.shape[1]), np.float32)
    basis[:, :axes] = gradients[:, :axes]
    for axis in range(axes):
        np.multiply(gradients[:, axis, None], lever, out=basis[:, axes + 2 * axis : axes + 2 * axis + 2])
    basis[:, moving] = template - (template @ window)[:, None]
    basis[:, moving + 1] = 1.0
    weighted = basis * window
    normal = weighted @ basis.transpose(0, 2, 1)
    samples = float(window.sum() ** 2 / (window**2).sum())
    steady = _NOISE**2 / samples / (_SLOPE * radius) ** 2
    ridge = np.array([_RIDGE / len(offsets)] * axes + [steady] * 2 * axes + [1e-3, 0.0], np.float32)
    solver = np.linalg.inv(normal.astype(np.float64) + np.diag(ridge)).astype(np.float32)
    return PatchModel(
        whole, offsets, window, template, basis, normal, ridge, solver, solver @ weighted, samples, radius
    )


def nearer(foreshortening: Float64, offsets: Float32) -> Float32:
    """(N, S) by which (S, 2) offsets are farther apart for perspective, of (N, 2) `foreshortening.py`."""
    return np.asarray(1 / np.maximum(1 + foreshortening.astype(np.float32) @ offsets.T, _LEAST_DEPTH))


def likeness(a: Float32, b: Float32, window: Float32) -> Float64:
    """Normalised correlation of (N, P) patches under a (P,) window."""
    a = a - (a @ window)[:, None]
    b = b - (b @ window)[:, None]
    return np.asarray((a * b) @ window / np.sqrt((a * a) @ window * ((b * b) @ window) + 1e-6), dtype=np.float64)


def read_bilinear(image: Float32, u: Float32, v: Float32) -> Float32:
    """Bilinear reads of an (H, W) image at (N, P) pixels (u, v); outside is the edge."""
    if _remap_is_exact():
        return np.asarray(cv2.remap(image, u, v, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE), dtype=np.float32)
    height, width = image.shape
    u, v = np.clip(u, 0, width - 1), np.clip(v, 0, height - 1)
    column, row = u.astype(np.int32), v.astype(np.int32)
    np.minimum(column, max(width - 2, 0), out=column)
    np.minimum(row, max(height - 2, 0), out=row)
    u -= column
    v -= row
    index = row * width + column
    right, down = min(1, width - 1), min(1, height - 1) * width
    flat = image.ravel()
    upper, lower = flat.take(index), flat.take(index + down)
    upper += u * (flat.take(index + right) - upper)
    lower += u * (flat.take(index + (down + right)) - lower)
    upper += v * (lower - upper)
    return np.asarray(upper, dtype=np.float32)


def _template(image: npt.NDArray[Any], whole: Whole, radius: int, stride: int) -> tuple[Float32, Float32]:
    """(N, P) values of an (H, W) image around (N, 2) whole pixels, and their (N, 2, P) gradients along u and v.

    The pixels lie at least radius + 1 from the edge.
    """
    side = 2 * radius + 3
    corner = whole - (radius + 1)
    around = sliding_window_view(image, (side, side))[corner[:, 1], corner[:, 0]].astype(np.float32, copy=False)
    middle, before, after = slice(1, -1, stride), slice(0, -2, stride), slice(2, None, stride)
    count, samples = len(whole), (2 * (radius // stride) + 1) ** 2
    gradients = np.empty((count, 2, samples), np.float32)
    across = gradients.reshape(count, 2, 2 * (radius // stride) + 1, -1)
    np.subtract(around[:, middle, after], around[:, middle, before], out=across[:, 0])
    np.subtract(around[:, after, middle], around[:, before, middle], out=across[:, 1])
    gradients *= np.float32(0.5)
    return around[:, middle, middle].reshape(count, samples), gradients


@lru_cache(maxsize=1)
def _remap_is_exact() -> bool:
    """Whether OpenCV reads where it is asked to: version 4 rounds positions to 1/32 pixel, more than our errors."""
    ramp = np.arange(8, dtype=np.float32)[None].repeat(8, axis=0)
    at = np.full((1, 1), 3.3, np.float32)
    return abs(float(cv2.remap(ramp, at, at, cv2.INTER_LINEAR)[0, 0]) - 3.3) < 1e-4


@lru_cache(maxsize=4)
def patch_window(radius: int, stride: int) -> tuple[Float32, Float32]:
    """(P, 2) offsets and (P,) Gaussian window of sum 1."""
    side = np.arange(-radius, radius + 1, stride, dtype=np.float32)
    u, v = np.meshgrid(side, side)
    offsets = np.stack((u.ravel(), v.ravel()), axis=-1)
    window = np.exp(-0.5 * (offsets**2).sum(axis=1) / (0.5 * radius) ** 2)
    return offsets, (window / window.sum()).astype(np.float32)
