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

import numpy as np
import numpy.typing as npt

from macvo_ros.errors import ImageError
from macvo_ros.geometry.camera import StereoCamera

Image = npt.NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class StereoFrame:
    """One rectified stereo pair.

    left, right: (H, W) grey or (H, W, 3) RGB, uint8.
    stamp: nanoseconds.
    """

    left: Image
    right: Image
    stamp: int
    camera: StereoCamera

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
