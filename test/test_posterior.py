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

"""From checks to the probability of a fault, and from that to a covariance."""

from __future__ import annotations

import dataclasses
from itertools import pairwise

import numpy as np
import pytest
from simulated_matches import motion_error, simulate

from macvo_ros.doubt.checks import Checks
from macvo_ros.doubt.posterior import doubt, doubtful, mixed
from macvo_ros.doubt.sound_frames import USUAL, tail_probability, usual
from macvo_ros.doubt.whose_motion import OtherMotion, Predicted, whose_motion
from macvo_ros.geometry.se3 import exp_so3, transform
from macvo_ros.motion.point_pairs import PointPairs
from macvo_ros.motion.pose_solver import solve_pose
from macvo_ros.settings.config import DoubtConfig, PoseConfig
from macvo_ros.uncertainty.motion_prior import MotionPrior
from macvo_ros.uncertainty.relative_motion import RelativeMotion

SOUND = Checks(1.0, 0.0, 0.0, 0.001, 0.02, 0.0, 0.0)
CONFIG = DoubtConfig()


_ANY = MotionPrior(np.eye(4), np.diag([0.3**-2] * 3 + [0.2**-2] * 3))
FREE = Predicted(_ANY, _ANY, CONFIG.false_alarm_rate)


def probability(checks: Checks, before: float = 0.0, other: OtherMotion = OtherMotion()) -> float:  # noqa: B008
    return doubt(CONFIG, "lite", checks, before, other).fault


def test_tail_probabilities_are_those_of_the_quantiles():
    """Of a million figures whose distribution is known, as many lie beyond each as is said."""
    figures = np.random.default_rng(0).exponential(0.1, 1_000_000)
    threshold = float(np.quantile(figures, USUAL))
    excess = float(np.mean(figures[figures > threshold]) - threshold)
    for figure in (0.3, 0.6, 0.9):
        assert tail_probability("rejected_keypoints", threshold, excess, figure) == pytest.approx(
            np.mean(figures >= figure), rel=0.2
        )
    # Residuals have a power law: their logarithms have the same tail.
    powers = np.exp(figures)
    assert tail_probability("residuals", np.exp(threshold), excess, np.exp(0.6)) == pytest.approx(
        np.mean(powers >= np.exp(0.6)), rel=0.2
    )


def test_tail_probabilities_fall_with_the_figure():
    for name in Checks.names():
        tails = [tail_probability(name, usual("lite", name), 0.1, figure) for figure in np.linspace(0, 20, 400)]
        assert tails[0] == 1.0
        assert all(later <= earlier for earlier, later in pairwise(tails))
        assert tails[-1] < 1e-3


def test_an_ordinary_frame_is_not_doubted():
    assert probability(SOUND) < 0.1 * doubtful(CONFIG)


@pytest.mark.parametrize("check", ["unknown_depth", "rejected_keypoints"])
def test_each_check_alone_can_call_a_frame_lost(check):
    found = doubt(CONFIG, "lite", dataclasses.replace(SOUND, **{check: 0.95}), 0.0, OtherMotion())
    assert found.check == check
    assert found.fault > 0.5


def test_what_one_frame_in_a_hundred_has_is_degraded_at_most():
    for name in Checks.names():
        assert probability(dataclasses.replace(SOUND, **{name: usual("lite", name)})) < 0.5


def test_doubt_outlives_the_frame_and_not_the_next_few():
    found, frames = doubt(CONFIG, "lite", SOUND, 1.0, OtherMotion()), 1
    while found.fault > doubtful(CONFIG):
        found, frames = doubt(CONFIG, "lite", SOUND, found.lasting, OtherMotion()), frames + 1
    assert 2 <= frames <= 5


def test_unusual_frames_in_a_row_do_not_add_up():
    unusual = dataclasses.replace(SOUND, residuals=usual("lite", "residuals"))
    first = found = doubt(CONFIG, "lite", unusual, 0.0, OtherMotion())
    for _ in range(20):
        found = doubt(CONFIG, "lite", unusual, found.lasting, OtherMotion())
    assert found.fault == pytest.approx(first.fault)


def test_two_motions_in_view_are_remembered():
    """An even choice between two motions makes the next frame's bad residuals a fault, which alone they are not."""
    unusual = dataclasses.replace(SOUND, residuals=1.5 * usual("lite", "residuals"))
    two = doubt(CONFIG, "lite", SOUND, 0.0, OtherMotion(second=0.9))
    assert two.fault < 0.5
    assert probability(unusual) < 0.1
    assert probability(unusual, two.lasting) > 0.5


def test_without_a_prior_nothing_is_doubted():
    never = DoubtConfig(prior=0.0)
    found = doubt(never, "lite", Checks(99.0, 9.0, 1.0, 1.0, 1.0, 1.0, 1.0), 0.0, OtherMotion(9.0, 9.0, 9.0))
    assert found.fault == 0.0 == doubtful(never)


def test_the_mixture_has_the_moments_of_the_two():
    """Drawn from one with probability 1 - P and from the other with P: the second moment about the measured motion."""
    rng = np.random.default_rng(1)
    measured, alternative = (np.diag(rng.uniform(0.5, 2, 6) ** 2) for _ in range(2))
    offset = 1e-3 * rng.normal(0, 3, 6)
    one = RelativeMotion(np.eye(4), 1e-6 * measured)
    two = RelativeMotion(transform(exp_so3(offset[3:]), offset[:3]), 1e-6 * alternative)
    draws = rng.multivariate_normal(np.zeros(6), one.covariance, 400_000)
    others = offset + rng.multivariate_normal(np.zeros(6), two.covariance, 400_000)
    drawn = np.where(rng.random((400_000, 1)) < 0.3, others, draws)
    np.testing.assert_allclose(mixed(one, two, 0.3).covariance, drawn.T @ drawn / 400_000, atol=1e-7)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.2, 0.3, 0.4])
def test_mixed_covariances_are_consistent_beside_a_second_motion(share):
    """NEES of the estimate when a part of the matches is of something else that moves by some centimetres."""
    rng = np.random.default_rng(2)
    config, nees = PoseConfig(), []
    for _ in range(200):
        truth, pairs = simulate(rng)
        other = truth @ transform(exp_so3(rng.normal(0, 0.02, 3)), rng.normal(0, 0.08, 3))
        moving = np.arange(len(pairs)) < share * len(pairs)
        # The same points, as they are seen where they follow the other motion.
        shifted = (pairs.current @ truth[:3, :3].T + truth[:3, 3] - other[:3, 3]) @ other[:3, :3]
        current = np.where(moving[:, None], shifted, pairs.current)
        seen = PointPairs(pairs.reference, pairs.reference_cov, current, pairs.current_cov)
        solution = solve_pose(seen, np.eye(4), config)
        measured = RelativeMotion(solution.motion, solution.covariance(seen) * max(1.0, solution.chi2))
        rejected = ~solution.inlier
        alternative, support = measured, 0.0
        if rejected.sum() >= config.min_points:
            second = solve_pose(
                PointPairs(*(getattr(seen, f.name)[rejected] for f in dataclasses.fields(seen))), np.eye(4), config
            )
            support = float(second.inlier.sum() / len(pairs))
            alternative = RelativeMotion(second.motion, measured.covariance)
        left = float(rejected.mean()) - support
        checks = Checks(solution.chi2, 0.0, 0.0, 0.001, left, 0.0, support)
        other = whose_motion(measured, FREE, float(rejected.mean()), (alternative.motion, support))
        covariance = mixed(measured, alternative, probability(checks, other=other)).covariance
        error = motion_error(truth, solution.motion)
        nees.append(error @ np.linalg.solve(covariance, error))
    assert 4 < np.mean(nees) < 8
