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

"""Sub-pixel refinement of matches at keypoints: Gauss-Newton on a patch, with gain, offset and blur.

The patch of the source image is compared with the target image warped by a *plane*: an affine map that starts as the
plane through the dense match around the keypoint, foreshortened as the motion says (`foreshortening.py`). Slant and
perspective inside the patch therefore do not bias the shift, and neither does the noise of the dense match. Unknowns:
shift (u, v; only u for stereo), the plane's slopes, gain, offset and blur (`patch_model.py`). Vectorised.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from macvo_ros.matching.native.library import kernels
from macvo_ros.matching.patch_fit import Place, Search, fit_patches, inside
from macvo_ros.matching.patch_model import PatchModel, linearise, patch_window

Float32 = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]
Grey = npt.NDArray[np.uint8]

_ITERATIONS = 3
_MAX_SHIFT = 1.0
"""A refinement further than this from the dense match is not one, pixels of what was matched."""
_PLANE = (18, 9)
"""Radius and stride of the samples that the plane through the dense match is fitted to, pixels of what was matched."""


@dataclass(frozen=True, eq=False)
class Refinement:
    """What refinement found at N keypoints along A axes.

    displacement: (N, A) pixels, refined, or that of the dense match where refinement failed.
    patch_var: (N, A) least-squares variance, pixels^2; ok: (N,) bool, it converged near.
    likeness: (N,) normalised correlation of the two patches, 1 for the same, about 0 for unrelated ones.
    bend: (N,) root mean square by which the dense match around departs from a plane, pixels.
    """

    displacement: Float64
    patch_var: Float64
    ok: npt.NDArray[np.bool_]
    likeness: Float64
    bend: Float64


@dataclass(frozen=True)
class RefinedCoefficients:
    """var = floor^2 + patch^2 (least-squares variance) + dense^2 (variance of the dense match); floor in pixels."""

    floor: float
    patch: float
    dense: float

    def variance(self, dense_var: Float64, refinement: Refinement) -> Float64:
        """(N, A) variance after refinement from that before; where refinement failed, that before."""
        after = self.floor**2 + self.patch**2 * refinement.patch_var + self.dense**2 * dense_var
        return np.where(refinement.ok[:, None], after, dense_var)


def refine_matches(
    source: Grey | Float32,
    target: Grey | Float32,
    dense: Float32,
    pixel: Float64,
    axes: int,
    *,
    radius: int = 7,
    stride: int = 1,
    foreshortening: Float64 | None = None,
    rows: Float64 | None = None,
) -> Refinement:
    """Refine matches from `source` to `target` around the (h, w, axes) dense match at (N, 2) source pixels.

    axes: 2 for flow; 1 for stereo, where dense is the horizontal displacement (minus the disparity).
    radius: of the patch, pixels, a multiple of stride; stride: between its samples (smooth the images above 1).
    The patch is that of the nearest whole pixel whose patch lies in the image. See `refine_patches`.
    """
    return refine_patches(linearise(source, pixel, radius, stride, axes), target, dense, pixel, foreshortening, rows)


def refine_patches(
    model: PatchModel,
    target: Grey | Float32,
    dense: Float32,
    pixel: Float64,
    foreshortening: Float64 | None = None,
    rows: Float64 | None = None,
) -> Refinement:
    """Refine the matches of patches, linearised in an image of the target's size, from a dense match at (N, 2) pixels.

    dense: (h, w, axes) of the images, or of smaller copies of them, in pixels of what was matched.
    foreshortening: (N, 2) 1/pixel, see `foreshortening.py`; None: none.
    rows: (N,) pixels by which the match lies below the plane's place in the target, as a stereo match does whose
    cameras are turned (`row_field.py`); None: none does.
    The plane through the dense match leads from the patch's whole pixel to the keypoint.
    """
    whole, count, axes = model.whole, len(pixel), dense.shape[2]
    reduction = np.array(target.shape[::-1]) / np.array(dense.shape[1::-1])
    largest = np.float32(_MAX_SHIFT * reduction.max())
    start, slope, bend = fitted_plane(dense, whole, reduction)
    warp = np.eye(2, dtype=np.float32)[None].repeat(count, axis=0)
    warp[:, :axes] += slope
    middle = whole.astype(np.float32)
    middle[:, :axes] += start
    if rows is not None:
        middle[:, 1] += rows
    values = np.ascontiguousarray(target, dtype=np.float32)
    expected = Place(middle, warp, foreshortening=foreshortening)
    fit = fit_patches(model, model.offsets, model.window, values, expected, Search(_ITERATIONS, float(largest) / 2))
    ok = (np.abs(fit.shift).max(axis=1) <= largest) & np.isfinite(fit.shift).all(axis=1)
    ok &= inside(expected, model.offsets, target.shape)
    slope += np.where(ok[:, None, None], fit.bent / np.float32(model.radius), np.float32(0))
    at_pixel = start + (slope @ (pixel - whole)[:, :, None])[:, :, 0]
    return Refinement(
        displacement=np.where(ok[:, None], fit.shift, 0.0) + at_pixel,
        patch_var=(fit.noise[:, None] * model.spread / fit.answer**2).astype(np.float64),
        ok=ok,
        likeness=fit.likeness,
        bend=bend,
    )


def fitted_plane(dense: Float32, pixel: Whole, reduction: Float64) -> tuple[Float32, Float32, Float64]:
    """Values (N, A) of an (H, W, A) map at (N, 2) pixels, its slopes (N, A, 2) along u and v around, and bend (N,).

    Weighted least squares over a symmetric window, where offset and slopes do not mix; the value is the map's own.
    reduction: (2,) pixels of the image per pixel of the map; pixels, and what is returned, are those of the image.
    """
    at = (pixel + 0.5) / reduction - 0.5
    value, slope, bend = (_fitted if kernels() is None else _fitted_natively)(dense, at)
    if (reduction == 1.0).all():
        return value, slope, bend
    axes, scale = dense.shape[2], reduction.astype(np.float32)
    return value * scale[:axes], slope * (scale[:axes, None] / scale), bend * float(reduction.mean())


def _fitted(dense: Float32, at: Float64) -> tuple[Float32, Float32, Float64]:
    """The same in pixels of the map, at (N, 2) sub-pixel places of it."""
    whole = np.rint(at).astype(np.int64)
    offsets, window, lever = _plane_window()
    height, width, axes = dense.shape
    side = np.arange(-_PLANE[0], _PLANE[0] + 1, _PLANE[1])
    index = _index(whole, side, height, width)
    middle = len(offsets) // 2
    values = [dense[..., axis].reshape(-1).take(index) for axis in range(axes)]
    slope: Float32 = np.stack([(around - around[:, middle, None]) @ lever for around in values], axis=1)
    departure = [
        around - (around @ window)[:, None] - along @ offsets.T
        for around, along in zip(values, slope.swapaxes(0, 1), strict=True)
    ]
    bend = np.sqrt(sum((each * each) @ window for each in departure), dtype=np.float64)
    value = np.stack([around[:, middle] for around in values], axis=1)
    value += (slope @ (at - whole).astype(np.float32)[:, :, None])[:, :, 0]
    return value, slope, bend


def _fitted_natively(dense: Float32, at: Float64) -> tuple[Float32, Float32, Float64]:
    """`_fitted` by a compiled kernel."""
    height, width, axes = dense.shape
    offsets, window, lever = _plane_window()
    value, slope = np.empty((len(at), axes), np.float32), np.empty((len(at), axes, 2), np.float32)
    bend = np.empty(len(at))
    native = kernels()
    assert native is not None
    native(
        "macvo_fit_planes", dense, height, width, np.array(dense.strides) // dense.itemsize, axes,
        np.ascontiguousarray(at), len(at), math.isqrt(len(offsets)), _PLANE[1], window, lever, value, slope, bend,
    )  # fmt: skip
    return value, slope, bend


@lru_cache(maxsize=1)
def _plane_window() -> tuple[Float32, Float32, Float32]:
    """(S, 2) offsets of the samples of a plane, (S,) window, (S, 2) by which samples become slopes."""
    offsets, window = patch_window(*_PLANE)
    lever = window[:, None] * offsets / (window[:, None] * offsets**2).sum(axis=0)
    return offsets, window, np.asarray(lever, dtype=np.float32)


def _index(whole: Whole, side: Whole, height: int, width: int) -> Whole:
    """(N, S * S) flat indices of the pixels at all pairs of (S,) offsets from (N, 2) pixels; outside is the edge."""
    column = np.clip(whole[:, 0, None] + side, 0, width - 1)
    row = np.clip(whole[:, 1, None] + side, 0, height - 1) * width
    return np.asarray((row[:, :, None] + column[:, None, :]).reshape(len(whole), len(side) ** 2))
