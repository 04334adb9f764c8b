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

"""The size at which images are searched: whatever the camera's is, about the same number of pixels.

Dense matching, the choice of keypoints and the checks cost time by the pixel and gain little from the last ones. The
matches of keypoints are refined in the full image, where precision comes from.
"""

from __future__ import annotations

import math

import cv2
import numpy as np

from macvo_ros.images.frame import Image, StereoFrame

_MULTIPLE = 4
"""Pixels that width and height are multiples of: coarser grids then have no remainder."""


def work_size(width: int, height: int, pixels: int) -> tuple[int, int]:
    """Width and height of about the same shape, with at most about `pixels` pixels; 0: as they are."""
    if pixels == 0 or width * height <= pixels:
        return width, height
    scale = math.sqrt(pixels / (width * height))
    return tuple(max(_MULTIPLE, _MULTIPLE * round(side * scale / _MULTIPLE)) for side in (width, height))  # type: ignore


def reduced(frame: StereoFrame, pixels: int) -> StereoFrame:
    """A grey copy of about so many pixels; the frame itself where it has no more than those."""
    size = work_size(frame.camera.width, frame.camera.height, pixels)
    if frame.reduced_from is not None or size == (frame.camera.width, frame.camera.height):
        return frame
    left, right = (_resized(image, size) for image in frame.grey)
    masked = None
    if frame.masked is not None:
        masked = cv2.resize(frame.masked.astype(np.uint8), size, interpolation=cv2.INTER_NEAREST) > 0
    return StereoFrame(left, right, frame.stamp, frame.camera.resized(*size), frame, masked)


def _resized(image: Image, size: tuple[int, int]) -> Image:
    """A grey image at a smaller size: halved while that is possible, then interpolated, where every pixel counts.

    Several times as fast as means over areas that are no whole number of pixels; edges stay edges.
    """
    while image.shape[1] >= 2 * size[0] and image.shape[0] >= 2 * size[1]:
        half = image.shape[1] // 2, image.shape[0] // 2
        image = np.asarray(cv2.resize(image, half, interpolation=cv2.INTER_AREA))
    return np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_LINEAR))


def shrunk(image: Image, factor: int) -> Image:
    """A grey image by a whole factor smaller; rows and columns that do not fill a pixel are left out."""
    rows, columns = image.shape[0] // factor, image.shape[1] // factor
    image = image[: rows * factor, : columns * factor]
    while factor % 2 == 0:  # halves are many times as fast as other areas
        factor //= 2
        image = np.asarray(cv2.resize(image, (columns * factor, rows * factor), interpolation=cv2.INTER_AREA))
    return np.asarray(cv2.resize(image, (columns, rows), interpolation=cv2.INTER_AREA)) if factor > 1 else image
