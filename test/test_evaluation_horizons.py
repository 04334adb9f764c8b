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

"""Drift over stretches, worked out by hand, and honesty by horizon, against Monte Carlo."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from fake_odometry import NoisyOdometry, NoisyTruth, winding_path

from macvo_ros.errors import ConfigError
from macvo_ros.evaluation.horizons import honesty_by_horizon
from macvo_ros.evaluation.kitti_measure import kitti_measure
from macvo_ros.evaluation.metrics import motion_error
from macvo_ros.evaluation.runner import run_sequence
from macvo_ros.evaluation.truth_noise import TruthNoise, parse_truth_noise
from macvo_ros.geometry.se3 import exp_so3, transform
from macvo_ros.odometry.stereo_odometry import StereoOdometry
from macvo_ros.rendering.sequence import RenderedSequence
from macvo_ros.settings.config import load_config
from macvo_ros.uncertainty.trajectory import PoseWithCovariance


def straight(metres: int, step: float = 1.0) -> np.ndarray:
    """Poses along z, a metre apart."""
    poses = np.tile(np.eye(4), (metres + 1, 1, 1))
    poses[:, 2, 3] = step * np.arange(metres + 1)
    return poses


def test_scale_that_is_off_by_a_hundredth_drifts_by_a_hundredth() -> None:
    measure = kitti_measure(straight(450, 1.01), straight(450))
    assert measure is not None
    # A stretch ends at the first frame beyond its length: 101 m are off by 1.01 m, which is 1.01 % of 100 m.
    by_hand = [1.01 / 100 * 100, 2.01 / 200 * 100, 3.01 / 300 * 100, 4.01 / 400 * 100]
    assert [drift.t_err for drift in measure.by_length] == pytest.approx(by_hand)
    # Starts 0, 10, ... whose end is still on the path of 450 m: the last is 340 (ends at 441), 240, 140, 40.
    assert [drift.stretches for drift in measure.by_length] == [35, 25, 15, 5]
    assert measure.t_err == pytest.approx(np.dot([35, 25, 15, 5], by_hand) / 80)
    assert measure.r_err == pytest.approx(0.0, abs=1e-6)


def test_a_turn_of_a_hundredth_of_a_degree_a_metre_is_a_degree_in_100_m() -> None:
    poses = [np.eye(4)]
    for _ in range(250):
        poses.append(poses[-1] @ transform(exp_so3(np.array([0.0, np.radians(0.01), 0.0])), np.array([0.0, 0.0, 1.0])))
    measure = kitti_measure(np.array(poses), straight(250))
    assert measure is not None
    assert [drift.r_err for drift in measure.by_length] == pytest.approx([1.01, 1.005], rel=1e-4)
    # 101 steps of a metre at 0, 0.01, ... 1.00 degrees: the last lies radians(0.01) * (0 + ... + 100) m aside, of 100.
    assert measure.by_length[0].t_err == pytest.approx(100 * np.radians(0.01) * 5050 / 100, rel=2e-3)


def test_a_way_of_less_than_100_m_has_no_such_measure() -> None:
    assert kitti_measure(straight(99), straight(99)) is None


@pytest.mark.parametrize(("claimed", "expected"), [(1.0, 6.0), (0.5, 24.0)])
def test_honest_odometry_has_nees_six_at_every_horizon(claimed: float, expected: float) -> None:
    truth = winding_path(60)
    found: dict[float, list[float]] = {}
    for seed in range(25):
        run = run_sequence(NoisyTruth(truth), NoisyOdometry(truth, seed, claimed), progress=False)
        for horizon in honesty_by_horizon(run, truth):
            found.setdefault(horizon.seconds, []).append(horizon.nees_mean)
    assert sorted(found) == [0.0, 1.0, 5.0], "the path is 5.9 s long"
    for values, tolerance in zip(found.values(), (0.05, 0.1, 0.3), strict=True):
        assert np.mean(values) == pytest.approx(expected, rel=tolerance)


def test_covariance_from_the_first_frame_on_is_the_published_one() -> None:
    """Of two frames: what hangs on the first frame is the pose itself, disparities shared by motions included."""
    sequence = RenderedSequence("room", 12, 5)
    config = load_config(assignments=["matcher=classic", "window.frames=2"])
    run = run_sequence(sequence, StereoOdometry(config), progress=False)
    places = [run.covariances[0]]
    place = None
    for i in range(1, len(run.steps)):
        step = run.steps[i]
        assert step is not None
        assert step.origin == run.stamps[i - 1]
        assert (step.shared is None) == (i == 1)
        place = step.appended_to(place or PoseWithCovariance(run.poses[0], run.covariances[0]))
        places.append(step.total(place))
    np.testing.assert_allclose(np.array(places), run.covariances, rtol=1e-9)
    one, *_ = honesty_by_horizon(run, np.array(sequence.ground_truth))
    assert one.starts == 11
    assert one.nees_mean < 60


def test_noise_of_the_truth_is_that_of_errors_it_makes() -> None:
    rng = np.random.default_rng(3)
    noise = TruthNoise(position=0.004, attitude=0.002, seconds=0.5, misaligned=0.003)
    motion = transform(exp_so3(np.array([0.0, 0.2, 0.0])), np.array([0.5, 0.0, 3.0]))
    kept = np.exp(-0.4 / 0.5)
    errors = []
    for _ in range(4000):
        first, misaligned = rng.normal(size=6), exp_so3(noise.misaligned * rng.normal(size=3))
        later = kept * first + np.sqrt(1 - kept**2) * rng.normal(size=6)
        poses = []
        for pose, draw in ((np.eye(4), first), (motion, later)):
            turn = exp_so3(noise.attitude * draw[3:])
            poses.append(transform(turn @ misaligned @ pose[:3, :3], pose[:3, 3] + noise.position * draw[:3]))
        errors.append(motion_error(motion[None], (np.linalg.inv(poses[0]) @ poses[1])[None])[0])
    expected = noise.covariance(motion[None, :3, 3], np.array([0.4]))[0]
    np.testing.assert_allclose(np.std(errors, axis=0), np.sqrt(np.diag(expected)), rtol=0.05)


def test_drift_of_the_truth_is_that_of_a_velocity_that_is_forgotten() -> None:
    rng = np.random.default_rng(4)
    noise = TruthNoise(0.0, 0.0, seconds=1.0, drift=0.06, drift_seconds=4.0, turning=0.0002, turning_seconds=10.0)
    step = 0.05
    sigma, kept = np.repeat((0.06, 0.0002), 3), np.exp(-step / np.repeat((4.0, 10.0), 3))
    velocity = sigma * rng.normal(size=(4000, 6))
    moved = np.zeros_like(velocity)
    for k in range(200):
        moved += step * velocity
        velocity = kept * velocity + sigma * np.sqrt(1 - kept**2) * rng.normal(size=velocity.shape)
        if k in (19, 199):
            expected = noise.covariance(np.zeros((1, 3)), np.array([(k + 1) * step]))[0]
            np.testing.assert_allclose(moved.std(axis=0), np.sqrt(np.diag(expected)), rtol=0.05)


def test_noise_of_the_truth_is_read_with_and_without_drift() -> None:
    assert parse_truth_noise("0.02,0,0.25") == TruthNoise(0.02, 0.0, 0.25)
    assert parse_truth_noise("0.02,0,0.25,0.06,4") == TruthNoise(0.02, 0.0, 0.25, 0.06, 4.0)
    turning = TruthNoise(0.02, 0.0, 0.25, 0.0, 1.0, np.radians(0.012), 10.0)
    assert parse_truth_noise("0.02,0,0.25,0,1,0.012,10") == turning
    assert parse_truth_noise("0.02,0,0.25,0,1,0.012,10,0.75") == replace(turning, misaligned=np.radians(0.75))


@pytest.mark.parametrize(
    "text", ["1,2", "a,b,c", "0.1,0.1,0", "-1,0,1", "nan,0,1", "", "0,0,1,0.1", "0,0,1,-1,1", "0,0,1,0,1,1"]
)
def test_noise_that_is_none_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ConfigError, match=r"for example 0\.003,0\.05,0\.5"):
        parse_truth_noise(text)
