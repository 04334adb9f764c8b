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

"""Rows are compared with what they were, and a fault does not become what they were."""

from __future__ import annotations

import pytest
import torch

from macvo_ros.camera import StereoCamera
from macvo_ros.matching.matcher import Match
from macvo_ros.row_habit import RowHabit
from macvo_ros.scene_check import rows_left, stereo_spread

CAMERA = StereoCamera(200.0, 200.0, 159.5, 99.5, 0.12, 320, 200)


def match(rows: float, spread: float) -> Match:
    """Stereo matches that leave their rows by so much and may be off by so much, pixels."""
    return Match(torch.zeros(200, 320), torch.full((200, 320), spread**2), epipolar_var=rows**2)


def learned(rows: float = 0.03, spread: float = 0.25, frames: int = 8) -> RowHabit:
    habit = RowHabit()
    for _ in range(frames):
        habit.learn(match(rows, spread), 4.0, spread)
    return habit


def test_few_frames_and_noisy_images_tell_nothing():
    assert learned(frames=2).usual(4.0) is None
    assert learned().usual(12.0) is None
    assert learned().usual(4.0).variance == pytest.approx(0.03**2)


@pytest.mark.parametrize(
    ("rows", "spread", "left"),
    [
        (0.06, 0.3, False),  # an ordinary frame
        (0.14, 0.8, False),  # unsure, but on its rows
        (0.5, 0.3, True),  # far from its rows
        (0.28, 0.45, False),  # no further than matches so noisy may be
        (0.28, 0.75, True),  # the images are no noisier, but matching is far worse, and rows are left: another moment
        (1.2, 0.3, True),
    ],
)
def test_a_change_of_rows_is_noticed(rows, spread, left):
    seen = match(rows, spread)
    assert stereo_spread(seen) == pytest.approx(spread)
    assert rows_left(seen, CAMERA, learned().usual(4.0), spread) is left


def test_a_fault_does_not_become_usual_while_it_lasts():
    habit = learned(frames=20)
    for _ in range(10):
        habit.learn(match(0.4, 0.25), 4.0, 0.25)
    assert rows_left(match(0.4, 0.25), CAMERA, habit.usual(4.0), 0.25)
    habit.forget()
    assert habit.usual(4.0) is None
