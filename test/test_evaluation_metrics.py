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

"""Metrics against evo, against Monte Carlo, and where they have no answer."""

from __future__ import annotations

import numpy as np
import pytest
from fake_odometry import NoisyOdometry, NoisyTruth, winding_path
from hypothesis import given, settings
from hypothesis import strategies as st

from macvo_ros.errors import SequenceError
from macvo_ros.evaluation.metrics import (
    absolute_trajectory_error,
    anchored,
    evaluate,
    motion_error,
    nees,
    relative_errors,
    within,
)
from macvo_ros.evaluation.runner import run_sequence
from macvo_ros.geometry.se3 import exp_so3, transform


def noisy(poses: np.ndarray, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.array([pose @ transform(exp_so3(rng.normal(0, 0.02, 3)), rng.normal(0, 0.05, 3)) for pose in poses])


def test_relative_errors_are_those_of_evo() -> None:
    from evo.core import metrics
    from evo.core.trajectory import PosePath3D

    truth = winding_path(50)
    ours = noisy(truth, seed=1)
    translation, rotation = relative_errors(ours, truth)
    for relation, values in (
        (metrics.PoseRelation.translation_part, translation),
        (metrics.PoseRelation.rotation_angle_deg, rotation),
    ):
        rpe = metrics.RPE(relation, delta=1, delta_unit=metrics.Unit.frames, all_pairs=False)
        rpe.process_data((PosePath3D(poses_se3=list(truth)), PosePath3D(poses_se3=list(ours))))
        np.testing.assert_allclose(rpe.error, values, rtol=1e-6, atol=1e-9)


def test_relative_errors_are_the_equation_of_the_paper() -> None:
    truth = winding_path(20)
    ours = noisy(truth, seed=2)
    translation, rotation = relative_errors(ours, truth)
    for t in range(19):
        R, R_hat = truth[t, :3, :3], ours[t, :3, :3]
        step, step_hat = truth[t + 1, :3, 3] - truth[t, :3, 3], ours[t + 1, :3, 3] - ours[t, :3, 3]
        assert translation[t] == pytest.approx(np.linalg.norm(step - R @ R_hat.T @ step_hat))
        difference = (R_hat.T @ ours[t + 1, :3, :3]).T @ (R.T @ truth[t + 1, :3, :3])
        angle = np.degrees(np.arccos(np.clip((np.trace(difference) - 1) / 2, -1, 1)))
        assert rotation[t] == pytest.approx(angle, rel=1e-6)


def test_relative_errors_do_not_depend_on_the_world() -> None:
    truth = winding_path(20)
    ours = noisy(truth, seed=3)
    world = transform(exp_so3(np.array([0.3, -1.0, 2.0])), np.array([5.0, -7.0, 1.0]))
    np.testing.assert_allclose(relative_errors(world @ ours, truth), relative_errors(ours, truth), atol=1e-9)


def test_ate_forgives_the_frame_but_not_the_scale() -> None:
    truth = winding_path(40)
    world = transform(exp_so3(np.array([0.3, -1.0, 2.0])), np.array([5.0, -7.0, 1.0]))
    assert absolute_trajectory_error(world @ truth, truth) == (pytest.approx(0.0, abs=1e-9), "se3")
    doubled = truth.copy()
    doubled[:, :3, 3] *= 2
    spread = np.sqrt(((truth[:, :3, 3] - truth[:, :3, 3].mean(axis=0)) ** 2).sum(axis=1).mean())
    assert absolute_trajectory_error(doubled, truth)[0] == pytest.approx(spread, rel=1e-6)


def test_ate_of_a_still_camera_aligns_the_first_pose() -> None:
    still = np.repeat(np.eye(4)[None], 10, axis=0)
    drifted = still.copy()
    drifted[5:, 0, 3] = 0.2
    assert absolute_trajectory_error(drifted, still) == (pytest.approx(0.2 / np.sqrt(2)), "first pose")


def test_nees_is_six_for_the_covariance_that_made_the_error() -> None:
    rng = np.random.default_rng(4)
    factor = rng.normal(size=(6, 6)) * np.array([1.0, 1.0, 1.0, 1e-4, 1e-4, 1e-4])[:, None]
    covariance = np.repeat((factor @ factor.T)[None], 20_000, axis=0)
    error = rng.normal(size=(20_000, 6)) @ factor.T
    assert nees(error, covariance).mean() == pytest.approx(6.0, abs=0.1)
    sigma = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
    for factor_, share in ((1, 0.6827), (2, 0.9545), (3, 0.9973)):
        assert within(error, sigma, factor_) == pytest.approx(share, abs=0.005)


def test_singular_covariance_is_infinitely_wrong_and_a_missing_one_is_left_out() -> None:
    error = np.full((3, 6), 0.1)
    covariance = np.stack([np.eye(6), np.diag([1.0, 1, 1, 1, 1, 0]), np.full((6, 6), np.nan)])
    values = nees(error, covariance)
    assert values[0] == pytest.approx(0.06)
    assert np.isinf(values[1])
    assert np.isnan(values[2])


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(-2.5, 2.5), min_size=3, max_size=3), st.lists(st.floats(-1e4, 1e4), min_size=3, max_size=3))
def test_motion_error_recovers_what_was_added(rotation: list[float], translation: list[float]) -> None:
    true = transform(exp_so3(np.array(rotation)), np.array(translation))
    delta = np.array([0.3, -0.2, 0.1, 0.4, -0.5, 0.6])
    ours = transform(exp_so3(-delta[3:]) @ true[:3, :3], true[:3, 3] - delta[:3])
    np.testing.assert_allclose(motion_error(ours[None], true[None])[0], delta, atol=1e-9)


@pytest.mark.parametrize(("claimed", "expected"), [(1.0, 6.0), (0.5, 24.0)])
def test_run_that_errs_as_it_says_has_nees_six_and_one_twice_as_bad_has_24(claimed: float, expected: float) -> None:
    truth = winding_path(30)
    relative, pose, inside = [], [], []
    for seed in range(80):
        run = run_sequence(NoisyTruth(truth), NoisyOdometry(truth, seed, claimed), progress=False)
        metrics, errors = evaluate(run, truth)
        relative.append(metrics.nees_relative_mean)
        pose.append(errors.pose_nees)
        inside.append((metrics.within_1sigma, metrics.pose_within_1sigma))
    assert np.mean(relative) == pytest.approx(expected, rel=0.04)
    assert np.mean(pose) == pytest.approx(expected, rel=0.12)  # errors of one path are one error grown
    assert np.mean(inside, axis=0) == pytest.approx([0.683 if claimed == 1 else 0.383] * 2, abs=0.05)


def test_truth_is_anchored_at_the_first_pose() -> None:
    truth = winding_path(10)
    first = transform(exp_so3(np.array([1.0, 0, 0])), np.array([1.0, 2, 3]))
    moved = anchored(truth, first)
    np.testing.assert_allclose(moved[0], first, atol=1e-12)
    np.testing.assert_allclose(np.linalg.inv(moved[3]) @ moved[7], np.linalg.inv(truth[3]) @ truth[7], atol=1e-9)


def test_counts_and_speed() -> None:
    truth = winding_path(12)
    run = run_sequence(NoisyTruth(truth), NoisyOdometry(truth, lost=(4, 5)), progress=False)
    metrics, _ = evaluate(run, truth)
    assert (metrics.frames, metrics.tracking, metrics.degraded, metrics.lost) == (12, 9, 0, 2)
    assert metrics.fps == pytest.approx(11 / run.seconds[1:].sum())
    assert run.reasons == ((4, "nothing to see"), (5, "nothing to see"))


def test_refuses_truth_of_another_length_and_a_single_frame() -> None:
    truth = winding_path(5)
    run = run_sequence(NoisyTruth(truth), NoisyOdometry(truth), progress=False)
    with pytest.raises(SequenceError, match="got 4 poses for 5 frames"):
        evaluate(run, truth[:4])
    one = run_sequence(NoisyTruth(truth[:1]), NoisyOdometry(truth), progress=False)
    with pytest.raises(SequenceError, match="at least 2 frames"):
        evaluate(one, truth[:1])
