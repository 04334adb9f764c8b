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

"""Points that contradict a motion may agree on another."""

from __future__ import annotations

import numpy as np
import pytest
from simulated_matches import motion_error, simulate

from macvo_ros.doubt.second_motion import find_second_motion
from macvo_ros.motion.point_pairs import PointPairs
from macvo_ros.settings.config import PoseConfig

CONFIG = PoseConfig()


def test_points_of_one_thing_name_its_motion():
    truth, pairs = simulate(np.random.default_rng(3))
    motion, agree = find_second_motion(CONFIG, pairs, np.eye(4))
    assert motion is not None
    assert agree > 0.9 * len(pairs)
    assert np.linalg.norm(motion_error(truth, motion)[:3]) < 0.01


@pytest.mark.parametrize("metres", [0.5, 2.0])
def test_a_crowd_does_not_agree_on_a_motion(metres):
    rng = np.random.default_rng(4)
    _, pairs = simulate(rng)
    walked = pairs.current + rng.normal(0, metres, pairs.current.shape)
    crowd = PointPairs(pairs.reference, pairs.reference_cov, walked, pairs.current_cov)
    assert find_second_motion(CONFIG, crowd, np.eye(4)) == (None, 0)


def test_a_few_points_are_no_motion():
    _, pairs = simulate(np.random.default_rng(5))
    few = pairs.subset(np.arange(len(pairs)) < CONFIG.min_points - 1)
    assert find_second_motion(CONFIG, few, np.eye(4)) == (None, 0)
