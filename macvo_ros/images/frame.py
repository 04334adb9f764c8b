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

"""What goes into the odometry: a rectified stereo pair, when it was taken and with which camera."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import cv2
import numpy as np
import numpy.typing as npt

from macvo_ros.errors import ImageError
from macvo_ros.geometry.camera import StereoCamera

Image = npt.NDArray[np.uint8]
Float32 = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class StereoFrame:
    """One rectified stereo pair.

    left, right: (H, W) grey or (H, W, 3) RGB, uint8.
    stamp: nanoseconds.
    reduced_from: the frame that this one is a smaller copy of (`work_size.py`), if any.
    masked: (H, W) where the left image shows the robot itself, which is never evidence (`mask.py`); None: nowhere.
    """

    left: Image
    right: Image
    stamp: int
    camera: StereoCamera
    reduced_from: StereoFrame | None = None
    masked: npt.NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        for name, image in (("left", self.left), ("right", self.right)):
            if image.dtype != np.uint8 or not (image.ndim == 2 or (image.ndim == 3 and image.shape[2] == 3)):
                raise ImageError(
                    f"{name} image: expected (H, W) grey or (H, W, 3) RGB of uint8, got {image.shape} of {image.dtype}"
                )
            if image.shape[:2] != (self.camera.height, self.camera.width):
                raise ImageError(
                    f"{name} image is {image.shape[1]}x{image.shape[0]} but the calibration is for "
                    f"{self.camera.width}x{self.camera.height}; use the calibration of these images"
                )

    @property
    def full(self) -> StereoFrame:
        """The frame as the camera took it."""
        return self if self.reduced_from is None else self.reduced_from

    def seconds_since(self, earlier: StereoFrame) -> float:
        """From the stamp of another frame to that of this one."""
        return (self.stamp - earlier.stamp) * 1e-9

    @cached_property
    def grey(self) -> tuple[Image, Image]:
        """(H, W) left and right, grey; converted once."""
        left, right = (i if i.ndim == 2 else cv2.cvtColor(i, cv2.COLOR_RGB2GRAY) for i in (self.left, self.right))
        return np.asarray(left), np.asarray(right)

    @cached_property
    def smooth_left(self) -> Float32:
        """(H, W) left, grey, slightly smoothed: every third pixel of it tells as much as all of the original."""
        return smoothed(self.grey[0])

    @cached_property
    def smooth_right(self) -> Float32:
        """(H, W) the same of the right image."""
        return smoothed(self.grey[1])

    @property
    def reduction(self) -> Float64:
        """(2,) pixels of the full image per pixel of this one, along u and v."""
        full = self.full.camera
        return np.array([full.width / self.camera.width, full.height / self.camera.height])

    def to_full(self, pixel: Float64) -> Float64:
        """(N, 2) pixels of this image in the full one; image edges are image edges in both."""
        return pixel if self.reduced_from is None else (pixel + 0.5) * self.reduction - 0.5

    def from_full(self, pixel: Float64) -> Float64:
        """(N, 2) pixels of the full image in this one."""
        return pixel if self.reduced_from is None else (pixel + 0.5) / self.reduction - 0.5


def smoothed(image: Image) -> Float32:
    """An (H, W) image, slightly smoothed."""
    kernel = cv2.getGaussianKernel(5, 0, cv2.CV_32F)
    return np.asarray(cv2.sepFilter2D(image, cv2.CV_32F, kernel, kernel), dtype=np.float32)
