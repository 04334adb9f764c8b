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

"""The shipped settings of robot_localization, in its own model: they agree with ours and hold still in silence."""

from __future__ import annotations

import numpy as np
import pytest
from acceleration_filter import (
    ANGLES,
    POSITION,
    RATES,
    VELOCITY,
    AccelerationFilter,
    angles_of,
    rotation,
    shipped_filter,
)
from velocity_filter import VelocityFilter

RATE = 15.0
TWIST = np.array([False] * 6 + [True] * 6 + [False] * 3)


def fuse(state: AccelerationFilter, twist: np.ndarray, covariance: np.ndarray) -> None:
    measured, noise = np.zeros(15), np.eye(15)
    measured[6:12], noise[6:12, 6:12] = twist, covariance
    state.correct(TWIST, measured, noise)


def test_both_models_agree_where_the_acceleration_is_tied():
    rng = np.random.default_rng(2)
    theirs, ours = shipped_filter(), VelocityFilter(0.1, 0.2)
    covariance = np.diag([0.02**2] * 3 + [0.01**2] * 3)
    for i in range(45):
        for _ in range(20):
            theirs.predict(1 / RATE / 20)
            ours.predict(1 / RATE / 20)
        twist = np.array([1.0, 0.1, 0.0, 0.1, -0.2, 0.4]) * np.cos(i / 15) + 0.02 * rng.normal(size=6)
        fuse(theirs, twist, covariance)
        ours.fuse((twist, covariance))
    np.testing.assert_allclose(theirs.state[VELOCITY], ours.velocity[:3], atol=2e-3)
    np.testing.assert_allclose(theirs.state[RATES], ours.velocity[3:], atol=2e-3)
    np.testing.assert_allclose(theirs.state[POSITION], ours.position, atol=0.02)
    np.testing.assert_allclose(rotation(theirs.state[None, ANGLES])[0], ours.rotation, atol=0.01)
    np.testing.assert_allclose(angles_of(ours.rotation), theirs.state[ANGLES], atol=0.01)


@pytest.mark.parametrize(("acceleration", "runs_away"), [(None, False), ((0.1, 1.0), True)])
def test_a_robot_that_brakes_goes_on_at_its_last_speed(acceleration, runs_away):
    """From 1.5 m/s by 0.5 m/s^2 for two seconds, then eight of silence: a free acceleration drives it backwards."""
    state = shipped_filter(acceleration)
    covariance = np.diag([0.01**2] * 3 + [0.005**2] * 3)
    for i in range(30):
        state.predict(1 / RATE)
        fuse(state, np.array([1.5 - 0.5 * i / RATE, 0, 0, 0, 0, 0]), covariance)
    last = state.state[VELOCITY].copy()
    for _ in range(400):
        state.predict(1 / 50)
    change = float(np.linalg.norm(state.state[VELOCITY] - last))
    assert (change > 2.0) == runs_away, change
    assert runs_away or change < 0.05, change
