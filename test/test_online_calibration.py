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

"""Errors of the calibration: what they do to matches, what residuals tell of them, and how they are learned."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.geometry.se3 import difference, exp_so3, transform
from macvo_ros.matching.matcher import PointMatches
from macvo_ros.motion.calibration_evidence import CalibrationEvidence, calibration_evidence
from macvo_ros.motion.common_points import at_common_points
from macvo_ros.motion.point_pairs import PointPairs, point_pairs
from macvo_ros.motion.pose_solver import PoseSolution, solve_linearised, solve_pose
from macvo_ros.settings.config import CalibrationConfig, PoseConfig
from macvo_ros.uncertainty.block_scatter import BlockScatter, Evidence
from macvo_ros.uncertainty.calibration_filter import CalibrationFilter
from macvo_ros.uncertainty.calibration_model import (
    AHEAD,
    CENTRE_U,
    CONSIDERED,
    FOCAL,
    FOCAL_RIGHT,
    K1,
    LEFT_V,
    PITCH,
    ROLL,
    SCALING,
    SIZE,
    YAW,
    CalibrationModel,
    Keypoints,
)
from macvo_ros.uncertainty.online_calibration import OnlineCalibration
from macvo_ros.uncertainty.row_evidence import fit_rows, row_evidence

CAMERA = StereoCamera(fx=700.0, fy=700.0, cx=600.0, cy=180.0, baseline=0.5, width=1200, height=370)
MODEL = CalibrationModel(CAMERA)
FORWARD = transform(exp_so3(np.array([0.002, 0.02, -0.001])), np.array([0.02, 0.01, 1.0]))


def seen(motion: np.ndarray, seed: int = 0, noise: float = 0.0, count: int = 300) -> Keypoints:
    """Matches of points that a camera which moves by `motion` sees, with noise of that many pixels."""
    rng = np.random.default_rng(seed)
    pixel = rng.uniform((20, 20), (1180, 350), (count, 2))
    depth = rng.uniform(6, 60, count)
    ray = np.column_stack(((pixel - (CAMERA.cx, CAMERA.cy)) / (CAMERA.fx, CAMERA.fy), np.ones(count)))
    later = (ray * depth[:, None] - motion[:3, 3]) @ motion[:3, :3]
    matched = later[:, :2] / later[:, 2:] * (CAMERA.fx, CAMERA.fy) + (CAMERA.cx, CAMERA.cy)
    scale = CAMERA.fx * CAMERA.baseline
    draw = noise * rng.normal(size=(count, 4))
    return Keypoints(pixel, scale / depth + draw[:, 0], matched + draw[:, 1:3], scale / later[:, 2] + draw[:, 3])


def matches(points: Keypoints, sigma: float) -> PointMatches:
    var = np.full(len(points.disparity), sigma**2)
    return PointMatches(
        points.pixel,
        points.disparity,
        var,
        points.matched - points.pixel,
        np.column_stack((var, var)),
        points.matched_disparity,
        var,
    )


def solved(points: Keypoints, sigma: float = 0.1) -> tuple[PoseSolution, PointPairs]:
    """With the points as measured."""
    pairs = point_pairs(CAMERA, matches(points, sigma))
    return solve_pose(pairs, FORWARD, PoseConfig()), pairs


def evidence_of(measured: Keypoints, used: np.ndarray, sigma: float = 0.1) -> Evidence:
    """As the odometry asks for it: at the points that both frames agree on."""
    return found_out(measured, used, sigma).told


def found_out(measured: Keypoints, used: np.ndarray, sigma: float = 0.1) -> CalibrationEvidence:
    """All that one motion has to do with the calibration."""
    points = MODEL.corrected(measured, used)
    near, _ = solved(points, sigma)
    common = at_common_points(CAMERA, matches(points, sigma), near.motion)
    solution = solve_linearised(common.pairs, common.current, near.motion, PoseConfig())
    return calibration_evidence(MODEL, common.reference, common.current, solution, used)


def some_error(seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=SIZE) * OnlineCalibration(CAMERA, CalibrationConfig()).prior


def test_a_right_camera_that_is_turned_moves_matches_as_its_rotation_does() -> None:
    """Against the projection of points by a rotated camera, not against the formula."""
    points = seen(FORWARD)
    depth = CAMERA.fx * CAMERA.baseline / points.disparity
    ray = np.column_stack(((points.pixel - (CAMERA.cx, CAMERA.cy)) / CAMERA.fx, np.ones(len(depth))))
    in_right = ray * depth[:, None] - (CAMERA.baseline, 0, 0)
    for parameter, axis in ((PITCH, 0), (YAW, 1), (ROLL, 2)):
        turn = np.zeros(3)
        turn[axis] = np.radians(0.05)
        turned = in_right @ exp_so3(turn)  # the inverse rotation, of rows
        right_u = CAMERA.fx * turned[:, 0] / turned[:, 2] + CAMERA.cx
        measured = Keypoints(points.pixel, points.pixel[:, 0] - right_u, points.matched, points.matched_disparity)
        error = np.zeros(SIZE)
        error[parameter] = np.radians(0.05)
        assert np.abs(measured.disparity - points.disparity).max() > 0.1
        np.testing.assert_allclose(MODEL.corrected(measured, error).disparity, points.disparity, atol=3e-3)
        rows = CAMERA.fy * turned[:, 1] / turned[:, 2] + CAMERA.cy - points.pixel[:, 1]
        column = {PITCH: 0, YAW: 1, ROLL: 2}[parameter]
        told = MODEL.row_jacobian(points.pixel, points.disparity)[:, column] * np.radians(0.05)
        np.testing.assert_allclose(told, rows, atol=3e-3)


def test_what_is_not_wrong_is_not_touched() -> None:
    points = seen(FORWARD)
    assert MODEL.corrected(points, np.zeros(SIZE)) is points


def test_jacobian_is_the_derivative_of_the_residuals() -> None:
    points = seen(FORWARD)
    solution, pairs = solved(points)
    rotation = solution.motion[:3, :3]
    jacobian = MODEL.jacobian(points, pairs.reference, pairs.current, rotation)
    for parameter in range(SIZE):
        step = np.zeros(SIZE)
        step[parameter] = 1e-6
        _, moved = solved(MODEL.distorted(points, step))
        numeric = (moved.reference - pairs.reference - (moved.current - pairs.current) @ rotation.T) / 1e-6
        np.testing.assert_allclose(jacobian[:, :, parameter], numeric, rtol=2e-3, atol=2e-3 * np.abs(numeric).max())


def test_motion_errs_as_its_sensitivity_says() -> None:
    points = seen(FORWARD)
    truth, pairs = solved(points)
    sensitivity = calibration_evidence(MODEL, pairs.reference, pairs.current, truth, np.zeros(SIZE)).sensitivity
    error = 0.05 * some_error()
    wrong, _ = solved(MODEL.distorted(points, error))
    expected = sensitivity @ error
    found = difference(wrong.motion, truth.motion)
    np.testing.assert_allclose(found, expected, atol=0.1 * np.abs(expected).max())


@pytest.mark.parametrize(
    ("parameter", "sigmas", "frames"),
    [(YAW, 2.5, 80), (ROLL, 2.5, 80), (FOCAL, 2.5, 300), (FOCAL_RIGHT, 2.0, 80), (K1, 4.0, 80), (AHEAD, 4.0, 80)],
)
def test_an_error_is_learned_from_turning_and_driving(parameter: int, sigmas: float, frames: int) -> None:
    learning = OnlineCalibration(CAMERA, CalibrationConfig())
    truth = np.zeros(SIZE)
    truth[parameter] = sigmas * learning.prior[parameter]
    for frame in range(frames):
        motion = transform(exp_so3(np.array([0.0, 0.03 * np.sin(frame / 10), 0.0])), np.array([0.0, 0.0, 1.0]))
        measured = MODEL.distorted(seen(motion, frame, noise=0.1), truth)
        learning.learn(evidence_of(measured, learning.estimate.error), 0.1, 20.0)
    estimate = learning.estimate
    assert abs(estimate.error[parameter] - truth[parameter]) < 3 * estimate.sigma[parameter]
    assert estimate.error[parameter] > 0.6 * truth[parameter]


def test_a_perfect_calibration_stays_as_it_is_and_a_still_camera_learns_nothing() -> None:
    learning = OnlineCalibration(CAMERA, CalibrationConfig())
    for frame in range(60):
        motion = transform(np.eye(3), np.array([0.0, 0.0, 1.0])) if frame < 30 else np.eye(4)
        measured = seen(motion, frame, noise=0.1)
        assert learning.assumed.error is not None
        learning.learn(evidence_of(measured, learning.assumed.error), 0.1, 20.0 if frame < 30 else 0.1)
        if frame == 29:
            driven = learning.estimate
    assert not driven.error[list(CONSIDERED)].any()
    assert abs(driven.error[SCALING]) < np.radians(0.001)
    assert (np.abs(driven.error) < 0.5 * learning.prior).all()
    assert learning.estimate.sigma[FOCAL] > 0.6 * learning.prior[FOCAL]
    assert learning.knocks == 0


@pytest.mark.parametrize("noise", [0.1, 0.4])
def test_noise_does_not_look_like_an_error_of_the_calibration(noise: float) -> None:
    """Weighed by what was measured it does: the same frames then show a yaw and a focal length of many sigmas."""
    prior = OnlineCalibration(CAMERA, CalibrationConfig()).prior
    sums = [[np.zeros((SIZE, SIZE)), np.zeros(SIZE)] for _ in range(2)]
    for frame in range(60):
        motion = transform(exp_so3(np.array([0.0, 0.02 * np.sin(frame / 10), 0.0])), np.array([0.0, 0.0, 1.0]))
        measured = seen(motion, frame, noise)
        near, pairs = solved(measured, noise)
        as_measured = calibration_evidence(MODEL, pairs.reference, pairs.current, near, np.zeros(SIZE)).told
        for (information, score), told in zip(
            sums, (as_measured, evidence_of(measured, np.zeros(SIZE), noise)), strict=True
        ):
            information += told.information
            score += told.score
    sigmas = []
    for information, score in sums:
        covariance = np.linalg.inv(np.eye(SIZE) + information * prior[:, None] * prior)
        sigmas.append(covariance @ (score * prior) / np.sqrt(np.diagonal(covariance)))
    assert np.abs(sigmas[0][[YAW, FOCAL, K1]]).max() > 5
    assert np.abs(sigmas[1]).max() < 3.5


def test_a_turned_camera_explains_residuals_and_nothing_else_does() -> None:
    """The share of the squared residuals that is the calibration's: most of it after a knock, little of any noise."""
    knock, lens = np.zeros(SIZE), np.zeros(SIZE)
    knock[YAW], lens[LEFT_V] = np.radians(0.3), np.random.default_rng(4).normal(size=LEFT_V.stop - LEFT_V.start)
    noisy = seen(FORWARD, 3, noise=0.1)
    shares = [found_out(MODEL.distorted(noisy, error), np.zeros(SIZE)).turned for error in (0 * knock, lens, knock)]
    assert shares[0] < 0.03, "three unknowns of 900 residuals"
    assert shares[1] < 0.3
    assert shares[2] > 0.8
    assert found_out(MODEL.distorted(noisy, knock), knock).turned < 0.03, "what is corrected already"


def test_a_knock_is_noticed_and_learned_anew() -> None:
    """From where the camera is seen to stand; what was known of the lenses before is still known."""
    learning = OnlineCalibration(CAMERA, CalibrationConfig())
    truth, noticed = np.zeros(SIZE), None
    truth[FOCAL] = 0.006
    for frame in range(260):
        if frame == 100:
            truth[YAW] = np.radians(0.1)
        motion = transform(exp_so3(np.array([0.0, 0.02 * np.sin(frame / 10), 0.0])), np.array([0.0, 0.0, 1.0]))
        measured = MODEL.distorted(seen(motion, frame, noise=0.1), truth)
        assert learning.assumed.error is not None
        if learning.learn(evidence_of(measured, learning.assumed.error), 0.1, 20.0) and noticed is None:
            noticed = frame
            assert learning.estimate.error[YAW] > 0.3 * truth[YAW], "at once"
            assert learning.estimate.error[FOCAL] > 0.5 * truth[FOCAL]
    assert noticed is not None
    assert 100 < noticed <= 150, "within 5 s"
    assert learning.estimate.error[YAW] > 0.5 * truth[YAW]
    assert learning.knocks == 1


@pytest.mark.parametrize(("parameter", "degrees"), [(PITCH, 0.02), (ROLL, 0.05)])
def test_rows_tell_pitch_and_roll_beside_any_smooth_field(parameter: int, degrees: float) -> None:
    rng = np.random.default_rng(3)
    pixel, disparity = rng.uniform((30, 30), (1170, 340), (300, 2)), rng.uniform(5, 60, 300)
    x, y = ((pixel - (CAMERA.cx, CAMERA.cy)) / 600).T
    x = x - disparity / 600  # where the right image shows it
    turned = MODEL.row_jacobian(pixel, disparity)[:, {PITCH: 0, ROLL: 2}[parameter]] * np.radians(degrees)
    vertical = turned + 2.0 * x * y - 0.5 * (1.5 * x**2 - 0.5) + rng.normal(0, 0.1, 300)
    vertical[:20] += rng.uniform(-3, 3, 20)
    rows = fit_rows(MODEL, pixel, disparity, vertical)
    assert rows is not None
    evidence = row_evidence(MODEL, rows)
    both = np.ix_([PITCH, ROLL], [PITCH, ROLL])
    covariance = np.linalg.inv(evidence.information[both])
    found = dict(zip((PITCH, ROLL), covariance @ evidence.score[[PITCH, ROLL]], strict=True))
    truth = {PITCH: 0.0, ROLL: 0.0, parameter: np.radians(degrees)}
    for index, variance in zip((PITCH, ROLL), np.diagonal(covariance), strict=True):
        assert abs(found[index] - truth[index]) < 4 * np.sqrt(variance)
    assert np.degrees(np.sqrt(covariance[0, 0])) < 0.003
    assert fit_rows(MODEL, pixel[:20], disparity[:20], vertical[:20]) is None


def test_corners_in_a_part_of_the_image_do_not_turn_the_camera_by_what_they_miss() -> None:
    """A field of high degree that may be anything lets corners of one side turn the camera by half a degree."""
    rng = np.random.default_rng(7)
    found = []
    for _ in range(40):
        pixel, disparity = rng.uniform((700, 150), (950, 300), (120, 2)), rng.uniform(5, 60, 120)
        vertical = rng.normal(0, 0.05, 120) + 0.1 * np.sin(pixel[:, 0] / 40 + rng.uniform(0, 6))  # they err alike
        rows = fit_rows(MODEL, pixel, disparity, vertical)
        assert rows is not None
        evidence = row_evidence(MODEL, rows)
        both = np.ix_([PITCH, ROLL], [PITCH, ROLL])
        found.append(np.linalg.solve(evidence.information[both], evidence.score[[PITCH, ROLL]]))
    assert np.degrees(np.std(found, axis=0)).max() < 0.2


def test_switched_off_nothing_is_corrected_but_the_covariance_knows() -> None:
    """Motions keep the whole error that is there: the variance of what it does to them is its square at least."""
    off, on = (OnlineCalibration(CAMERA, CalibrationConfig(online=online)) for online in (False, True))
    truth = np.zeros(SIZE)
    truth[ROLL] = 3 * off.prior[ROLL]
    for frame in range(120):
        motion = transform(exp_so3(np.array([0.0, 0.03 * np.sin(frame / 10), 0.0])), np.array([0.0, 0.0, 1.0]))
        measured = MODEL.distorted(seen(motion, frame, noise=0.1), truth)
        for learning in (off, on):
            used = learning.assumed.error
            assert used is not None
            learning.learn(evidence_of(measured, used), 0.1, 20.0)
    assert off.assumed.error is not None
    assert not off.assumed.error.any()
    sensitivity = np.zeros(SIZE + 2)
    sensitivity[ROLL] = 1.0
    assert sensitivity @ off.covariance @ sensitivity > 0.8 * truth[ROLL] ** 2
    np.testing.assert_allclose(off.estimate.error[ROLL], on.estimate.error[ROLL], atol=on.estimate.sigma[ROLL])


def drive(learning: OnlineCalibration, truth: np.ndarray, frames: int) -> None:
    """Learn from a drive with gentle turns through a camera that is wrong by `truth`."""
    for frame in range(frames):
        motion = transform(exp_so3(np.array([0.0, 0.03 * np.sin(frame / 10), 0.0])), np.array([0.0, 0.0, 1.0]))
        measured = MODEL.distorted(seen(motion, frame, noise=0.1), truth)
        assert learning.assumed.error is not None
        learning.learn(evidence_of(measured, learning.assumed.error), 0.1, 20.0)


def test_motions_before_something_was_learned_keep_its_error() -> None:
    learning = OnlineCalibration(CAMERA, CalibrationConfig())
    truth = np.zeros(SIZE)
    truth[ROLL] = 3 * learning.prior[ROLL]
    drive(learning, truth, 120)
    known = learning.estimate.error
    assert known[ROLL] > 0.7 * truth[ROLL]
    sensitivity = np.zeros(SIZE)
    sensitivity[ROLL] = 1.0
    before, after = (np.concatenate((sensitivity, [0.0, sensitivity @ used])) for used in (np.zeros(SIZE), known))
    covariance = learning.covariance
    assert covariance is not None
    assert (before + after) @ covariance @ (before + after) > known[ROLL] ** 2
    assert after @ covariance @ after == pytest.approx(learning.estimate.covariance[ROLL, ROLL])


def test_scatter_beyond_what_is_promised_makes_evidence_worth_less() -> None:
    rng = np.random.default_rng(5)
    calm, wild = (BlockScatter(np.ones(3), 20.0) for _ in range(2))
    for _ in range(800):
        draw = rng.normal(size=3)
        calm.add(Evidence(100 * np.eye(3), 10 * draw), 0.1)
        wild.add(Evidence(100 * np.eye(3), 100 * draw), 0.1)
    assert calm.value < 4
    assert wild.value > 60


def test_a_constant_error_of_half_the_size_as_that_of_places_is_covered() -> None:
    """Evidence that errs from place to place, and by half of that everywhere: the truth is where the estimate says."""
    rng = np.random.default_rng(6)
    squares, formal, found = [], [], []
    for _ in range(100):
        scatter, learning = BlockScatter(np.ones(12), 20.0), CalibrationFilter(np.ones(12))
        truth, bias = rng.normal(size=12), 0.05 * rng.normal(size=12)
        for frame in range(480):
            if frame % 40 == 0:
                place = 0.1 * rng.normal(size=12)
            score = 100 * (truth + bias + place) + 10 * rng.normal(size=12)
            evidence = Evidence(100 * np.eye(12), score)
            scatter.add(evidence, 0.125)
            learning.learn(evidence.times(1 / scatter.value), 0.125)
        off = truth - learning.estimate.error
        squares.append(off @ np.linalg.solve(learning.estimate.covariance, off))
        formal.append(off @ off * 100 * 480)
        found.append(learning.constant_bias(truth))
    assert 9 < np.mean(squares) < 15, "12 is honest"
    assert np.mean(formal) > 1200, "by its formal information the same estimate is far too sure"
    assert 0.15 < np.mean(found) < 0.35, "a quarter of a block's variance, where the truth is known"


def test_a_right_camera_that_stands_ahead_moves_matches_as_projection_says() -> None:
    points = seen(FORWARD)
    depth = CAMERA.fx * CAMERA.baseline / points.disparity
    ray = np.column_stack(((points.pixel - (CAMERA.cx, CAMERA.cy)) / CAMERA.fx, np.ones(len(depth))))
    in_right = ray * depth[:, None] - (CAMERA.baseline, 0, 0.01 * CAMERA.baseline)
    right_u = CAMERA.fx * in_right[:, 0] / in_right[:, 2] + CAMERA.cx
    measured = Keypoints(points.pixel, points.pixel[:, 0] - right_u, points.matched, points.matched_disparity)
    error = np.zeros(SIZE)
    error[AHEAD] = 0.01
    assert np.abs(measured.disparity - points.disparity).max() > 0.1
    np.testing.assert_allclose(MODEL.corrected(measured, error).disparity, points.disparity, atol=6e-3)


def test_the_principal_point_is_feared_and_never_corrected() -> None:
    learning = OnlineCalibration(CAMERA, CalibrationConfig())
    truth = np.zeros(SIZE)
    truth[CENTRE_U] = 3 * learning.prior[CENTRE_U]
    drive(learning, truth, 100)
    assert learning.estimate.error[CENTRE_U] == 0.0
    assert learning.estimate.sigma[CENTRE_U] >= 0.999 * learning.prior[CENTRE_U]


def test_fields_cannot_scale_motions_by_what_is_denied_to_a_yaw() -> None:
    """Of two errors that scale motions alike one is seen: the other makes up for half of it, as the prior has it."""
    sure = Evidence(np.diag([0.0, 1e4]), np.array([0.0, 1e4]), scaling=np.ones(2))
    free, bounded = CalibrationFilter(np.ones(2), few=0.0), CalibrationFilter(np.ones(2), scaling=0, few=0.0)
    for learning in (free, bounded):
        for _ in range(200):
            learning.learn(sure, 0.1)
    assert free.estimate.error == pytest.approx([0.0, 1.0], abs=0.01)
    assert bounded.estimate.error == pytest.approx([-0.5, 1.0], abs=0.01)
    assert bounded.estimate.sigma[0] < free.estimate.sigma[0]


def test_a_claim_of_scale_is_believed_by_what_its_blocks_are_sure_of() -> None:
    """The same claim of many blocks, with a sigma of a tenth and of one of the prior's: much and little is believed."""
    believed = []
    for sigma in (0.1, 1.0):
        learning = CalibrationFilter(np.ones(2), scaling=0, few=0.0)
        frames = 50  # of a block
        claim = Evidence(np.diag([1.0, 0.0]) / (frames * sigma**2), np.array([1.0, 0.0]) / (frames * sigma**2))
        for _ in range(2000):
            learning.learn(replace(claim, scaling=np.array([1.0, 0.0])), 0.1)
        believed.append(learning.estimate.error[0])
    assert believed[0] > 0.7
    assert believed[1] < 0.3
