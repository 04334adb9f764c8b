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

"""Where the right image is read: on the rows where matches are, as far as that is known."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from macvo_ros.images.frame import StereoFrame
from macvo_ros.uncertainty.row_field import RowField

Float32 = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.float64]


def rows_of(rows: RowField | None, frame: StereoFrame, to_right: Float32, pixel: Float64) -> Float64 | None:
    """(N,) pixels by which the matches of (N, 2) pixels of a frame's full left image lie below their rows.

    to_right: (H, W, 1) dense match of the frame, minus the disparity in its own pixels. A field is so smooth that the
    nearest of these will do.
    """
    if rows is None:
        return None
    size = np.array(to_right.shape[1::-1])
    column, row = np.clip(np.rint(frame.from_full(pixel)).astype(np.int64), 0, size - 1).T
    return rows.at(pixel, -to_right[row, column, 0] * frame.reduction[0])
