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

"""Whose motion was measured: from what was predicted, what was seen, and how much of the view does not follow."""

from __future__ import annotations

import numpy as np
import pytest

from macvo_ros.doubt.whose_motion import Predicted, whose_motion
from macvo_ros.geometry.se3 import exp_so3, transform
from macvo_ros.settings.config import DoubtConfig, MotionPriorConfig
from macvo_ros.uncertainty.motion_prior import ConstantVelocity
from macvo_ros.uncertainty.relative_motion import RelativeMotion

CONFIG = DoubtConfig()
STEP = 1 / 15
WALK = transform(exp_so3(np.array([0.0, 0.01, 0.0])), np.array([0.0, 0.0, 0.06]))
"""Of the camera: a metre a second."""
CROSSING = transform(np.eye(3), np.array([0.13, 0.0, 0.06]))
"""What the camera would do if somebody who passes by at two metres a second were the world."""
COVARIANCE = np.diag([0.001**2] * 3 + [0.0005**2] * 3)


def measured(motion: np.ndarray) -> RelativeMotion:
    return RelativeMotion(motion, COVARIANCE)


def walking() -> Predicted:
    """What is predicted of a camera that walks: that it goes on, or anything."""
    velocity = ConstantVelocity(MotionPriorConfig())
    velocity.observe(WALK, STEP)
    return Predicted(velocity.prior(STEP), velocity.unknown(STEP), CONFIG.false_alarm_rate)


def standing() -> Predicted:
    velocity = ConstantVelocity(MotionPriorConfig())
    velocity.observe(np.eye(4), STEP)
    return Predicted(velocity.prior(STEP), velocity.unknown(STEP), CONFIG.false_alarm_rate)


@pytest.mark.parametrize("mismatch", [0.0, 0.2, 0.45])
def test_a_motion_as_predicted_is_the_cameras_however_many_pass_by(mismatch):
    found = whose_motion(measured(WALK), walking(), mismatch, None)
    assert found.passing < 1e-3
    assert found.fixed < 1e-3


def test_a_passer_by_who_fills_most_of_the_view_is_told_by_the_prediction():
    of_world = whose_motion(measured(WALK), walking(), 0.6, (CROSSING, 0.5))
    of_person = whose_motion(measured(CROSSING), walking(), 0.4, (WALK, 0.4))
    assert of_world.passing + of_world.second < 0.02
    assert of_person.second > 1.0


def test_where_nothing_was_predicted_the_larger_part_is_the_world():
    nothing = ConstantVelocity(MotionPriorConfig())
    predicted = Predicted(nothing.prior(STEP), nothing.unknown(STEP), CONFIG.false_alarm_rate)
    assert whose_motion(measured(WALK), predicted, 0.1, (CROSSING, 0.1)).second < 0.01
    assert whose_motion(measured(WALK), predicted, 0.5, (CROSSING, 0.5)).second == pytest.approx(1, 0.05)
    assert whose_motion(measured(WALK), predicted, 0.9, (CROSSING, 0.9)).second > 100


def test_only_a_motion_that_may_be_none_may_be_that_of_something_fixed_to_the_camera():
    still = RelativeMotion(np.eye(4), COVARIANCE)
    assert whose_motion(still, walking(), 0.2, None).fixed > 50
    swaying = measured(transform(np.eye(3), np.array([0.0, 0.0, 0.002])))
    assert whose_motion(swaying, walking(), 0.2, None).fixed > 10
    slow = measured(transform(np.eye(3), np.array([0.0, 0.0, 0.02])))
    assert whose_motion(slow, walking(), 0.2, None).fixed < 1e-3
    # Known so badly that it may as well be none.
    vague = RelativeMotion(slow.motion, 400 * COVARIANCE)
    assert whose_motion(vague, walking(), 0.2, None).fixed > 0.5


def test_a_robot_that_stands_is_not_suspected_of_seeing_its_arm():
    still = RelativeMotion(np.eye(4), COVARIANCE)
    assert whose_motion(still, standing(), 0.2, None).fixed == pytest.approx(1.0)


def test_a_collision_is_believed_where_all_of_the_view_shows_it():
    """Nobody predicted it, but nothing else is to be seen."""
    thrown = transform(exp_so3(np.array([0.3, 0.0, 0.0])), np.array([0.0, -0.3, 0.1]))
    assert whose_motion(measured(thrown), walking(), 0.02, None).passing < 0.1
