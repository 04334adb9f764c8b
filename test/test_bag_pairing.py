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

"""Pairing of stamps."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from macvo_ros.bags.pairing import nearest_gap, pair_stamps

stamps = st.lists(st.integers(0, 10**6), unique=True, max_size=40).map(lambda x: np.array(sorted(x), dtype=np.int64))


def test_equal_stamps_pair_whatever_is_missing():
    left, right = np.array([1, 2, 3, 5, 8]), np.array([0, 2, 3, 4, 8, 9])
    first, second = pair_stamps(left, right)
    assert list(left[first]) == [2, 3, 8]
    assert list(right[second]) == [2, 3, 8]


def test_a_tolerance_takes_the_nearest_once():
    left, right = np.array([100, 200, 300]), np.array([104, 109, 295, 460])
    first, second = pair_stamps(left, right, tolerance=10)
    assert list(zip(left[first], right[second], strict=True)) == [(100, 104), (300, 295)]
    assert nearest_gap(left, right) == 5


@given(stamps, stamps, st.integers(0, 10**5))
def test_pairs_are_mutual_in_order_and_within_tolerance(left, right, tolerance):
    first, second = pair_stamps(left, right, tolerance)
    assert len(set(first)) == len(first)
    assert (np.diff(first) > 0).all()
    assert (np.diff(second) > 0).all()
    assert (np.abs(left[first] - right[second]) <= tolerance).all()
    exact = np.intersect1d(left, right)
    assert set(exact) <= set(left[first])
