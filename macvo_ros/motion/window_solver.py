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


"""The poses and points of a window of frames, found together: bundle adjustment in the metric of each observation.

What is minimised is in `window_points.py`; what frames that left the window said is a Gaussian prior on the poses
(`window_prior.py`). Levenberg-Marquardt, robust as the two-frame solver: Huber's kernel on the Mahalanobis residual of
an observation, and points whose residual is beyond reason anywhere are rejected everywhere (what moves by itself is no
landmark). Points are eliminated (`window_system.py`). The error state of a pose is [dt, dtheta] in odom axes:
t + dt, Exp(dtheta) R.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.geometry.se3 import exp_each_so3, renormalised
from macvo_ros.matching.native.library import kernels
from macvo_ros.motion.pose_solver import REJECT_CHI2_3
from macvo_ros.motion.window_points import (
    LEAST_DISPARITY,
    Bool,
    Observations,
    Residuals,
    WindowPoints,
    WindowState,
    residuals,
)
from macvo_ros.motion.window_prior import PosePrior
from macvo_ros.motion.window_system import eliminate_points, kernel_arguments
from macvo_ros.settings.config import PoseConfig

Float64 = npt.NDArray[np.float64]

_NEAR, _SOLVED = 0.03, 3.0
"""Gain of a step after which minimising ends: as a share of the cost before outliers are rejected, and in squared
sigmas after. Convergence is quadratic: the next step would gain far less. With 1 instead of 3 the newest pose is the
same to 0.03 sigma (KITTI 09, 30 frames, no log); with 0.15 instead of 0.03 sound points are rejected beside moving
ones. Chosen."""
_MEDIAN_CHI2_3 = 2.366
"""Median of a chi-square variable with three degrees of freedom."""


@dataclass(frozen=True, eq=False)
class WindowSolution:
    """state: the minimum. information: (6 N, 6 N) of the poses, the prior's included, points eliminated.

    inlier: (P,) points that were not rejected. chi2: mean squared residual of these per degree of freedom.
    """

    state: WindowState
    information: Float64
    inlier: Bool
    chi2: float
    iterations: int


def solve_window(
    camera: StereoCamera, points: WindowPoints, start: WindowState, prior: PosePrior, config: PoseConfig
) -> WindowSolution:
    """Minimise over the poses and points of a window, beginning at `start`."""
    frames = len(start.rotation)
    problem = _Problem(camera, points, prior.padded(frames), config, np.ones(len(points)))
    near = problem.minimise(start, share=_NEAR)
    observed = points.inverse_sigma[:, 0] > 0
    squared = near.squared[observed]
    # As in the two-frame solver: the median tells the real scale of the residuals, never below what was promised.
    scale = max(1.0, float(np.median(squared)) / _MEDIAN_CHI2_3) if len(squared) else 1.0
    inlier = np.asarray((near.squared <= REJECT_CHI2_3 * scale).all(axis=0))
    solved = replace(problem, active=inlier.astype(float)).minimise(near.state)
    state = solved.state
    squares = solved.squared.sum(axis=0) + _first_view(points, state)
    count = int(np.count_nonzero(observed[:, inlier]))
    return WindowSolution(
        state=replace(state, rotation=renormalised(state.rotation)),
        information=solved.information,
        inlier=inlier,
        chi2=float(squares @ inlier) / max(3 * count - 6 * (frames - 1), 1),
        iterations=near.iterations + solved.iterations,
    )


@dataclass(frozen=True, eq=False)
class _Minimum:
    """A state, the (N, P) squared residuals of its observations, 0 where there is none, and the number of steps.

    information: (6 N, 6 N) of its poses before the last step.
    """

    state: WindowState
    squared: Float64
    information: Float64
    iterations: int


@dataclass(frozen=True, eq=False)
class _Problem:
    """What does not change while the cost is minimised; active: (P,) 0 leaves a point out."""

    camera: StereoCamera
    points: WindowPoints
    prior: PosePrior
    config: PoseConfig
    active: Float64

    def minimise(self, state: WindowState, share: float = 0.0) -> _Minimum:
        """The minimum; share: of the cost, which is enough if a step gains less.

        The first frame stays where it is: all observations are of one frame against another, so that what would move
        all frames alike is rounding, and what was linearised at other poses.
        """
        return (_minimised if kernels() is None else _minimised_natively)(self, state, share)


def _minimised_natively(problem: _Problem, state: WindowState, share: float) -> _Minimum:
    """`_minimised` by a compiled kernel."""
    prior, frames, count = problem.prior, len(state.rotation), len(problem.points)
    rotation, position, points = (np.array(each, order="C") for each in (state.rotation, state.position, state.points))
    squared, information = np.empty((frames, count)), np.empty((6 * frames, 6 * frames))
    taken = np.zeros(1, np.int64)
    native = kernels()
    assert native is not None
    native(
        "macvo_window_minimise", *kernel_arguments(problem.camera, problem.points, problem.config, problem.active),
        len(prior), prior.rotation, prior.position, prior.information, prior.gradient, _SOLVED, share,
        problem.config.max_iterations, rotation, position, points, squared, information, taken,
    )  # fmt: skip
    return _Minimum(WindowState(rotation, position, points), squared, information, int(taken[0]))


def _minimised(problem: _Problem, state: WindowState, share: float) -> _Minimum:
    camera, points, prior, config = problem.camera, problem.points, problem.prior, problem.config
    damping, iterations, seen = 1e-6, 0, Observations.of(points)
    found = residuals(camera, points, state, seen)
    cost, pull = _cost(problem, state, seen, found)
    while True:
        iterations += 1
        system, back, shift = eliminate_points(camera, points, state, config, problem.active, seen, found, damping)
        information = system.information + prior.information
        gradient = system.gradient + pull
        damped = information + damping * np.diag(information.diagonal())
        step = np.concatenate((np.zeros(6), -_solve(damped[6:, 6:], gradient[6:])))
        moved = _moved(camera, state, step, shift - (back @ step))
        then = residuals(camera, points, moved, seen)
        new_cost, new_pull = _cost(problem, moved, seen, then)
        gain = cost - new_cost
        if gain >= 0:
            state, found, cost, pull = moved, then, new_cost, new_pull
            damping = max(damping * 0.1, 1e-9)
        else:
            damping *= 100.0
        if 0 <= gain <= max(_SOLVED, share * cost) or iterations >= config.max_iterations or damping > 1e8:
            break
    squared = np.zeros((len(state.rotation), len(points)))
    squared[seen.frame, seen.point] = found.squared
    return _Minimum(state, squared, information, iterations)


def _cost(problem: _Problem, state: WindowState, seen: Observations, found: Residuals) -> tuple[float, Float64]:
    """The cost of a state, and (6 N,) half the gradient of the prior's part."""
    m2, kernel, share = found.squared, problem.config.kernel, problem.active / problem.points.crowding
    if kernel > 0:
        m = np.sqrt(m2)
        m2 = np.where(m <= kernel, m2, kernel * (2.0 * m - kernel))
    points = m2 @ share[seen.point] + share @ _first_view(problem.points, state)
    known, pull = problem.prior.at(state.rotation, state.position)
    return float(points) + known, pull


def _solve(matrix: Float64, vector: Float64) -> Float64:
    """matrix^-1 vector, scaled to a unit diagonal first: metres and radians differ by decades."""
    scale = 1.0 / np.sqrt(np.maximum(matrix.diagonal(), 1e-300))
    return np.asarray(scale * np.linalg.solve(matrix * scale[:, None] * scale[None], scale * vector))


def _moved(camera: StereoCamera, state: WindowState, step: Float64, points_step: Float64) -> WindowState:
    """state, after (6 N,) and (P, 4) steps."""
    step = step.reshape(-1, 6)
    points = state.points + points_step.T
    points[2] = np.maximum(points[2], camera.disparity_offset + LEAST_DISPARITY)
    turned = exp_each_so3(step[:, 3:]) @ state.rotation
    return WindowState(turned, state.position + step[:, :3], points)


def _first_view(points: WindowPoints, state: WindowState) -> Float64:
    """(P,) squared residuals of the first view and of the shared errors."""
    shared = (state.points[[0, 1, 3]] ** 2 / points.shared_var).sum(axis=0)
    first = state.points[2] + state.points[3] - points.disparity
    return np.asarray(shared + first**2 / (points.disparity_var - points.shared_var[2]))
