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

"""Two-frame pose optimization (paper III-D, Eq. 4) by our own vectorised Levenberg-Marquardt.

    min over T of  sum_i rho(|| p_i - T q_i ||^2 in the metric of  P_i + R Q_i R^T)

p, P: points and covariances in the reference frame; q, Q: in the current frame; T = (R, t): pose of the current
frame in the reference frame. Everything is in the reference camera's frame, so no precision is lost far from the
origin. The error state is [dt, dtheta] in reference axes: t + dt, Exp(dtheta) R, the convention of `estimate.py`.

Departures from the paper: a Huber kernel and the test of each step look at the *Mahalanobis* residual (the authors'
code looks at metres); points whose residual is beyond reason are rejected and the rest solved again; an optional
prior on the motion keeps directions that the points do not constrain where the prediction puts them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from macvo_ros.geometry.se3 import difference, exp_so3, nearest_rotation, transform
from macvo_ros.matching.native.library import kernels
from macvo_ros.motion.point_pairs import FLOOR, PointPairs, rotated, squared_length, whitened
from macvo_ros.settings.config import PoseConfig
from macvo_ros.uncertainty.motion_prior import MotionPrior

Float64 = npt.NDArray[np.float64]

_MEDIAN_CHI2_3 = 2.366
"""Median of a chi-square variable with three degrees of freedom."""
REJECT_CHI2_3 = 16.27
"""Its 99.9 % point: residuals beyond are not noise."""


_NEAR, _SOLVED = 1e-3, 1e-6
"""Relative gain of a step after which minimising ends: before outliers are rejected, and after; chosen."""
_STEPS = 2
"""Gauss-Newton steps from a solution that is near; chosen."""


@dataclass(frozen=True, eq=False)
class PoseSolution:
    """Result of the optimization.

    motion: (4, 4) pose of the current frame in the reference frame.
    gain: (N, 6, 3): error of the motion [dt, dtheta] = -sum_i gain_i @ (error of p_i - T q_i); zero for rejected
    points.
    information: (6, 6) of the points and the prior.
    weight: (N,) robust weight, 0 for rejected points; inlier: (N,) the others.
    residual: (N, 3) of p_i - T q_i in sigmas: across, across given the first, and along the line of sight given both.
    whitener: (N, 3, 3), by which metres become those sigmas.
    chi2: mean squared residual of the inliers per degree of freedom.
    """

    motion: Float64
    gain: Float64
    information: Float64
    weight: Float64
    inlier: npt.NDArray[np.bool_]
    residual: Float64
    whitener: Float64
    chi2: float
    iterations: int

    @property
    def worst_chi2(self) -> float:
        """Of the three components of the residuals that which is largest: one may hide behind the others' mean."""
        freedom = max(int(self.inlier.sum()) - 2, 1)
        return float((self.residual[self.inlier] ** 2).sum(axis=0).max()) / freedom

    def covariance(self, pairs: PointPairs) -> Float64:
        """(6, 6) covariance of the motion if the points' errors are independent of each other."""
        rotation = self.motion[:3, :3]
        sigma = pairs.reference_cov + rotated(pairs.current_cov, rotation)
        return np.asarray((self.gain @ sigma @ self.gain.transpose(0, 2, 1)).sum(axis=0))


def solve_pose(
    pairs: PointPairs,
    initial: Float64,
    config: PoseConfig,
    prior: MotionPrior | None = None,
    usable: npt.NDArray[np.bool_] | None = None,
    *,
    iterate: bool = True,
) -> PoseSolution:
    """Estimate the motion between two frames; `initial` is (4, 4). Needs at least three points or a prior.

    usable: (N,) points that count; None: all. iterate: False takes `initial` for the solution (found elsewhere) and
    only linearises there.
    """
    usable = np.ones(len(pairs), bool) if usable is None else usable
    if not iterate:
        rotation, translation = initial[:3, :3], initial[:3, 3]
        inlier = _agreeing(pairs, rotation, translation, usable)
        return _linearised(pairs, pairs.current, rotation, translation, config, prior, inlier, 0)
    motion, inlier, iterations = search_pose(pairs, initial, config, prior, usable)
    return _linearised(pairs, pairs.current, motion[:3, :3], motion[:3, 3], config, prior, inlier, iterations)


def search_pose(
    pairs: PointPairs,
    initial: Float64,
    config: PoseConfig,
    prior: MotionPrior | None,
    usable: npt.NDArray[np.bool_],
) -> tuple[Float64, npt.NDArray[np.bool_], int]:
    """What `solve_pose` does to find the (4, 4) motion, the (N,) points that agree with it, and the steps it took."""
    rotation, translation = initial[:3, :3], initial[:3, 3]
    active = usable.astype(float)
    rotation, translation, iterations = _minimise(pairs, rotation, translation, config, prior, active, _NEAR)
    inlier = _agreeing(pairs, rotation, translation, usable)
    if inlier.sum() >= 3:
        active = inlier.astype(float)
        rotation, translation, second = _minimise(pairs, rotation, translation, config, prior, active, _SOLVED)
        iterations += second
    return transform(rotation, translation), inlier, iterations


def solve_linearised(
    pairs: PointPairs, at: Float64, near: Float64, config: PoseConfig, prior: MotionPrior | None = None
) -> PoseSolution:
    """The same from a (4, 4) motion that is near, with which points agree or are rejected: a few Gauss-Newton steps.

    at: (N, 3) points of the current frame, metres, that residuals are linearised at (`common_points.py`).
    """
    rotation, translation = near[:3, :3], near[:3, 3]
    inlier = _agreeing(pairs, rotation, translation, np.ones(len(pairs), bool))
    for _ in range(_STEPS):
        rotation, translation = _step(pairs, at, rotation, translation, config, prior, inlier)
    return _linearised(pairs, at, rotation, translation, config, prior, inlier, _STEPS)


def _agreeing(
    pairs: PointPairs, rotation: Float64, translation: Float64, usable: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    """(N,) those of the usable points whose residuals may be noise."""
    m2 = whitened(pairs, rotation, translation)[2]
    # The median tells the real scale of the residuals, whatever the outliers; never below what was promised.
    scale = max(1.0, float(np.median(m2[usable])) / _MEDIAN_CHI2_3) if usable.any() else 1.0
    return np.asarray(usable & (m2 <= REJECT_CHI2_3 * scale))


def _linearised(
    pairs: PointPairs,
    at: Float64,
    rotation: Float64,
    translation: Float64,
    config: PoseConfig,
    prior: MotionPrior | None,
    inlier: npt.NDArray[np.bool_],
    iterations: int,
) -> PoseSolution:
    """All that is known of a motion that was found."""
    whitener, residual, m2 = whitened(pairs, rotation, translation)
    weight = _huber_weight(m2, config.kernel) * inlier
    jacobian = _jacobian(whitener, at @ rotation.T)
    weighted = weight[:, None, None] * jacobian
    information = _solvable(jacobian.reshape(-1, 6).T @ weighted.reshape(-1, 6))
    if prior is not None:
        information = information + prior.information
    # dx = -H^-1 J^T W n for noise n in the residual; the error true - estimate is its opposite.
    pull = (weighted.transpose(0, 2, 1) @ whitener).transpose(1, 0, 2).reshape(6, -1)
    gain = np.linalg.solve(information, pull).reshape(6, len(pairs), 3).transpose(1, 0, 2)
    freedom = max(3 * int(inlier.sum()) - 6, 1)
    return PoseSolution(
        motion=transform(nearest_rotation(rotation), translation),
        gain=np.ascontiguousarray(gain),
        information=information,
        weight=weight,
        inlier=inlier,
        residual=residual,
        whitener=whitener,
        chi2=float(m2[inlier].sum()) / freedom,
        iterations=iterations,
    )


def _minimise(
    pairs: PointPairs,
    rotation: Float64,
    translation: Float64,
    config: PoseConfig,
    prior: MotionPrior | None,
    active: Float64,
    tolerance: float,
) -> tuple[Float64, Float64, int]:
    """Levenberg-Marquardt. Within a step the metric is that of its start, so old and new cost are comparable."""
    if kernels() is not None:
        return _minimise_natively(pairs, rotation, translation, config, prior, active, tolerance)
    damping = 1e-6
    iterations = 0
    offset = None if prior is None else difference(prior.motion, transform(rotation, translation))
    while iterations < config.max_iterations:
        whitener, residual, m2 = whitened(pairs, rotation, translation)
        cost = _huber_cost(m2, config.kernel, active)
        hessian, gradient = _system((whitener, residual, m2), pairs.current, rotation, config.kernel, active)
        if prior is not None and offset is not None:
            hessian = hessian + prior.information
            gradient = gradient + prior.information @ offset
            cost += float(offset @ prior.information @ offset)
        diagonal = np.diag(np.maximum(hessian.diagonal(), 1e-12))
        accepted = False
        while not accepted and iterations < config.max_iterations:
            iterations += 1
            step = np.asarray(-np.linalg.solve(hessian + damping * diagonal, gradient), dtype=np.float64)
            new_rotation, new_translation = exp_so3(step[3:]) @ rotation, translation + step[:3]
            new_residual = pairs.reference - pairs.current @ new_rotation.T - new_translation
            new_cost = _huber_cost(squared_length(whitener, new_residual), config.kernel, active)
            new_offset = None
            if prior is not None:
                new_offset = difference(prior.motion, transform(new_rotation, new_translation))
                new_cost += float(new_offset @ prior.information @ new_offset)
            accepted = new_cost <= cost
            if not accepted:
                damping *= 10.0
                if damping > 1e8:
                    return rotation, translation, iterations
        if not accepted:
            break
        rotation, translation, offset = new_rotation, new_translation, new_offset
        damping = max(damping * 0.1, 1e-9)
        if cost - new_cost <= tolerance * cost + 1e-12:
            break
    return rotation, translation, iterations


def _minimise_natively(
    pairs: PointPairs,
    rotation: Float64,
    translation: Float64,
    config: PoseConfig,
    prior: MotionPrior | None,
    active: Float64,
    tolerance: float,
) -> tuple[Float64, Float64, int]:
    """`_minimise` by a compiled kernel."""
    points = map(np.ascontiguousarray, (pairs.reference, pairs.reference_cov, pairs.current, pairs.current_cov))
    expected = None if prior is None else np.ascontiguousarray(prior.motion[:3])
    information = None if prior is None else np.ascontiguousarray(prior.information)
    rotation, translation, taken = np.array(rotation, order="C"), np.array(translation), np.zeros(1, np.int64)
    native = kernels()
    assert native is not None
    native(
        "macvo_minimise", *points, active, len(pairs), expected, information, config.kernel, FLOOR, tolerance,
        config.max_iterations, rotation, translation, taken,
    )  # fmt: skip
    return rotation, translation, int(taken[0])


def _step(
    pairs: PointPairs,
    at: Float64,
    rotation: Float64,
    translation: Float64,
    config: PoseConfig,
    prior: MotionPrior | None,
    inlier: npt.NDArray[np.bool_],
) -> tuple[Float64, Float64]:
    """One Gauss-Newton step with residuals linearised at other points than those measured."""
    white = whitened(pairs, rotation, translation)
    hessian, gradient = _system(white, at, rotation, config.kernel, inlier.astype(float))
    hessian = _solvable(hessian)
    if prior is not None:
        offset = difference(prior.motion, transform(rotation, translation))
        hessian = hessian + prior.information
        gradient = gradient + prior.information @ offset
    step = np.asarray(-np.linalg.solve(hessian, gradient), dtype=np.float64)
    return exp_so3(step[3:]) @ rotation, translation + step[:3]


def _system(
    white: tuple[Float64, Float64, Float64], at: Float64, rotation: Float64, kernel: float, active: Float64
) -> tuple[Float64, Float64]:
    """(6, 6) J^T W J and (6,) J^T W r of whitened points, linearised at (N, 3) points of the current frame.

    white: `whitened`; active: (N,) weights before those of the robust kernel.
    """
    whitener, residual, m2 = white
    native = kernels()
    if native is not None:
        hessian, gradient = np.empty((6, 6)), np.empty(6)
        points, turned = np.ascontiguousarray(at), np.ascontiguousarray(rotation)
        native("macvo_pose_system", whitener, residual, m2, points, active, len(at), turned, kernel, hessian, gradient)
        return hessian, gradient
    jacobian = _jacobian(whitener, at @ rotation.T)
    weighted = ((active * _huber_weight(m2, kernel))[:, None, None] * jacobian).reshape(-1, 6)
    return np.asarray(jacobian.reshape(-1, 6).T @ weighted), np.asarray(residual.reshape(-1) @ weighted)


def _solvable(information: Float64) -> Float64:
    """The (6, 6) information with the least that makes it invertible: three points in a line leave a turn unknown."""
    return np.asarray(information + np.diag(FLOOR * (information.diagonal() + 1.0)))


def _jacobian(whitener: Float64, points: Float64) -> Float64:
    """W d(p - Exp(dtheta) R q - t - dt) / d[dt, dtheta] = W [-I, [R q]x], (N, 3, 6); points: (N, 3) R q."""
    jacobian = np.empty((len(points), 3, 6))
    np.negative(whitener, out=jacobian[:, :, :3])
    w0, w1, w2 = whitener[:, :, 0], whitener[:, :, 1], whitener[:, :, 2]
    x, y, z = points.T[:, :, None]
    jacobian[:, :, 3] = w1 * z - w2 * y
    jacobian[:, :, 4] = w2 * x - w0 * z
    jacobian[:, :, 5] = w0 * y - w1 * x
    return jacobian


def _huber_weight(m2: Float64, kernel: float) -> Float64:
    if kernel <= 0:
        return np.ones_like(m2)
    return np.asarray(np.minimum(1.0, kernel / np.sqrt(np.maximum(m2, 1e-300))))


def _huber_cost(m2: Float64, kernel: float, active: Float64) -> float:
    if kernel <= 0:
        return float(active @ m2)
    m = np.sqrt(m2)
    return float(active @ np.where(m <= kernel, m2, kernel * (2.0 * m - kernel)))
