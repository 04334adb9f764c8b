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

"""Dense flow from one image to another: OpenCV's dense inverse search, about a predicted flow where there is one.

The target is warped by the predicted flow s first, so that only what remains is searched:

    r: source -> target(x + s(x))        flow(x) = r(x) + s(x + r(x))

(Given the prediction as its initial flow, DIS takes it at the coarsest of its scales only, and what is near and fast,
the road before a car, is lost again on the way to the finer ones: off by 3 to 10 pixels on KITTI 09.)
"""

from __future__ import annotations

from collections.abc import Callable

import cv2
import numpy as np
import numpy.typing as npt

from macvo_ros.geometry.pixel_grid import pixel_grid
from macvo_ros.images.frame import Image

Float32 = npt.NDArray[np.float32]


class FlowSearch:
    """One for each thread: OpenCV keeps buffers."""

    def __init__(self, make: Callable[[], cv2.DISOpticalFlow]) -> None:
        """make: a new search with the settings wanted."""
        self._make = make
        self._search = make()
        self._size: tuple[int, ...] = ()

    def flow(self, source: Image, target: Image, predicted: Float32 | None = None) -> Float32:
        """(H, W, 2) flow between two grey images, pixels; predicted: likewise, where to look first."""
        if source.shape != self._size:  # OpenCV keeps buffers of the first size and reads beyond them in a larger image
            self._size, self._search = source.shape, self._make()
        if predicted is None:
            return np.asarray(self._search.calc(source, target, None), dtype=np.float32)
        pixel = pixel_grid(*source.shape)
        warped = cv2.remap(target, pixel + predicted, None, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
        rest = np.asarray(self._search.calc(source, warped, None), dtype=np.float32)
        there = cv2.remap(predicted, pixel + rest, None, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
        return np.asarray(rest + there, dtype=np.float32)
