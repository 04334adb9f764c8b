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

"""Stereo search along the rows: semi-global matching, coarse to fine, over the whole range that the image allows.

A coarse search at half the size of the given images covers every disparity that is possible; what it finds bounds the
range of the fine one, whose time grows with that range: a street pays for 40 disparities, a gripper before the lens
for all of them. Pixels whose match is not confirmed by the match back (hidden from the right camera, or beyond its left
edge) are known, and filled from the background beside them. A Gauss-Newton step or two along the row, over a small
window, then take off the bias that semi-global matching has towards whole pixels.

Matches do not leave their rows here: by how much the images really do is measured apart (`epipolar_error.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.geometry.pixel_grid import pixel_grid
from macvo_ros.images.frame import Image
from macvo_ros.matching.native.library import kernels

Float32 = npt.NDArray[np.float32]
Mask = npt.NDArray[np.bool_]
Whole = npt.NDArray[np.int16]

_FRACTION = 16
"""OpenCV's disparities are whole numbers of this fraction of a pixel."""
_ROUNDED = 16
"""OpenCV searches multiples of this many disparities."""
_FARTHEST = int(np.iinfo(np.int16).max) // _FRACTION - _ROUNDED
"""Pixels of disparity that 16 bits hold, less those by which a range is rounded up."""
_BLOCK = 3
_SMOOTH, _JUMP = 16 * _BLOCK**2, 64 * _BLOCK**2
"""Penalties of a step of one pixel and of any other: twice what OpenCV's documentation advises for this block. On bare
walls fewer matches go astray so, at the edges of things a few more."""
_AGREE = 1
"""Pixels that the match back from the right image may differ by."""
_SPECKLE, _STEADY = 50, 1
"""Connected pixels that a match needs to count, and pixels by which neighbours among them may differ: what has no match
(hidden, or beyond the edge) finds one by chance in spots, from which whole rows would be filled."""
_WIDEST = 0.4
"""Share of the image's width that disparities may reach where nothing else is said."""
_BEYOND, _LEAST = 2.0, 16.0
"""Pixels beyond infinity that noise and cameras turned against each other reach; the least range worth a search."""
_TAIL = 0.002
"""Share of the coarse disparities that the range of the fine search may leave out at either end."""
_MARGIN = 3
"""Pixels of the fine search by which its range is wider than what the coarse search found."""
_STEPS, _WINDOW, _RIDGE, _LONGEST = 2, (7, 7), 4.0, 0.5
"""Gauss-Newton: steps, window, what is added to the mean squared gradient (grey levels^2), longest step (pixels)."""


@dataclass(frozen=True, eq=False)
class RowMatch:
    """Disparities of an image, in its own pixels.

    disparity: (H, W) float32: left pixel (u, v) is right pixel (u - disparity, v); finite everywhere.
    confirmed: (H, W) whether the match back from the right image agrees; elsewhere the disparity is a guess.
    """

    disparity: Float32
    confirmed: Mask


def disparity_range(camera: StereoCamera, min_depth: float) -> tuple[float, float]:
    """Smallest and largest disparity that are possible, pixels of the image.

    min_depth: metres; 0: whatever leaves most of the image to both cameras, disparities up to a share of the width.
    """
    offset = camera.disparity_offset
    widest = _WIDEST * camera.width
    if min_depth > 0:
        widest = min(float(camera.disparity(min_depth)) - offset, camera.width - 1.0)
    return offset - _BEYOND, offset + max(widest, _LEAST)


def search_rows(left: Image, right: Image, lowest: float, highest: float) -> RowMatch:
    """Match two grey images along their rows; lowest, highest: disparities that are possible, pixels."""
    reach = min(left.shape[1] + _ROUNDED, _FARTHEST)  # beyond its width there is no image to search
    lowest, highest = (max(-reach, min(limit, reach)) for limit in (lowest, highest))
    size = max(left.shape[1] // 2, 1), max(left.shape[0] // 2, 1)
    small = [cv2.resize(image, size, interpolation=cv2.INTER_AREA) for image in (left, right)]
    coarse = _semi_global(small[0], small[1], int(np.floor(lowest / 2)), int(np.ceil(highest / 2)))
    found = coarse[coarse >= np.floor(lowest / 2) * _FRACTION] * (1 / _FRACTION)
    if len(found):
        # Rounded up to what OpenCV searches, the coarse range reaches beyond the one that was asked for.
        tails = np.clip(2 * np.quantile(found, (_TAIL, 1 - _TAIL)), lowest, highest)
        lowest, highest = max(lowest, tails[0] - _MARGIN), min(highest, tails[1] + _MARGIN)
    lowest = int(np.floor(lowest))
    fine = _semi_global(left, right, lowest, int(np.ceil(highest)))
    if kernels() is None or left.shape[1] < 2:
        disparity, confirmed = _filled(fine, lowest)
        return RowMatch(_sub_pixel(left, right, disparity), confirmed)
    return RowMatch(*_finished_natively(left, right, fine, lowest))


def _semi_global(left: Image, right: Image, lowest: int, highest: int) -> Whole:
    """(H, W) disparities from lowest to highest, in fractions, below lowest where none is unique and confirmed."""
    count = -(-max(highest + 1 - lowest, 1) // _ROUNDED) * _ROUNDED
    native = kernels()
    if native is not None:
        raw = np.empty(left.shape, np.int16)
        images = np.ascontiguousarray(left), np.ascontiguousarray(right)
        native("macvo_semi_global", *images, *left.shape, lowest, count, _SMOOTH, _JUMP, _AGREE, raw)
        found = np.asarray(cv2.medianBlur(raw, 3))  # as OpenCV's own does
        cv2.filterSpeckles(found, (lowest - 1) * _FRACTION, _SPECKLE, _STEADY * _FRACTION)
        return found
    # Columns nearer to the edge than the largest disparity are left out by OpenCV: there must be none.
    before, after = max(lowest + count, 0), max(-lowest, 0)
    wide = [cv2.copyMakeBorder(image, 0, 0, before, after, cv2.BORDER_REPLICATE) for image in (left, right)]
    matcher = cv2.StereoSGBM.create(
        minDisparity=lowest,
        numDisparities=count,
        blockSize=_BLOCK,
        P1=_SMOOTH,
        P2=_JUMP,
        disp12MaxDiff=_AGREE,
        preFilterCap=31,
        speckleWindowSize=_SPECKLE,
        speckleRange=_STEADY,
        mode=cv2.STEREO_SGBM_MODE_SGBM_3WAY,
    )
    return np.ascontiguousarray(np.asarray(matcher.compute(*wide))[:, before : before + left.shape[1]])


def _finished_natively(left: Image, right: Image, found: Whole, lowest: int) -> tuple[Float32, Mask]:
    """`_filled` and `_sub_pixel` by compiled kernels."""
    native = kernels()
    assert native is not None
    disparity, confirmed = np.empty(found.shape, np.float32), np.empty(found.shape, np.uint8)
    native("macvo_fill_rows", found, *found.shape, lowest * _FRACTION, disparity, confirmed)
    images = np.ascontiguousarray(left), np.ascontiguousarray(right)
    native("macvo_sub_pixel", *images, *left.shape, _STEPS, _WINDOW[0] // 2, _RIDGE, _LONGEST, disparity)
    return disparity, confirmed.view(np.bool_)


def _filled(found: Whole, lowest: int) -> tuple[Float32, Mask]:
    """Disparities in pixels and which of them lead into the right image.

    Every gap is filled by the smaller disparity beside it in its row: what is hidden is behind.
    """
    disparity = found.astype(np.float32) * np.float32(1 / _FRACTION)
    column = np.arange(found.shape[1], dtype=np.float32)
    known = (found >= lowest * _FRACTION) & (column - disparity >= 0) & (column - disparity <= found.shape[1] - 1)
    if not known.any():
        return np.zeros_like(disparity), known
    disparity[~known] = np.nan
    edge = cv2.copyMakeBorder(disparity, 0, 0, 1, 1, cv2.BORDER_CONSTANT, value=np.inf)
    here = np.arange(edge.size, dtype=np.int32).reshape(edge.shape)
    before, after = np.where(np.isfinite(edge), here, 0), np.where(np.isfinite(edge), here, edge.size)
    before[:, 0], after[:, -1] = here[:, 0], here[:, -1]
    before = np.maximum.accumulate(before.ravel()).reshape(edge.shape)[:, 1:-1]
    after = np.minimum.accumulate(after.ravel()[::-1])[::-1].reshape(edge.shape)[:, 1:-1]
    filled = np.minimum(edge.take(before), edge.take(after))
    empty = ~known.any(axis=1)
    if empty.any():
        nearest = np.flatnonzero(~empty)
        filled[empty] = filled[nearest[np.abs(np.flatnonzero(empty)[:, None] - nearest).argmin(axis=1)]]
    return np.asarray(filled, dtype=np.float32), known


def _sub_pixel(left: Image, right: Image, disparity: Float32) -> Float32:
    """The same after Gauss-Newton steps on the brightness of a window, less its mean."""
    u, v = cv2.split(pixel_grid(*left.shape))
    gradient = cv2.Scharr(left, cv2.CV_32F, 1, 0, scale=1 / 32)
    normal = cv2.boxFilter(gradient * gradient, -1, _WINDOW) + np.float32(_RIDGE)
    source, target = left.astype(np.float32), right.astype(np.float32)
    for _ in range(_STEPS):
        error = cv2.remap(target, u - disparity, v, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE) - source
        error -= cv2.boxFilter(error, -1, _WINDOW)
        step = cv2.boxFilter(gradient * error, -1, _WINDOW) / normal
        disparity = disparity + np.clip(step, -_LONGEST, _LONGEST)
    return disparity
