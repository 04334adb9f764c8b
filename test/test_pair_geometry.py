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

"""Whether a pair is rectified and the right way round, from images."""

from __future__ import annotations

import numpy as np
import pytest

from macvo_ros.images.pair_geometry import pair_geometry
from macvo_ros.rendering.sequence import RenderedSequence


def test_rows_and_sides(room: RenderedSequence) -> None:
    pairs = [(room[index].left, room[index].right) for index in (0, 2)]
    sound = pair_geometry(pairs)
    assert sound.matches > 100
    assert sound.vertical < 0.3
    assert sound.backwards < 0.1
    lower = pair_geometry([(left, np.roll(right, 5, axis=0)) for left, right in pairs])
    assert lower.vertical == pytest.approx(5.0, abs=0.2)
    assert lower.offset == pytest.approx(5.0, abs=0.2)
    swapped = pair_geometry([(right, left) for left, right in pairs])
    assert swapped.backwards > 0.9
    assert swapped.vertical < 0.3


def test_wide_images_are_halved_and_measured_in_their_own_pixels(room: RenderedSequence) -> None:
    wide = [np.kron(image, np.ones((4, 4, 1), np.uint8)) for image in (room[0].left, room[0].right)]
    assert wide[0].shape[1] > 1280
    geometry = pair_geometry([(wide[0], np.roll(wide[1], 12, axis=0))])
    assert geometry.offset == pytest.approx(12.0, abs=1.0)


def test_nothing_to_see() -> None:
    flat = np.full((48, 64), 128, np.uint8)
    assert pair_geometry([(flat, flat)]).matches == 0
    assert pair_geometry([]).matches == 0
