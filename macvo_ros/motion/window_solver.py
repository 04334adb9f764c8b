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
from macvo_ros.motion.window_system import huber_weight, linearise
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

    weight: (N, P) robust weights, 0 for rejected points and where nothing was seen; inlier: (P,). chi2: mean squared
    residual of the inliers per degree of freedom.
    """

    state: WindowState
    information: Float64
    weight: Float64
    inlier: Bool
    chi2: float
    iterations: int


def solve_window(
    camera: StereoCamera, points: WindowPoints, start: WindowState, prior: PosePrior, config: PoseConfig
) -> WindowSolution:
    """Minimise over the poses and points of a window, beginning at `start`."""
    prior = prior.padded(len(start.rotation))
    seen = Observations.of(points)
    problem = _Problem(camera, points, seen, prior, config, np.ones(len(points)))
    near = problem.minimise(start, share=_NEAR)
    squared = near.found.squared
    # As in the two-frame solver: the median tells the real scale of the residuals, never below what was promised.
    scale = max(1.0, float(np.median(squared)) / _MEDIAN_CHI2_3) if len(seen) else 1.0
    inlier = np.ones(len(points), bool)
    inlier[seen.point[squared > REJECT_CHI2_3 * scale]] = False
    problem = replace(problem, active=inlier.astype(float))
    solved = problem.minimise(near.state, near.found)
    state, found = solved.state, solved.found
    agrees = inlier[seen.point]
    squares = found.squared @ agrees + inlier @ _first_view(points, state, found)
    weight = np.zeros((len(state.rotation), len(points)))
    weight[seen.frame, seen.point] = huber_weight(found.squared, config.kernel) * agrees
    return WindowSolution(
        state=replace(state, rotation=renormalised(state.rotation)),
        information=solved.information,
        weight=weight,
        inlier=inlier,
        chi2=float(squares) / max(3 * int(agrees.sum()) - 6 * (len(state.rotation) - 1), 1),
        iterations=near.iterations + solved.iterations,
    )


@dataclass(frozen=True, eq=False)
class _Minimum:
    """A state, its residuals, the (6 N, 6 N) information of its poses before the last step, and the number of steps."""

    state: WindowState
    found: Residuals
    information: Float64
    iterations: int


@dataclass(frozen=True, eq=False)
class _Problem:
    """What does not change while the cost is minimised; active: (P,) 0 leaves a point out."""

    camera: StereoCamera
    points: WindowPoints
    seen: Observations
    prior: PosePrior
    config: PoseConfig
    active: Float64

    def minimise(self, state: WindowState, found: Residuals | None = None, share: float = 0.0) -> _Minimum:
        """The minimum; found: residuals of the state to begin at, if they are known.

        share: of the cost, which is enough if a step gains less. The first frame stays where it is: all
        observations are of one frame against another, so that what would move all frames alike is rounding, and
        what was linearised at other poses.
        """
        damping, iterations = 1e-6, 0
        found = found or residuals(self.camera, self.points, state, self.seen)
        cost, pull = self._cost(state, found)
        while True:
            iterations += 1
            system = linearise(self.camera, self.points, state, self.config, self.active, self.seen, found, damping)
            information = system.information + self.prior.information
            gradient = system.gradient + pull
            damped = information + damping * np.diag(information.diagonal())
            step = np.concatenate((np.zeros(6), -_solve(damped[6:, 6:], gradient[6:])))
            moved = _moved(self.camera, state, step, system.shift - (system.back @ step))
            then = residuals(self.camera, self.points, moved, self.seen)
            new_cost, new_pull = self._cost(moved, then)
            gain = cost - new_cost
            if gain >= 0:
                state, found, cost, pull = moved, then, new_cost, new_pull
                damping = max(damping * 0.1, 1e-9)
            else:
                damping *= 100.0
            if 0 <= gain <= max(_SOLVED, share * cost) or iterations >= self.config.max_iterations or damping > 1e8:
                return _Minimum(state, found, information, iterations)

    def _cost(self, state: WindowState, found: Residuals) -> tuple[float, Float64]:
        """The cost of a state, and (6 N,) half the gradient of the prior's part."""
        m2, kernel, share = found.squared, self.config.kernel, self.active / self.points.crowding
        if kernel > 0:
            m = np.sqrt(m2)
            m2 = np.where(m <= kernel, m2, kernel * (2.0 * m - kernel))
        points = m2 @ share[self.seen.point] + share @ _first_view(self.points, state, found)
        known, pull = self.prior.at(state.rotation, state.position)
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


def _first_view(points: WindowPoints, state: WindowState, found: Residuals) -> Float64:
    """(P,) squared residuals of the first view and of the shared errors."""
    shared = (state.points[[0, 1, 3]] ** 2 / points.shared_var).sum(axis=0)
    return np.asarray(shared + found.first**2 / (points.disparity_var - points.shared_var[2]))
