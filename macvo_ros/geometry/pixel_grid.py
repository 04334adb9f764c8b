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

"""Coordinates of all pixels of an image, made once for each size."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

Float32 = npt.NDArray[np.float32]


@lru_cache(maxsize=8)
def pixel_grid(height: int, width: int) -> Float32:
    """(H, W, 2) pixel coordinates (u, v)."""
    u, v = np.meshgrid(np.arange(width, dtype=np.float32), np.arange(height, dtype=np.float32))
    return np.stack((u, v), axis=-1)
