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


"""The cost of a window's observations as a quadratic of its poses, points eliminated: a step of `window_solver.py`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.geometry.se3 import skew
from macvo_ros.matching.native.library import kernels
from macvo_ros.motion.window_points import (
    LEAST_DISPARITY,
    Observations,
    Residuals,
    WindowPoints,
    WindowState,
    jacobians,
    residuals,
)
from macvo_ros.settings.config import PoseConfig

Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PoseSystem:
    """The cost's quadratic model about a state, points eliminated: information (6 N, 6 N) and half gradient (6 N,)."""

    information: Float64
    gradient: Float64


def linearise(
    camera: StereoCamera,
    points: WindowPoints,
    state: WindowState,
    config: PoseConfig,
    active: Float64,
    damping: float = 0.0,
) -> PoseSystem:
    """The quadratic model of the observations' cost about a state; active: (P,) 0 leaves a point out.

    With D = t_k - t_a the Jacobian of the anchor's pose is minus that of the observing pose times [[I, -[D]x], [0, I]]:
    the cost cannot see the window moved as a whole, and neither can its model.
    """
    native = kernels()
    if native is None:
        seen = Observations.of(points)
        found = residuals(camera, points, state, seen)
        return eliminate_points(camera, points, state, config, active, seen, found, damping)[0]
    frames = len(state.rotation)
    information, gradient = np.empty((6 * frames, 6 * frames)), np.empty(6 * frames)
    native(
        "macvo_window_system", *kernel_arguments(camera, points, config, active),
        *map(np.ascontiguousarray, (state.rotation, state.position, state.points)), damping, information, gradient,
    )  # fmt: skip
    return PoseSystem(information, gradient)


def kernel_arguments(
    camera: StereoCamera, points: WindowPoints, config: PoseConfig, active: Float64
) -> tuple[Any, ...]:
    """A window's points as the compiled kernels take them (`Window` of window.h); active: (P,) 0 leaves a point out."""
    lens = (camera.fx, camera.fy, camera.cx, camera.cy, camera.baseline, camera.disparity_offset)
    arrays = (
        points.anchor, points.pixel, points.disparity, points.disparity_var, points.shared_var, points.seen,
        points.inverse_sigma, active / points.crowding,
    )  # fmt: skip
    plain = map(np.ascontiguousarray, arrays)
    return np.array(lens), len(points.seen), len(points), *plain, float(config.kernel), LEAST_DISPARITY


def eliminate_points(
    camera: StereoCamera,
    points: WindowPoints,
    state: WindowState,
    config: PoseConfig,
    active: Float64,
    seen: Observations,
    found: Residuals,
    damping: float,
) -> tuple[PoseSystem, Float64, Float64]:
    """The model in numpy, by the Schur complement; also `back`, (P, 4, 6 N), and `shift`, (P, 4).

    The points' step is shift - back @ the poses' step.
    """
    share = active / points.crowding
    root = np.sqrt(huber_weight(found.squared, config.kernel) * share[seen.point])
    frames, count = len(state.rotation), len(points)
    pose, own = jacobians(camera, points, state, seen, found, root)
    residual = found.white * root
    axes = np.zeros((frames, 6, 6))
    axes[:, :3, :3] = axes[:, 3:, 3:] = state.rotation

    mixed = np.zeros((frames, count, 4, 6))
    mixed[seen.frame, seen.point] = np.einsum("iam,ibm->mab", own, pose)
    mixed = (mixed.reshape(frames, -1, 6) @ axes.transpose(0, 2, 1)).reshape(frames, count, 4, 6)
    # Into the anchor: with the force of all observations, and their lever arms.
    force, lever = mixed[..., :3], state.position[:, None] - state.position[points.anchor]
    hat = -skew(lever)
    total = mixed.sum(axis=0)
    total[..., 3:] += (force @ hat).sum(axis=0)
    mixed[points.anchor, np.arange(count)] -= total
    back = np.ascontiguousarray(mixed.transpose(1, 2, 0, 3)).reshape(count, 4, 6 * frames)

    block, pull = _point_terms(points, state, seen, found, own, residual, share)
    block += np.eye(4) * (damping * block + 1e-12)
    inverse = np.linalg.inv(block)
    solved = inverse @ back
    shift = (inverse @ pull[:, :, None])[:, :, 0]
    information, gradient = _pose_terms(state, seen, axes, pose, residual)
    flat = back.reshape(-1, 6 * frames).T
    information -= flat @ solved.reshape(-1, 6 * frames)
    system = PoseSystem(0.5 * (information + information.T), gradient - flat @ shift.reshape(-1))
    return system, solved, -shift


def _point_terms(
    points: WindowPoints,
    state: WindowState,
    seen: Observations,
    found: Residuals,
    own: Float64,
    residual: Float64,
    share: Float64,
) -> tuple[Float64, Float64]:
    """(P, 4, 4) information and (P, 4) half gradient of each point, from its observations and its first view."""
    normal = np.concatenate(
        (np.einsum("iam,ibm->mab", own, own).reshape(-1, 16), np.einsum("iam,im->ma", own, residual)), axis=1
    )
    summed = np.zeros((len(points), 20))
    if len(seen):
        summed[seen.known] = np.add.reduceat(normal, seen.begins, axis=0)
    block, pull = summed[:, :16].reshape(-1, 4, 4), summed[:, 16:]
    shared = share / points.shared_var
    for at, row in ((0, 0), (1, 1), (3, 2)):
        block[:, at, at] += shared[row]
        pull[:, at] += shared[row] * state.points[at]
    first = share / (points.disparity_var - points.shared_var[2])
    block[:, 2:, 2:] += first[:, None, None]
    pull[:, 2:] += (first * found.first)[:, None]
    return block, pull


def _pose_terms(
    state: WindowState, seen: Observations, axes: Float64, pose: Float64, residual: Float64
) -> tuple[Float64, Float64]:
    """(6 N, 6 N) information and (6 N,) half gradient of the poses with the points held."""
    frames = len(state.rotation)
    blocks, gradient = np.zeros((frames * frames, 6, 6)), np.zeros((frames, 6))
    if len(seen):
        first, frame = seen.pairs
        rows, errors = pose[:, :, seen.order], residual[:, seen.order]
        squares = np.einsum("iam,ibm->mab", rows, rows).reshape(-1, 36)
        turn = axes[frame]
        normal = turn @ np.add.reduceat(squares, seen.pair_begins).reshape(-1, 6, 6) @ turn.transpose(0, 2, 1)
        pulls = np.add.reduceat(np.einsum("iam,im->ma", rows, errors), seen.pair_begins)
        push = (turn @ pulls[:, :, None])[:, :, 0]
        lever = np.tile(np.eye(6), (len(frame), 1, 1))
        lever[:, :3, 3:] = -skew(state.position[frame] - state.position[first])
        back, towards = lever.transpose(0, 2, 1), normal @ lever
        np.add.at(blocks, frame * (frames + 1), normal)
        np.subtract.at(blocks, frame * frames + first, towards)
        np.subtract.at(blocks, first * frames + frame, towards.transpose(0, 2, 1))
        np.add.at(blocks, first * (frames + 1), back @ towards)
        np.add.at(gradient, frame, push)
        np.subtract.at(gradient, first, (back @ push[:, :, None])[:, :, 0])
    information = blocks.reshape(frames, frames, 6, 6).transpose(0, 2, 1, 3).reshape(6 * frames, 6 * frames)
    return information, gradient.reshape(-1)


def huber_weight(m2: Float64, kernel: float) -> Float64:
    """(M,) of (M,) squared Mahalanobis residuals; kernel: sigmas, 0 for none."""
    if kernel <= 0:
        return np.ones_like(m2)
    return np.asarray(np.minimum(1.0, kernel / np.sqrt(np.maximum(m2, 1e-300))))
