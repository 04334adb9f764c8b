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

"""Gauss-Newton that finds linearised patches (`patch_model.py`) in another image, near where they are expected.

Whoever looks for patches (`patch_refinement.py`, `patch_tracking.py`) says where and how warped they are expected;
shift, slopes of the warp, gain, offset and blur are solved for. Vectorised over all patches, or compiled.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import cv2
import numpy as np
import numpy.typing as npt

from macvo_ros.matching.native.library import kernels
from macvo_ros.matching.patch_model import axes_of

Float32 = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]

_CONVERGED = 0.02
"""A step below this is the last one of a patch, pixels."""
_ASIDE = 0.5
"""Pixels to either side, from where it is asked whether a patch would be found again. Chosen: of 0.25, 0.5, 1 and 1.5
the one with which errors in a plain and noisy corridor are covered best (7, 5, 9 and 15 of 31 runs fail; no log)."""
_READ_NOISE = 1.0
"""Of a grey level, grey levels: no patch is matched better than that."""
_LEAST_DEPTH = 0.5
"""Of the depth in a patch's middle: at depth edges the plane through a patch may pass the camera; chosen."""


class Linearised(Protocol):
    """What of N patches of S samples in P unknowns is needed: see `PatchModel`."""

    @property
    def template(self) -> Float32: ...

    @property
    def project(self) -> Float32: ...

    @property
    def explained(self) -> Float32: ...


@dataclass(frozen=True, eq=False)
class Place:
    """Where N patches are expected.

    middle: (N, 2) pixels; warp: (N, 2, 2) offsets there per offset here. along: (N, 2, A) by which what is solved for
    becomes pixels there; None: the first A axes there. foreshortening: (N, 2) 1/pixel, see `foreshortening.py`.
    """

    middle: Float32
    warp: Float32
    along: Float32 | None = None
    foreshortening: Float64 | None = None


@dataclass(frozen=True)
class Search:
    """iterations: at most; longest: step of any unknown, pixels.

    aside: pixels to either side, from where it is asked whether a patch would be found again; 0: it is not asked.
    """

    iterations: int
    longest: float
    aside: float = _ASIDE


@dataclass(frozen=True, eq=False)
class PatchFit:
    """What was found of N patches.

    shift: (N, A) pixels; bent: (N, A, 2) change of the slopes, pixels at the patch's edge. noise: (N,) mean squared
    difference of grey levels that is left. likeness: (N,) normalised correlation of the two, 1 for the same, about 0
    for unrelated ones. answer: (N, A) by how much a shift comes out larger where the patch is looked for a pixel
    farther: 1 for the same texture, about 0 for noise, whose gradients are in one of the images only; 1: not asked.
    """

    shift: Float32
    bent: Float32
    noise: Float32
    likeness: Float64
    answer: Float32


def inside(expected: Place, offsets: Float32, shape: tuple[int, ...]) -> npt.NDArray[np.bool_]:
    """(N,) whether patches lie in an image of `shape` (H, W) with all their samples; offsets: (S, 2) of these, pixels.

    What a patch shows beyond the edge is not there to be compared: read as the grey of the edge itself, it pulls the
    patch across it. Stereo matches 10 to 15 pixels from the edge came out 0.14 pixels too large on the average,
    followed points 0.07 too far outward, so that motions were 0.01 to 0.04 % too long (four rendered walks, no log).
    """
    extent = np.abs(expected.warp) @ offsets.max(axis=0)
    last = np.array(shape[::-1], dtype=np.float32) - 1
    return np.asarray(((expected.middle >= extent) & (expected.middle <= last - extent)).all(axis=1))


def fit_patches(
    patches: Linearised,
    offsets: Float32,
    window: Float32,
    image: Float32,
    expected: Place,
    search: Search,
    which: Whole | None = None,
) -> PatchFit:
    """Find patches in an (H, W) image; offsets: (S, 2) of their samples, pixels, window: (S,) weights of sum 1.

    which: (N,) numbers of those to find, as there are more; None: all.
    """
    if kernels() is None or min(image.shape) < 2:
        shift, bent, solution, square, alike, answer = _iterated(
            _Gathered.of(patches, which), offsets, window, image, expected, search
        )
    else:
        rows = np.arange(len(patches.project)) if which is None else which
        shift, bent, solution, square, alike, answer = _iterated_natively(
            patches, rows, offsets, window, image, expected, search
        )
    matrix = patches.explained if which is None else patches.explained[which]
    explained = ((solution[:, None] @ matrix)[:, 0] * solution).sum(axis=1)
    noise = np.maximum(square - explained, 0) + np.float32(_READ_NOISE**2)
    if search.aside:
        # Unrelated images answer by chance, by about one over the root of the number of samples.
        answer = np.clip(answer, math.sqrt(float(window @ window)), 1.0)
    return PatchFit(shift, bent, noise, alike.astype(np.float64), answer)


_Iterated = tuple[Float32, Float32, Float32, Float32, Float32, Float32]
"""shift, bent, (N, P) solution of the last step, (N,) weighted square of the difference before it, likeness, answer."""


@dataclass(frozen=True, eq=False)
class _Gathered:
    """Some of many patches, one after the other."""

    template: Float32
    project: Float32

    @staticmethod
    def of(patches: Linearised, which: Whole | None) -> _Gathered:
        """Those of (N,) numbers; None: all."""
        rows = slice(None) if which is None else which
        return _Gathered(patches.template[rows], patches.project[rows])


def _iterated(
    patches: _Gathered, offsets: Float32, window: Float32, image: Float32, expected: Place, search: Search
) -> _Iterated:
    count, unknowns = patches.project.shape[:2]
    axes = axes_of(unknowns)
    positions = expected.warp @ offsets.T  # (N, 2, S)
    if expected.foreshortening is not None:
        positions *= _nearer(expected.foreshortening, offsets)[:, None]
    positions += expected.middle[:, :, None]
    along = np.eye(2, axes, dtype=np.float32)[None].repeat(count, axis=0) if expected.along is None else expected.along
    lever = (offsets / offsets[-1, 0]).T
    shift, bent = np.zeros((count, axes), np.float32), np.zeros((count, axes, 2), np.float32)
    error, solution = np.zeros_like(patches.template), np.zeros((count, unknowns), np.float32)
    active: slice | Whole = slice(None)
    for _ in range(search.iterations):
        moved = positions[active] + along[active] @ (shift[active, :, None] + bent[active] @ lever)
        error[active] = _read_bilinear(image, moved[:, 0], moved[:, 1]) - patches.template[active]
        solution[active] = (patches.project[active] @ error[active][..., None])[..., 0]
        step = np.clip(solution[active, : 3 * axes], -search.longest, search.longest)
        shift[active] -= step[:, :axes]
        bent[active] -= step[:, axes:].reshape(-1, axes, 2)
        moves = np.arange(count)[active][np.abs(step[:, :axes]).max(axis=1) >= _CONVERGED]
        if not len(moves):
            break
        active = moves
    alike = _likeness(patches.template, error + patches.template, window)
    answer = np.ones((count, axes), np.float32)
    for axis in range(axes) if search.aside else ():
        aside = np.zeros((axes, 1), np.float32)
        aside[axis] = search.aside
        before, after = (
            _read_bilinear(image, moved[:, 0], moved[:, 1])
            for moved in (positions + along @ (shift[..., None] + bent @ lever + step) for step in (-aside, aside))
        )
        answer[:, axis] = (patches.project[:, axis] * (after - before)).sum(axis=1) / np.float32(2 * search.aside)
    return shift, bent, solution, (error**2) @ window, alike, answer


def _iterated_natively(
    patches: Linearised,
    which: Whole,
    offsets: Float32,
    window: Float32,
    image: Float32,
    expected: Place,
    search: Search,
) -> _Iterated:
    """`_iterated` by a compiled kernel, of patches of (N,) numbers."""
    count, unknowns = len(which), patches.project.shape[1]
    axes = axes_of(unknowns)
    shift, bent = np.empty((count, axes), np.float32), np.empty((count, axes, 2), np.float32)
    solution, square, alike = (np.empty(shape, np.float32) for shape in ((count, unknowns), count, count))
    answer = np.empty((count, axes), np.float32)
    native = kernels()
    assert native is not None
    native(
        "macvo_find_patches", image, *image.shape, count, len(offsets), axes, search.iterations, search.longest,
        _CONVERGED, offsets, offsets / offsets[-1, 0], window, which, *map(_plain, (patches.template, patches.project)),
        _plain(expected.middle), _plain(expected.warp), _plain(expected.along), _plain(expected.foreshortening),
        _LEAST_DEPTH, search.aside, shift, bent, solution, square, alike, answer,
    )  # fmt: skip
    return shift, bent, solution, square, alike, answer


def _plain(values: npt.NDArray[np.floating] | None) -> Float32 | None:
    """As a kernel takes it."""
    return None if values is None else np.ascontiguousarray(values, dtype=np.float32)


def _nearer(foreshortening: Float64, offsets: Float32) -> Float32:
    """(N, S) by which (S, 2) offsets are farther apart for perspective, of (N, 2) `foreshortening.py`."""
    return np.asarray(1 / np.maximum(1 + foreshortening.astype(np.float32) @ offsets.T, np.float32(_LEAST_DEPTH)))


def _likeness(a: Float32, b: Float32, window: Float32) -> Float32:
    """Normalised correlation of (N, P) patches under a (P,) window."""
    a = a - (a @ window)[:, None]
    b = b - (b @ window)[:, None]
    return np.asarray((a * b) @ window / np.sqrt((a * a) @ window * ((b * b) @ window) + 1e-6), dtype=np.float32)


def _read_bilinear(image: Float32, u: Float32, v: Float32) -> Float32:
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


@lru_cache(maxsize=1)
def _remap_is_exact() -> bool:
    """Whether OpenCV reads where it is asked to: version 4 rounds positions to 1/32 pixel, more than our errors."""
    ramp = np.arange(8, dtype=np.float32)[None].repeat(8, axis=0)
    at = np.full((1, 1), 3.3, np.float32)
    return abs(float(cv2.remap(ramp, at, at, cv2.INTER_LINEAR)[0, 0]) - 3.3) < 1e-4
