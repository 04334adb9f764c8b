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

"""A filter that is told our covariance beats the same filter with the best constant one, through a dark stretch."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from acceleration_filter import ekf_parameters
from velocity_filter import VelocityFilter

from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.geometry.se3 import inverse, log_so3
from macvo_ros.odometry.message_fields import is_published, odometry_fields, twist
from macvo_ros.odometry.stereo_odometry import StereoOdometry
from macvo_ros.rendering.sensor import Sensor
from macvo_ros.rendering.sequence import RenderedSequence
from macvo_ros.rendering.worlds import build
from macvo_ros.settings.config import load_config

CAMERA = StereoCamera(fx=160.0, fy=160.0, cx=159.5, cy=99.5, baseline=0.12, width=320, height=200)
RATE, FRAMES, DARK, LIGHT = 15.0, 36, range(12, 26), 0.03
SEEDS = range(8)
"""Those that `bench/fusion.py` walks, whatever they show: the end of one walk is one draw, and three were too few."""


@dataclass(frozen=True)
class Recording:
    """Twists as the node publishes them (None: silence), and the truth of the interval each one is about.

    true_twists: (N, 6). middles: (N, 4, 4) true poses in the middle of the intervals, in the first frame's.
    """

    twists: list[tuple[np.ndarray, np.ndarray] | None]
    true_twists: np.ndarray
    middles: np.ndarray


def record(seed: int, light: float = LIGHT) -> Recording:
    """A walk through a rendered room in which the light goes down to a share of itself for a second."""
    world = build("room", seed, 512)
    bright = RenderedSequence(world, FRAMES, seed, camera=CAMERA, rate=RATE, sensor=Sensor())
    dark = RenderedSequence(world, FRAMES, seed, camera=CAMERA, rate=RATE, sensor=Sensor().in_light(light))
    odometry = StereoOdometry(load_config())
    twists: list[tuple[np.ndarray, np.ndarray] | None] = []
    for index in range(FRAMES):
        estimate = odometry.track((dark if index in DARK else bright)[index])
        fields = odometry_fields(estimate)
        measured = np.concatenate([fields.linear, fields.angular]), fields.twist_covariance.reshape(6, 6)
        twists.append(measured if is_published(estimate.status) else None)
    poses = bright.ground_truth
    assert poses is not None
    true_twists = [np.concatenate(twist(inverse(a) @ b, 1 / RATE)) for a, b in itertools.pairwise(poses)]
    middles = np.stack([inverse(poses[0]) @ world.trajectory((index + 0.5) / RATE) for index in range(FRAMES - 1)])
    return Recording(twists[1:], np.array(true_twists), middles)


@pytest.fixture(scope="module")
def recordings() -> list[Recording]:
    return [record(seed) for seed in SEEDS]


def filter_errors(recordings: list[Recording], covariance: Callable[[int, np.ndarray], np.ndarray]) -> dict[str, float]:
    """Root mean square errors of the filter's output, all recordings together.

    covariance: what the filter is told, from the index of the frame and our covariance. A twist is a mean over the
    interval between two images, so it is fused in the middle of it.
    """
    squares: dict[str, list[float]] = {"linear": [], "angular": [], "position": [], "rotation": []}
    noise = np.diag(np.reshape(ekf_parameters()["process_noise_covariance"], (15, 15)))
    for recording in recordings:
        state = VelocityFilter(noise[6], noise[9])
        for index, measured in enumerate(recording.twists):
            state.predict(1 / RATE if index else 0.5 / RATE)
            if measured is not None:
                state.fuse((measured[0], covariance(index + 1, measured[1])))
            off = state.velocity - recording.true_twists[index]
            truth = recording.middles[index]
            squares["linear"].append(off[:3] @ off[:3])
            squares["angular"].append(off[3:] @ off[3:])
            squares["position"].append(np.sum((state.position - truth[:3, 3]) ** 2))
            squares["rotation"].append(np.sum(log_so3(truth[:3, :3].T @ state.rotation) ** 2))
    return {name: float(np.sqrt(np.mean(values))) for name, values in squares.items()}


def constant(linear: float, angular: float) -> np.ndarray:
    """(6, 6) covariance of the same deviations for each frame, m/s and rad/s."""
    return np.diag([linear**2] * 3 + [angular**2] * 3)


@pytest.fixture(scope="module")
def best_constant(recordings) -> np.ndarray:
    """The constant covariance with the least errors of velocity, found with the truth in hand over four decades."""
    grid = 10.0 ** np.arange(-3.5, 0.6, 0.25)
    linear = [filter_errors(recordings, lambda i, c, s=s: constant(s, 0.01))["linear"] for s in grid]
    angular = [filter_errors(recordings, lambda i, c, s=s: constant(0.03, s))["angular"] for s in grid]
    return constant(grid[np.argmin(linear)], grid[np.argmin(angular)])


def test_the_dark_shows_in_the_covariance(recordings):
    """The stretch is hard (errors grow several times) and the covariance says so."""
    inside = np.isin(np.arange(1, FRAMES), DARK)
    for recording in recordings:
        sigmas = np.array([np.sqrt(np.trace(t[1][:3, :3])) if t else np.nan for t in recording.twists])
        errors = np.array(
            [
                np.linalg.norm(t[0][:3] - truth[:3]) if t else np.nan
                for t, truth in zip(recording.twists, recording.true_twists, strict=True)
            ]
        )
        assert np.nanmedian(errors[inside]) > 2 * np.nanmedian(errors[~inside])
        assert np.nanmedian(sigmas[inside]) > 1.7 * np.nanmedian(sigmas[~inside])


def test_our_covariance_beats_the_best_constant_one(recordings, best_constant):
    """The path is better, and velocity, for which the constant was found with the truth in hand, is nearly as good.

    Not better: errors are made in the dark, where the walk changes its velocity as much as is measured wrongly
    (docs/fusion.md).
    """
    ours = filter_errors(recordings, lambda index, covariance: covariance)
    theirs = filter_errors(recordings, lambda index, covariance: best_constant)
    both = f"{ours} with our covariance, {theirs} with the best constant one"
    assert ours["position"] < theirs["position"], both
    assert ours["rotation"] < theirs["rotation"], both
    assert ours["linear"] < 1.125 * theirs["linear"], both
    assert ours["angular"] < 1.125 * theirs["angular"], both


def test_a_covariance_that_lies_is_worse_than_none(recordings, best_constant):
    """Told that the dark is good and the light is bad, the same filter loses: the covariance decides the weight."""
    lie = filter_errors(recordings, lambda index, covariance: best_constant * (0.01 if index in DARK else 100.0))
    honest = filter_errors(recordings, lambda index, covariance: best_constant)
    assert lie["linear"] > 1.2 * honest["linear"]


def test_the_filter_itself_is_right():
    """On twists drawn from their stated noise along an exact motion its errors are within its own covariance."""
    rng = np.random.default_rng(4)
    dt, nees = 0.05, []
    for _ in range(60):
        state, truth = VelocityFilter(0.1, 0.2), VelocityFilter(0.1, 0.2)
        for _ in range(20):
            # Draw the truth from the filter's own process: velocity steps with the correlated displacement.
            root = np.sqrt(dt) * np.concatenate([np.full(3, np.sqrt(0.1)), np.full(3, np.sqrt(0.2))])
            truth.predict(dt)
            truth.velocity = truth.velocity + root * rng.normal(size=6)
            state.predict(dt)
            noise = constant(*rng.uniform(0.01, 0.3, 2))
            state.fuse((truth.velocity + rng.normal(size=6) * np.sqrt(np.diag(noise)), noise))
        off = truth.velocity - state.velocity
        nees.append(off @ np.linalg.solve(state.covariance[6:, 6:], off))
    assert np.mean(nees) == pytest.approx(6.0, abs=1.0)
