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

"""Which left image belongs to which right image: by equal stamps, or by the nearest within a tolerance."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Int64 = npt.NDArray[np.int64]


def pair_stamps(left: Int64, right: Int64, tolerance: int = 0) -> tuple[Int64, Int64]:
    """Pair two sorted lists of distinct stamps.

    left: (N,), right: (M,), nanoseconds, increasing. tolerance: nanoseconds; 0 pairs equal stamps only.
    Returns (K,) indices into left and (K,) into right, increasing. A pair is mutual: each is the nearest of the other,
    so no image is used twice, and the result does not depend on the order in which messages were recorded.
    """
    empty = np.empty(0, np.int64)
    if not left.size or not right.size:
        return empty, empty
    to_right, to_left = _nearest(left, right), _nearest(right, left)
    index = np.arange(left.size)
    mutual = (to_left[to_right] == index) & (np.abs(right[to_right] - left) <= tolerance)
    return index[mutual].astype(np.int64), to_right[mutual]


def nearest_gap(left: Int64, right: Int64) -> int:
    """Median distance from a left stamp to the nearest right one, nanoseconds."""
    return int(np.median(np.abs(right[_nearest(left, right)] - left)))


def _nearest(query: Int64, stamps: Int64) -> Int64:
    """(len(query),) index of the stamp nearest to each query; the earlier one of two equally near."""
    after = np.clip(np.searchsorted(stamps, query), 0, stamps.size - 1)
    before = np.maximum(after - 1, 0)
    return np.where(np.abs(stamps[before] - query) <= np.abs(stamps[after] - query), before, after).astype(np.int64)
