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

"""Predictions cover what happens, also where the stamps do not tell the truth."""

from __future__ import annotations

import numpy as np
import pytest

from macvo_ros.geometry.se3 import exp_so3, transform
from macvo_ros.settings.config import Config
from macvo_ros.uncertainty.motion_prior import ConstantVelocity


def step(metres: float, radians: float = 0.0) -> np.ndarray:
    return transform(exp_so3(np.array([0.0, radians, 0.0])), np.array([0.0, 0.0, metres]))


def sigmas(velocity: ConstantVelocity, seconds: float) -> tuple[float, float]:
    spread = np.sqrt(velocity.covariance(seconds).diagonal())
    return float(spread[0]), float(spread[5])


def test_a_steady_robot_is_predicted_as_before():
    steady, once = (ConstantVelocity(Config().motion_prior) for _ in range(2))
    once.observe(step(0.5, 0.02), 0.1)
    for _ in range(5):
        steady.observe(step(0.5, 0.02), 0.1)
    np.testing.assert_allclose(steady.covariance(0.1), once.covariance(0.1), rtol=1e-9)
    np.testing.assert_allclose(steady.predict(0.2), step(1.0, 0.04), atol=1e-12)


def test_jittering_stamps_are_covered():
    """8 m/s at 15 Hz, stamps off by up to 20 ms: after any frame, the true next motion lies within three sigma."""
    rng = np.random.default_rng(0)
    velocity = ConstantVelocity(Config().motion_prior)
    true, errors = 8.0 / 15, []
    stamps = np.arange(200) / 15 + rng.uniform(-0.02, 0.02, 200)
    for i, seconds in enumerate(np.diff(stamps)):
        if i > 5:
            errors.append(abs(velocity.predict(seconds)[2, 3] - true) / sigmas(velocity, seconds)[0])
        velocity.observe(step(true), seconds)
    assert np.mean(np.array(errors) < 3.0) > 0.97


def test_a_jump_is_feared_for_a_while_and_forgotten():
    velocity = ConstantVelocity(Config().motion_prior)
    velocity.observe(step(0.1), 0.1)
    calm = sigmas(velocity, 0.1)
    velocity.compare(step(0.7, 0.3), 0.1)
    np.testing.assert_allclose(velocity.predict(0.1), step(0.1), atol=1e-12)  # but the velocity is not believed
    assert sigmas(velocity, 0.1)[0] > 0.6
    assert sigmas(velocity, 0.1)[1] > 0.3
    for _ in range(30):
        velocity.observe(step(0.1), 0.1)
    assert sigmas(velocity, 0.1) == pytest.approx(calm, rel=1e-3)


def test_nothing_is_learned_before_there_is_a_velocity():
    velocity = ConstantVelocity(Config().motion_prior)
    before = velocity.covariance(0.1)
    velocity.compare(step(3.0), 0.1)
    np.testing.assert_array_equal(velocity.covariance(0.1), before)
    assert not velocity.known


def test_two_stamps_a_microsecond_apart_give_no_velocity():
    velocity = ConstantVelocity(Config().motion_prior)
    step = np.eye(4)
    step[0, 3] = 0.05
    velocity.observe(step, 0.1, 100_000_000)
    velocity.observe(step, 1e-6, 100_001_000)
    np.testing.assert_allclose(velocity.predict(0.1), step)
