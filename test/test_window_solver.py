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


"""The window's solver against what it was drawn from, and what it marginalised against never having done so."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pytest
from simulated_matches import motion_error
from simulated_tracks import CAMERA, known_start, pose_error, simulate_path, simulate_points, start_near

from macvo_ros.geometry.se3 import exp_so3, inverse, transform
from macvo_ros.motion.sliding_window import NewPoints, Sightings, SlidingWindow
from macvo_ros.motion.window_points import WindowPoints, WindowState
from macvo_ros.motion.window_solver import solve_window
from macvo_ros.motion.window_system import linearise
from macvo_ros.odometry.published_step import increment_covariance, taken_in
from macvo_ros.settings.config import PoseConfig
from macvo_ros.uncertainty.relative_motion import RelativeMotion
from macvo_ros.uncertainty.trajectory import PoseWithCovariance, extend


def mean_nees(seed: int, runs: int, shared: float, believed: float | None = None) -> float:
    """Of the newest of five frames."""
    rng = np.random.default_rng(seed)
    nees = []
    for _ in range(runs):
        rotation, position = simulate_path(rng, 5)
        points = simulate_points(rng, rotation, position, np.repeat(np.arange(4), 25), shared, believed=believed)
        start = start_near(rng, rotation, position, points)
        solution = solve_window(CAMERA, points, start, known_start(rotation, position), PoseConfig())
        error = pose_error(rotation, position, solution.state, 4)
        nees.append(error @ np.linalg.solve(np.linalg.inv(solution.information)[-6:, -6:], error))
    return float(np.mean(nees))


@pytest.mark.parametrize("shared", [0.02, 0.5])
def test_mean_nees_is_six(shared):
    """Poses drawn from the stated noise, errors of a point independent or half of them common: 6 +- 0.4."""
    assert abs(mean_nees(20, 700, shared) - 6.0) <= 0.4


def test_seeing_a_point_again_is_not_measuring_it_anew():
    """Who takes common errors for independent ones is too sure."""
    assert mean_nees(21, 200, 0.7, believed=0.02) > 8.0


def test_the_gradient_is_that_of_the_cost():
    """Of the poses with the points at their best, without a robust kernel: half the difference quotient."""
    rng = np.random.default_rng(22)
    rotation, position = simulate_path(rng, 4)
    points = simulate_points(rng, rotation, position, np.repeat(np.arange(3), 15), 0.4)
    config = PoseConfig(kernel=0.0)
    prior = known_start(rotation, position)
    start = start_near(rng, rotation, position, points)
    best = solve_window(CAMERA, points, start, prior, replace(config, max_iterations=100)).state
    active = np.ones(len(points))
    moved = rng.normal(0, 1e-4, 24)
    moved[:6] = 0.0
    step = moved.reshape(4, 6)
    there = replace(
        best,
        rotation=np.array([exp_so3(w) @ r for w, r in zip(step[:, 3:], best.rotation, strict=True)]),
        position=best.position + step[:, :3],
    )
    before, after = (linearise(CAMERA, points, state, config, active) for state in (best, there))
    predicted = before.gradient + before.information @ moved
    assert np.allclose(after.gradient, predicted, rtol=0.02, atol=0.02 * np.abs(predicted).max())


def test_the_window_moved_as_a_whole_costs_nothing():
    rng = np.random.default_rng(23)
    rotation, position = simulate_path(rng, 4)
    points = simulate_points(rng, rotation, position, np.repeat(np.arange(3), 20), 0.4)
    state = start_near(rng, rotation, position, points)
    system = linearise(CAMERA, points, state, PoseConfig(), np.ones(len(points)))
    turn = np.zeros((4, 6, 6))
    turn[:, :3, :3] = turn[:, 3:, 3:] = np.eye(3)
    for k, at in enumerate(state.position):
        turn[k, :3, 3:] = -np.array([[0, -at[2], at[1]], [at[2], 0, -at[0]], [-at[1], at[0], 0]])
    gauge = turn.reshape(24, 6)
    scale = np.abs(system.information).max()
    assert np.abs(system.information @ gauge).max() < 1e-9 * scale


def test_what_moves_by_itself_is_expelled():
    rng = np.random.default_rng(24)
    rotation, position = simulate_path(rng, 5)
    points = simulate_points(rng, rotation, position, np.repeat(np.arange(4), 30), 0.4)
    seen = points.seen.copy()
    moving = np.arange(len(points)) % 5 == 0
    seen[:, 0, moving] += 1.5 * np.arange(5)[:, None]  # pixels a frame
    solution = solve_window(
        CAMERA,
        replace(points, seen=seen),
        start_near(rng, rotation, position, points),
        known_start(rotation, position),
        PoseConfig(),
    )
    assert solution.inlier[moving & (points.inverse_sigma[:, 0] > 0).any(axis=0)].mean() < 0.1
    assert solution.inlier[~moving].mean() > 0.95
    error = pose_error(rotation, position, solution.state, 4)
    assert error @ np.linalg.solve(np.linalg.inv(solution.information)[-6:, -6:], error) < 30.0


@dataclass
class Slid:
    """What a window left: its state; of each frame its pose and that before, as known then, with their 12x12.

    oldest: pose of the oldest frame of the window before and after each solve.
    """

    state: WindowState
    newest: list[np.ndarray]
    before: list[np.ndarray]
    joint: list[np.ndarray]
    oldest: list[tuple[np.ndarray, np.ndarray]]


@dataclass
class Motions:
    """Motions between successive frames as two frames measure them: (N - 1) of (4, 4), and their (6, 6) covariance."""

    motion: list[np.ndarray]
    covariance: np.ndarray

    @staticmethod
    def drawn(
        rng: np.random.Generator,
        rotation: np.ndarray,
        position: np.ndarray,
        share: float = 0.0,
        kept: float = 0.0,
        size: float = 1.0,
    ) -> Motions:
        """size: of their errors; share: of the variance that is common to successive ones, fading by `kept` a frame."""
        sigma = size * np.array([2e-3, 2e-3, 2e-3, 5e-4, 5e-4, 5e-4])
        out, common = [], rng.normal(size=6)
        for k in range(1, len(rotation)):
            true = inverse(transform(rotation[k - 1], position[k - 1])) @ transform(rotation[k], position[k])
            off = sigma * (np.sqrt(share) * common + np.sqrt(1 - share) * rng.normal(size=6))
            common = kept * common + np.sqrt(1 - kept**2) * rng.normal(size=6)
            out.append(transform(exp_so3(off[3:]) @ true[:3, :3], true[:3, 3] + off[:3]))
        return Motions(out, np.diag(sigma**2))


def slide(
    points: WindowPoints,
    rotation: np.ndarray,
    position: np.ndarray,
    limit: int,
    motions: Motions | None = None,
    known: float = 1e-12,
    long_run: float = 1.0,
) -> Slid:
    """All frames through a window of `limit`, every one a keyframe; known: variance of where the first frame is."""
    first_pose = transform(rotation[0], position[0])
    window = SlidingWindow(CAMERA, limit, first_pose, known * np.eye(6))
    slid = Slid(window.state, [first_pose], [first_pose], [known * np.eye(12)], [])
    config, inside = PoseConfig(), np.zeros(0, np.int64)  # which points of all are in the window
    for k in range(1, len(rotation)):
        new = np.flatnonzero(points.anchor == k - 1)
        one = points.subset(points.anchor == k - 1)
        window.drop_temporary()
        before = len(window.points)
        window.promote(
            NewPoints(one.pixel, one.disparity, one.disparity_var, one.shared_var), np.ones(before + len(new))
        )
        inside = np.concatenate((inside, new))
        first = int(points.anchor[inside[0]])
        gone = window.make_room(config)
        inside = inside[points.anchor[inside] >= first + gone]
        inverse_sigma = points.inverse_sigma[k][:, inside]
        variance = 1.0 / np.where(inverse_sigma > 0, inverse_sigma, 1.0) ** 2
        sightings = Sightings(points.seen[k][:, inside], variance, inverse_sigma[0] > 0)
        if motions is None:
            window.add(transform(rotation[k], position[k]), sightings)
        else:
            window.add(pose_of(window.state, -1) @ motions.motion[k - 1], sightings, motions.covariance, long_run)
        oldest = pose_of(window.state, 0)
        solution = window.solve(config)
        inside = inside[solution.inlier]
        window.expel(solution.inlier)
        slid.oldest.append((oldest, pose_of(window.state, 0)))
        slid.newest.append(pose_of(window.state, -1))
        slid.before.append(pose_of(window.state, -2))
        slid.joint.append(np.linalg.inv(solution.information)[-12:, -12:])
    return replace(slid, state=window.state)


def pose_of(state: WindowState, frame: int) -> np.ndarray:
    return transform(state.rotation[frame], state.position[frame])


def test_marginalised_frames_are_not_forgotten():
    """The newest pose of a short window and its covariance are nearly those of all frames together; NEES is six."""
    rng = np.random.default_rng(25)
    nees, apart, ratio = [], [], []
    for run in range(120):
        rotation, position = simulate_path(rng, 10)
        points = simulate_points(rng, rotation, position, np.repeat(np.arange(9), 20), 0.4)
        slid = slide(points, rotation, position, 4)
        covariance = slid.joint[-1][6:, 6:]
        error = pose_error(rotation, position, slid.state, -1)
        nees.append(error @ np.linalg.solve(covariance, error))
        if run < 10:
            whole = slide(points, rotation, position, 100)
            apart.append((slid.state.position[-1] - whole.state.position[-1]) / np.sqrt(covariance.diagonal()[:3]))
            ratio.append(np.sqrt(covariance.diagonal() / whole.joint[-1].diagonal()[6:]))
    assert 5.0 <= np.mean(nees) <= 7.0
    assert np.sqrt(np.mean(np.square(apart))) < 1.0  # points end with the frame they were first seen in
    assert np.min(ratio) > 0.95
    assert np.max(ratio) < 2.5


def test_steps_between_published_poses_have_the_covariance_that_is_said():
    """With two-frame motions among the measurements, corrections taken in bit by bit: 6 +- 0.4, poses 5 to 7."""
    rng = np.random.default_rng(26)
    step, pose = [], []
    for _ in range(120):
        rotation, position = simulate_path(rng, 10)
        points = simulate_points(rng, rotation, position, np.repeat(np.arange(9), 20), 0.4)
        slid = slide(points, rotation, position, 4, Motions.drawn(rng, rotation, position))
        place = slid.newest[0]
        for k in range(1, 10):
            covariance = increment_covariance(slid.joint[k], slid.before[k], slid.newest[k])
            motion = RelativeMotion(inverse(slid.before[k]) @ slid.newest[k], covariance)
            place, relative, off = taken_in(place, motion, slid.newest[k])
            true = inverse(transform(rotation[k - 1], position[k - 1])) @ transform(rotation[k], position[k])
            error = motion_error(true, relative.motion)
            step.append(error @ np.linalg.solve(relative.covariance, error))
        error = motion_error(transform(rotation[9], position[9]), place)
        pose.append(error @ np.linalg.solve(slid.joint[9][6:, 6:] + np.outer(off, off), error))
    assert abs(np.mean(step) - 6.0) <= 0.4
    assert 5.0 <= np.mean(pose) <= 7.0


def test_motions_that_err_alike_are_not_believed_one_by_one():
    """Much alike, more than today: the end of the path is nearer the truth, and its covariance says how near."""
    rng = np.random.default_rng(31)
    share, kept = 0.35, 0.95
    alike = 1.0 + 2.0 * share * kept / (1.0 - kept)
    nees: dict[float, list[float]] = {1.0: [], alike: []}
    away: dict[float, list[float]] = {1.0: [], alike: []}
    step = []
    for _ in range(50):
        rotation, position = simulate_path(rng, 24)
        points = simulate_points(rng, rotation, position, np.repeat(np.arange(23), 20), 0.4)
        motions = Motions.drawn(rng, rotation, position, share, kept, size=0.3)
        for long_run in nees:
            slid = slide(points, rotation, position, 4, motions, long_run=long_run)
            error = pose_error(rotation, position, slid.state, -1)
            nees[long_run].append(error @ np.linalg.solve(slid.joint[-1][6:, 6:], error))
            away[long_run].append(np.linalg.norm(error[:3]))
        for k in range(1, 24):  # of the last that were tried
            covariance = increment_covariance(slid.joint[k], slid.before[k], slid.newest[k])
            true = inverse(transform(rotation[k - 1], position[k - 1])) @ transform(rotation[k], position[k])
            off = motion_error(true, inverse(slid.before[k]) @ slid.newest[k])
            step.append(off @ np.linalg.solve(covariance, off))
    assert np.mean(away[alike]) < 0.9 * np.mean(away[1.0])
    assert np.mean(nees[1.0]) > 8.0 > np.mean(nees[alike]) > 4.0
    assert 5.0 < np.mean(step) < 7.0


def test_a_measured_motion_makes_the_newest_pose_surer():
    """By as much as it says, and no surer than both together can be."""
    rng = np.random.default_rng(27)
    rotation, position = simulate_path(rng, 4)
    points = simulate_points(rng, rotation, position, np.repeat(np.arange(3), 8), 0.4)
    motions = Motions.drawn(rng, rotation, position)
    alone, both = slide(points, rotation, position, 8), slide(points, rotation, position, 8, motions)
    said = [increment_covariance(slid.joint[1], slid.before[1], slid.newest[1]) for slid in (alone, both)]
    together = np.linalg.inv(np.linalg.inv(said[0]) + np.linalg.inv(motions.covariance))
    np.testing.assert_allclose(np.sqrt(said[1].diagonal()), np.sqrt(together.diagonal()), rtol=0.1)


def test_a_window_does_not_move_as_a_whole():
    """However little is known of where it is: nothing that is seen in it says anything of that."""
    rng = np.random.default_rng(28)
    rotation, position = simulate_path(rng, 12)
    points = simulate_points(rng, rotation, position, np.repeat(np.arange(11), 20), 0.4)
    motions = Motions.drawn(rng, rotation, position)
    for known in (1e-6, 100.0):
        for before, after in slide(points, rotation, position, 4, motions, known).oldest:
            np.testing.assert_allclose(after, before, atol=1e-9)


def test_a_correction_is_taken_in_bit_by_bit():
    """No step jumps by what the window has been corrected by, and it is all there in the end."""
    stays = RelativeMotion(np.eye(4), 1e-6 * np.eye(6))
    place, corrected = np.eye(4), transform(exp_so3(np.array([0.0, 0.02, 0.0])), np.array([0.1, 0.0, 0.0]))
    for _ in range(60):
        place, relative, _ = taken_in(place, stays, corrected)
        assert np.linalg.norm(relative.motion[:3, 3]) < 0.011
    assert np.abs(motion_error(corrected, place)).max() < 1e-3


def test_motions_over_a_frame_that_left_are_one():
    """Of a frame that is no keyframe the motions to and from it stay, appended to each other."""
    rng = np.random.default_rng(29)
    rotation, position = simulate_path(rng, 3)
    poses = [transform(r, t) for r, t in zip(rotation, position, strict=True)]
    motions = Motions.drawn(rng, rotation, position)
    window = SlidingWindow(CAMERA, 4, poses[0], 1e-12 * np.eye(6))
    path = PoseWithCovariance(poses[0], 1e-12 * np.eye(6))
    nothing = Sightings(np.zeros((3, 0)), np.ones((3, 0)), np.zeros(0, bool))
    for before, pose in pairwise(poses):
        window.drop_temporary()
        window.add(pose, nothing, motions.covariance)
        path = extend(path, RelativeMotion(inverse(before) @ pose, motions.covariance))
    window.promote(NewPoints(np.zeros((2, 0)), np.zeros(0), np.zeros(0), np.zeros((3, 0))), np.zeros(0))
    window.drop_temporary()
    assert len(window) == 2  # the first, and the newest, which is a keyframe now
    known = np.linalg.inv(window.prior.information)[6:, 6:]
    np.testing.assert_allclose(known, path.covariance, rtol=1e-3, atol=1e-10)
