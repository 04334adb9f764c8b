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

"""How far stereo matches leave their rows, measured at certain matches only.

For a search that is bound to rows (`stereo_search.py`), corners whose match is confirmed are tracked from there with
Lucas-Kanade, free in both directions. Where that ends at the same column and leads back to the corner, its vertical
part is what rectification is off by, or what moved between two exposures. A matcher that is free in both directions
itself (`flowformer`) has that part and its variance at every pixel.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from macvo_ros.images.frame import Image
from macvo_ros.matching.stereo_search import RowMatch

Float32 = npt.NDArray[np.float32]

_SPACING = 12
"""Side of the squares of which the best corner is taken, pixels."""
_CORNER = 8.0
"""Least eigenvalue of a corner's structure tensor, (grey levels / pixel)^2: with noise of two grey levels, tracking it
is good to 2 / sqrt(225 * 8) = 0.05 pixels."""
_TENSOR = 255**2 / 4
"""From the unit of OpenCV's corner measure to that one."""
_WINDOW = (15, 15)
_SMOOTH = 1.0
"""Sigma of the blur before tracking, pixels. Read between the pixels of a sharp image, a quarter of a pixel seems to be
0.29 (`test/test_epipolar_error.py`)."""
_PHASES = np.array([-0.375, -0.125, 0.125, 0.375], np.float32)
"""Pixels between the rows of the image at which patches are tracked, in turn: what is read between pixels is drawn to
them, and where the other end alone is read so, shifts of half a pixel come out a tenth too large."""
_ENDS = (cv2.TERM_CRITERIA_COUNT | cv2.TERM_CRITERIA_EPS, 10, 0.02)
"""Tracking: steps at most, and pixels of the last one."""
_SAME_COLUMN = 0.5
"""Pixels that tracking may end beside the column of the match."""
_SAME_PLACE = 0.5
"""Pixels that tracking back may end beside the corner: from a wrong match it ends anywhere."""
_CELLS = (3, 4)
"""Rows and columns of the coarse grid over which the vertical part is smoothed."""
_ENOUGH = 6
"""Corners for the quartiles of a cell to mean something."""
_STRIDE, _CERTAIN, _ENOUGH_PIXELS = 4, 0.1, 40
"""Dense matches: rows and columns between those looked at, sigma of certain ones (pixels), those that a cell needs."""
_EVEN_GREY = 1.0
"""Grey levels added to both ranges of brightness that are compared: in a grey wall there is none; chosen."""
_EVEN = 0.05
"""Pixels: cells whose median is more certain than this count alike."""


@dataclass(frozen=True)
class RowCheck:
    """How well stereo matches keep to their rows.

    epipolar_var: mean square of the smooth part of their vertical component, pixels^2; 0 where nothing is certain.
    corners: (N, 4) pixel u, v, disparity and vertical component of certain matches, pixels; None where not known.
    """

    epipolar_var: float = 0.0
    corners: npt.NDArray[np.float64] | None = field(default=None, compare=False)


def check_rows(left: Image, right: Image, match: RowMatch, scale: float = 1.0, usable: Image | None = None) -> RowCheck:
    """Check the stereo match of two grey images; scale: pixels of the unit wanted per pixel of these images.

    usable: (H, W) above 0 where corners may lie; None: anywhere.
    """
    corner = _corners(left)
    if usable is not None:
        corner = corner[usable[corner[:, 1], corner[:, 0]] > 0]
    if not len(corner):
        return RowCheck()
    confirmed = match.confirmed[corner[:, 1], corner[:, 0]]
    pixel, vertical = vertical_parts(left, right, match, corner[confirmed])
    variance = scale**2 * smooth_variance(pixel, vertical, left.shape)
    disparity = match.disparity[pixel[:, 1], pixel[:, 0]]
    corners = np.column_stack(((pixel + 0.5) * scale - 0.5, scale * disparity, scale * vertical)).astype(np.float64)
    return RowCheck(variance, corners)


def smooth_variance(pixel: npt.NDArray[Any], vertical: npt.NDArray[Any], shape: tuple[int, ...]) -> float:
    """Mean square of the smooth part of (N,) vertical components at (N, 2) pixels of an image of that shape, pixels^2.

    The smooth part is the median over the corners of each cell of a coarse grid. Cells count by the certainty of their
    median, which follows from the spread of the corners, and what that spread itself adds to the square is taken off.
    """
    sizes = np.array(shape[:2])
    row, column = np.minimum((pixel[:, ::-1] * _CELLS // sizes).astype(np.int64), np.array(_CELLS) - 1).T
    cell = row * _CELLS[1] + column
    squares, weights = [], []
    for each in np.unique(cell):
        values = vertical[cell == each]
        if len(values) >= _ENOUGH:
            lower, median, upper = np.quantile(values, (0.25, 0.5, 0.75))
            # For Gaussian values: quartiles 1.35 sigma apart, the median's variance pi / 2 times that of the mean.
            variance = 0.5 * np.pi * ((upper - lower) / 1.35) ** 2 / len(values)
            squares.append(median**2 - variance)
            weights.append(1 / (variance + _EVEN**2))
    return max(float(np.average(squares, weights=weights)), 0.0) if squares else 0.0


def dense_epipolar_variance(vertical: Float32, variance: Float32) -> float:
    """The same of a dense match; vertical, variance: (H, W) its vertical component, pixels, and that one's variance."""
    vertical, variance = vertical[::_STRIDE, ::_STRIDE], variance[::_STRIDE, ::_STRIDE]
    certain = variance < max(_CERTAIN**2, float(np.quantile(variance, 0.2)))
    squares = []
    for values_row, certain_row in zip(*(np.array_split(x, _CELLS[0]) for x in (vertical, certain)), strict=True):
        for cell, sure in zip(*(np.array_split(x, _CELLS[1], 1) for x in (values_row, certain_row)), strict=True):
            if sure.sum() >= _ENOUGH_PIXELS:
                squares.append(float(np.median(cell[sure])) ** 2)
    return float(np.mean(squares)) if squares else 0.0


def vertical_parts(
    left: Image, right: Image, match: RowMatch, pixel: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], Float32]:
    """Those of (M, 2) corners that are matched for certain, and (N,) by how much that is below the row, pixels."""
    if not len(pixel):
        return pixel, np.empty(0, np.float32)
    start = pixel.astype(np.float32)
    start[:, 1] += np.resize(_PHASES, len(start))
    expected = start.copy()
    expected[:, 0] -= match.disparity[pixel[:, 1], pixel[:, 0]]
    left, right = (cv2.GaussianBlur(image, (0, 0), _SMOOTH) for image in (left, _as_bright(left, right, match)))
    found, there = _tracked(left, right, start, expected)
    back, again = _tracked(right, left, found, start)
    sure = there & again & (np.abs(found[:, 0] - expected[:, 0]) < _SAME_COLUMN)
    sure &= (np.abs(back - start) < _SAME_PLACE).all(axis=1)
    return pixel[sure], (found - expected)[sure, 1]


def _as_bright(left: Image, right: Image, match: RowMatch) -> Image:
    """The right image with the brightness and contrast of the left one, by the quartiles of what both show.

    Lucas-Kanade takes a difference of brightness for a displacement, and two cameras often expose differently.
    """
    every = (slice(None, None, _STRIDE),) * 2
    row, column = np.nonzero(match.confirmed[every])
    if not len(row):
        return right
    row, column = row * _STRIDE, column * _STRIDE
    there = np.clip(np.rint(column - match.disparity[row, column]).astype(np.int64), 0, right.shape[1] - 1)
    wanted, given = (np.quantile(values, (0.25, 0.5, 0.75)) for values in (left[row, column], right[row, there]))
    gain = (wanted[2] - wanted[0] + _EVEN_GREY) / (given[2] - given[0] + _EVEN_GREY)
    levels = np.clip(gain * (np.arange(256) - given[1]) + wanted[1], 0, 255)
    return np.asarray(cv2.LUT(right, np.rint(levels).astype(np.uint8)))


def _tracked(source: Image, target: Image, start: Float32, guess: Float32) -> tuple[Float32, npt.NDArray[np.bool_]]:
    """(N, 2) where the patches at start are in the target, searched from a guess, and (N,) which were found."""
    flags = cv2.OPTFLOW_USE_INITIAL_FLOW
    found, status, _ = cv2.calcOpticalFlowPyrLK(
        source, target, start, guess.copy(), winSize=_WINDOW, maxLevel=0, criteria=_ENDS, flags=flags
    )
    return np.asarray(found, np.float32), status.ravel() == 1


def _corners(image: Image) -> npt.NDArray[np.int64]:
    """(N, 2) the best corner of each square of the image that has one."""
    quality = cv2.cornerMinEigenVal(image, 5, ksize=3) * np.float32(_TENSOR)
    margin = _WINDOW[0] // 2
    rows, columns = (size // _SPACING for size in (quality.shape[0] - 2 * margin, quality.shape[1] - 2 * margin))
    if rows < 1 or columns < 1:
        return np.empty((0, 2), np.int64)
    inner = quality[margin : margin + rows * _SPACING, margin : margin + columns * _SPACING]
    squares = inner.reshape(rows, _SPACING, columns, _SPACING).transpose(0, 2, 1, 3).reshape(rows * columns, -1)
    best = squares.argmax(axis=1)
    square = np.arange(rows * columns)
    u = margin + square % columns * _SPACING + best % _SPACING
    v = margin + square // columns * _SPACING + best // _SPACING
    return np.asarray(np.column_stack((u, v))[squares[square, best] > _CORNER], dtype=np.int64)
