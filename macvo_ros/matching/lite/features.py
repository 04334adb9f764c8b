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

"""What the network of `lite` sees of a match: images at half, everything else at a quarter of the resolution.

All channels are compressed to about -3 .. 3, so that the network needs no statistics of its training data.
"""

from __future__ import annotations

from collections.abc import Callable

import cv2
import numpy as np
import numpy.typing as npt

from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.geometry.pixel_grid import pixel_grid
from macvo_ros.images.frame import Image, smoothed
from macvo_ros.matching.lite.rigid_departure import rigid_departure
from macvo_ros.matching.native.library import kernels
from macvo_ros.matching.stereo_search import RowMatch

Float32 = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.float64]

SCALE = 4
"""Pixels per cell of the network's grid."""
CHANNELS = (
    "brightness", "fine_texture", "texture_u", "texture_v", "texture_uv", "residual", "residual_noise",
    "gradient_residual", "bend_u", "bend_v", "bend_u_size", "bend_v_size", "crowding", "departure_u", "departure_v",
    "inverse_depth", "margin", "temporal", "unconfirmed",
)  # fmt: skip
UNCONFIRMED = CHANNELS.index("unconfirmed")


def grid_size(height: int, width: int) -> tuple[int, int]:
    """Rows and columns of the network's grid; a remainder of up to three pixels is left out."""
    return height // SCALE, width // SCALE


class ImageFeatures:
    """What of an image is computed once, whatever it is matched with."""

    def __init__(self, grey: Image, smooth: Callable[[], Float32] | None = None) -> None:
        """grey: the image to match; smooth: makes what keypoints are refined in, see below; None: of `grey`."""
        rows, columns = grid_size(*grey.shape)
        self.grid = (rows, columns)
        whole = grey[: rows * SCALE, : columns * SCALE]
        self.small: Image = np.asarray(cv2.resize(whole, (2 * columns, 2 * rows), interpolation=cv2.INTER_AREA))
        """The image at half its size, which dense matches are searched in."""
        self.half: Float32 = self.small.astype(np.float32)
        self.gradient_u: Float32 = cv2.Scharr(self.small, cv2.CV_32F, 1, 0, scale=1 / 32)
        self.gradient_v: Float32 = cv2.Scharr(self.small, cv2.CV_32F, 0, 1, scale=1 / 32)
        self.layers: Float32 = cv2.merge((self.half, self.gradient_u, self.gradient_v, self.half))
        """(2h, 2w, 4) these three, to be read at once; the fourth is not used."""
        self._texture: Float32 | None = None
        self._tensor: tuple[Float32, Float32, Float32] | None = None
        self._patch_variance: Float32 | None = None
        self._smooth: Float32 | None = None
        self._grey = grey
        self._make_smooth = smooth or (lambda: smoothed(grey))

    def smooth(self) -> Float32:
        """The full image, slightly smoothed: every third pixel of it tells as much as all of the original."""
        if self._smooth is None:
            self._smooth = self._make_smooth()
        return self._smooth

    def texture(self) -> Float32:
        """(5, h, w) brightness, fine_texture, texture_u, texture_v, texture_uv."""
        if self._texture is None and kernels() is not None:
            self._describe_natively()
        if self._texture is None:
            whole = self._grey[: self.grid[0] * SCALE, : self.grid[1] * SCALE]
            back = cv2.resize(self.small, whole.shape[::-1], interpolation=cv2.INTER_NEAREST)
            fine = self._cells(cv2.absdiff(back, whole).astype(np.float32))
            xx, yy, xy = self._structure()
            self._texture = np.stack(
                (
                    self._cells(self.half) * np.float32(1 / 64) - np.float32(2),
                    np.log(fine + np.float32(0.2)),
                    np.float32(0.5) * np.log(xx + np.float32(0.05)),
                    np.float32(0.5) * np.log(yy + np.float32(0.05)),
                    xy / np.sqrt(xx * yy + np.float32(0.05)),
                )
            )
        return self._texture

    def _describe_natively(self) -> None:
        """`texture` and `_structure` by a compiled kernel."""
        native, image = kernels(), np.ascontiguousarray(self._grey)
        assert native is not None
        texture, tensor = np.empty((5, *self.grid), np.float32), np.empty((3, *self.grid), np.float32)
        native(
            "macvo_texture", image, image.shape[1], self.small, self.gradient_u, self.gradient_v, *self.grid,
            texture, tensor,
        )  # fmt: skip
        self._texture, self._tensor = texture, (tensor[0], tensor[1], tensor[2])

    def patch_variance(self) -> Float32:
        """(3, h, w) least-squares variance of a patch around each cell along u with v known (stereo), u, and v (flow).

        The inverse of the structure tensor of five cells square; for noise of one grey level and one sample, pixels^2.
        """
        if self._patch_variance is None:
            xx, yy, xy = (cv2.blur(each, (5, 5)) * np.float32(0.25) for each in self._structure())
            determinant = np.maximum(xx * yy - xy * xy, np.float32(1e-4))
            self._patch_variance = np.stack((1 / np.maximum(xx, np.float32(1e-3)), yy / determinant, xx / determinant))
        return self._patch_variance

    def _structure(self) -> tuple[Float32, Float32, Float32]:
        """(h, w) means over the cells of the squares and the product of the gradients along u and v."""
        if self._tensor is None:
            u, v = self.gradient_u, self.gradient_v
            self._tensor = (self._cells(u * u), self._cells(v * v), self._cells(u * v))
        return self._tensor

    def _cells(self, image: Float32) -> Float32:
        """Means over the cells of the grid."""
        return np.asarray(cv2.resize(image, self.grid[::-1], interpolation=cv2.INTER_AREA), dtype=np.float32)


def to_grid(dense: Float32) -> Float32:
    """Means of a dense (H, W) or (H, W, C) map of the image over the cells of the grid."""
    rows, columns = grid_size(dense.shape[0], dense.shape[1])
    whole = np.ascontiguousarray(dense[: rows * SCALE, : columns * SCALE])
    return _cells(whole, rows, columns)


def flow_on_grid(half_flow: Float32) -> Float32:
    """(h, w, 2) means over the grid's cells, in pixels of the image, of a (2h, 2w, 2) flow of the halved images."""
    rows, columns = half_flow.shape[0] // 2, half_flow.shape[1] // 2
    return np.asarray(_cells(half_flow, rows, columns) * np.float32(2), dtype=np.float32)


def grid_camera(camera: StereoCamera) -> StereoCamera:
    """The camera whose pixels are the cells of the grid."""
    rows, columns = grid_size(camera.height, camera.width)
    return camera.cropped(0, 0, columns * SCALE, rows * SCALE).resized(columns, rows)


def stereo_features(left: ImageFeatures, right: ImageFeatures, match: RowMatch, camera: StereoCamera) -> Float32:
    """(C, h, w) channels of a match from left to right; match: of the halved images."""
    half_flow = np.zeros((*match.disparity.shape, 2), np.float32)
    half_flow[..., 0] = -match.disparity
    if kernels() is not None:
        return _evidence_natively(left, right, half_flow, camera.disparity_offset, match.confirmed)
    flow = flow_on_grid(half_flow)
    out = _features(left, right, half_flow, flow, np.zeros_like(flow), -flow[..., 0], camera, temporal=False)
    out[UNCONFIRMED] = 2 * _cells((~match.confirmed).astype(np.float32), *left.grid)
    return out


def temporal_features(
    earlier: ImageFeatures,
    current: ImageFeatures,
    half_flow: Float32,
    disparity: Float32,
    camera: StereoCamera,
    motion: Float64,
) -> Float32:
    """(C, h, w) channels of a match from the reference to the current image.

    half_flow: (2h, 2w, 2) flow of the halved images; disparity: (h, w) of the reference, on the grid, in pixels of the
    image; camera: of the images; motion: (4, 4) predicted pose of the current camera in the reference one.
    """
    flow = flow_on_grid(half_flow)
    cell = np.float32(1 / SCALE)
    departure = rigid_departure(grid_camera(camera), disparity * cell, flow * cell, motion) * np.float32(SCALE)
    if kernels() is not None:
        return _evidence_natively(earlier, current, half_flow, camera.disparity_offset, None, (departure, disparity))
    return _features(earlier, current, half_flow, flow, departure, disparity, camera, temporal=True)


def _evidence_natively(
    source: ImageFeatures,
    target: ImageFeatures,
    half_flow: Float32,
    infinity: float,
    confirmed: npt.NDArray[np.bool_] | None,
    rigid: tuple[Float32, Float32] | None = None,
) -> Float32:
    """`_features` by a compiled kernel; rigid: departure and disparity, None for a match from left to right."""
    native = kernels()
    assert native is not None
    out = np.empty((len(CHANNELS), *source.grid), np.float32)
    out[:5] = source.texture()
    departure, disparity = (None, None) if rigid is None else map(np.ascontiguousarray, rigid)
    sure = None if confirmed is None else np.ascontiguousarray(confirmed).view(np.uint8)
    native(
        "macvo_evidence", source.layers, target.layers, half_flow, departure, disparity, infinity, sure,
        -1 if rigid is None else 1, *source.grid, out,
    )  # fmt: skip
    return out


def _features(
    source: ImageFeatures,
    target: ImageFeatures,
    half_flow: Float32,
    flow: Float32,
    departure: Float32,
    disparity: Float32,
    camera: StereoCamera,
    *,
    temporal: bool,
) -> Float32:
    rows, columns = source.grid
    out = np.empty((len(CHANNELS), rows, columns), np.float32)
    out[:5] = source.texture()

    position = half_flow + pixel_grid(2 * rows, 2 * columns)
    residual = cv2.remap(target.layers, position, None, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    residual -= source.layers
    mean = _cells(cv2.extractChannel(residual, 0), rows, columns)
    wide_mean = cv2.blur(mean, (5, 5))
    residual *= residual
    square, square_u, square_v, _ = cv2.split(_cells(residual, rows, columns))
    noise = cv2.blur(square, (3, 3)) - cv2.blur(mean, (3, 3)) ** 2
    change = square_u + square_v
    out[5] = _squash((mean - wide_mean) * np.float32(0.5))
    out[6] = np.float32(0.5) * np.log(np.maximum(noise, 0) + np.float32(0.1))
    out[7] = np.float32(0.5) * np.log(change + np.float32(0.05))

    bend = flow - cv2.blur(flow, (5, 5))
    size = cv2.blur(bend * bend, (5, 5))
    out[8:10] = _squash(np.float32(4) * bend).transpose(2, 0, 1)
    out[10:12] = (np.float32(0.5) * np.log(size + np.float32(1e-3)) + np.float32(1)).transpose(2, 0, 1)

    landing = flow * np.float32(1 / SCALE) + pixel_grid(rows, columns)
    out[12] = _crowding(landing) - np.float32(1)
    out[13:15] = _squash(np.float32(4) * departure).transpose(2, 0, 1)
    out[15] = np.log(np.maximum(disparity - np.float32(camera.disparity_offset), 0) + np.float32(0.5)) - np.float32(2)
    u, v = landing[..., 0], landing[..., 1]
    inside = np.minimum(np.minimum(u, columns - 1 - u), np.minimum(v, rows - 1 - v))
    out[16] = np.clip(inside * np.float32(0.25), -2, 2)
    out[17] = 1.0 if temporal else -1.0
    out[UNCONFIRMED] = 0.0
    np.clip(out, -8, 8, out=out)
    return out


def _squash(values: Float32) -> Float32:
    """Linear near zero, a signed square root far from it."""
    return np.asarray(values / np.sqrt(np.abs(values) + np.float32(1)), dtype=np.float32)


def _crowding(landing: Float32) -> Float32:
    """How many cells come to lie where this one does, about 1 where nothing is hidden."""
    rows, columns = landing.shape[:2]
    u = np.clip(np.rint(landing[..., 0]), 0, columns - 1).astype(np.intp)
    v = np.clip(np.rint(landing[..., 1]), 0, rows - 1).astype(np.intp)
    index = v * columns + u
    count = np.bincount(index.ravel(), minlength=rows * columns).astype(np.float32).reshape(rows, columns)
    return np.asarray(np.minimum(cv2.blur(count, (3, 3)).ravel()[index], np.float32(4)), dtype=np.float32)


def _cells(image: Float32, rows: int, columns: int) -> Float32:
    return np.asarray(cv2.resize(image, (columns, rows), interpolation=cv2.INTER_AREA), dtype=np.float32)
