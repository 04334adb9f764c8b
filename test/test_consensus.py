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

"""The motion that most points agree on, where a robust kernel ends between two."""

from __future__ import annotations

import numpy as np
import pytest
from simulated_matches import motion_error, simulate

from macvo_ros.geometry.se3 import exp_so3, transform
from macvo_ros.motion.consensus import agreeing, consensus
from macvo_ros.motion.point_pairs import PointPairs
from macvo_ros.motion.pose_solver import solve_pose
from macvo_ros.settings.config import PoseConfig


def two_motions(rng: np.random.Generator, share: float) -> tuple[np.ndarray, PointPairs]:
    """The camera's motion, and points a share of which moves by itself by six centimetres."""
    truth, pairs = simulate(rng)
    aside = rng.normal(0, 1, 3)
    other = truth @ transform(exp_so3(rng.normal(0, 0.005, 3)), 0.06 * aside / np.linalg.norm(aside))
    moving = np.arange(len(pairs)) < share * len(pairs)
    shifted = (pairs.current @ truth[:3, :3].T + truth[:3, 3] - other[:3, 3]) @ other[:3, :3]
    current = np.where(moving[:, None], shifted, pairs.current)
    return truth, PointPairs(pairs.reference, pairs.reference_cov, current, pairs.current_cov)


@pytest.mark.parametrize("share", [0.0, 0.2, 0.45])
def test_the_larger_part_wins_however_far_the_smaller_is(share):
    rng, config = np.random.default_rng(3), PoseConfig()
    for _ in range(20):
        truth, pairs = two_motions(rng, share)
        found = consensus(pairs, config)
        error = motion_error(truth, found)
        assert np.linalg.norm(error[:3]) < 0.01
        assert agreeing(pairs, found).mean() > 0.9 * (1 - share)


def test_it_finds_more_that_agree_than_a_robust_kernel_where_two_motions_are_near():
    rng, config = np.random.default_rng(4), PoseConfig()
    better = worse = 0
    for _ in range(30):
        _, pairs = two_motions(rng, 0.45)
        robust = agreeing(pairs, solve_pose(pairs, np.eye(4), config).motion).sum()
        agreed = agreeing(pairs, consensus(pairs, config)).sum()
        better, worse = better + (agreed > robust), worse + (agreed < robust)
    assert better >= 5
    assert worse == 0


def test_the_same_points_give_the_same_motion():
    _, pairs = two_motions(np.random.default_rng(5), 0.3)
    np.testing.assert_array_equal(consensus(pairs, PoseConfig()), consensus(pairs, PoseConfig()))


def test_points_in_a_line_leave_a_turn_unknown_and_raise_nothing():
    _, pairs = simulate(np.random.default_rng(6))
    line = np.linspace(1.0, 3.0, len(pairs))[:, None] * np.array([0.3, 0.1, 1.0])
    in_line = PointPairs(line, pairs.reference_cov, line - np.array([0.0, 0.0, 0.1]), pairs.current_cov)
    motion = consensus(in_line, PoseConfig())
    assert np.isfinite(motion).all()
    assert agreeing(in_line, motion).all()
    three = in_line.subset(np.arange(len(in_line)) < 3)
    assert np.isfinite(solve_pose(three, np.eye(4), PoseConfig()).gain).all()
