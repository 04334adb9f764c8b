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


"""Points tracked over the frames of a window, drawn from the noise that the window's model states."""

from __future__ import annotations

import numpy as np

from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.geometry.se3 import exp_so3, log_so3
from macvo_ros.motion.window_points import WindowPoints, WindowState
from macvo_ros.motion.window_prior import PosePrior

CAMERA = StereoCamera(fx=320.0, fy=320.0, cx=319.5, cy=239.5, baseline=0.25, width=640, height=480)


def simulate_path(rng: np.random.Generator, frames: int, speed: float = 0.3) -> tuple[np.ndarray, np.ndarray]:
    """Rotations (N, 3, 3) and positions (N, 3) of a camera that moves forward and turns a little."""
    rotation, position = [np.eye(3)], [np.zeros(3)]
    for _ in range(1, frames):
        position.append(position[-1] + rotation[-1] @ (np.array([0.0, 0.0, speed]) + rng.normal(0, 0.05, 3)))
        rotation.append(rotation[-1] @ exp_so3(rng.normal(0, 0.02, 3)))
    return np.array(rotation), np.array(position)


def simulate_points(
    rng: np.random.Generator,
    rotation: np.ndarray,
    position: np.ndarray,
    anchor: np.ndarray,
    shared: float,
    *,
    sigma: float = 0.1,
    believed: float | None = None,
    depth: tuple[float, float] = (3.0, 15.0),
) -> WindowPoints:
    """Points first seen in (P,) frames; `shared` of the variance of a point's errors is common to all it is seen in.

    believed: the same as the solver is told, where that differs.
    """
    believed = shared if believed is None else believed
    count = len(anchor)
    pixel = np.stack((rng.uniform(20, 620, count), rng.uniform(20, 460, count)))
    z = rng.uniform(*depth, count)
    sigmas = sigma * rng.uniform(0.5, 2.0, (3, count))
    common, own = np.sqrt(shared) * sigmas * rng.normal(size=(3, count)), np.sqrt(1 - shared) * sigmas
    u, v = pixel + common[:2]
    first = np.stack(((u - CAMERA.cx) / CAMERA.fx * z, (v - CAMERA.cy) / CAMERA.fy * z, z))
    in_odom = np.einsum("pij,jp->ip", rotation[anchor], first) + position[anchor].T
    x, y, z_there = np.moveaxis(rotation.transpose(0, 2, 1) @ (in_odom[None] - position[:, :, None]), 1, 0)
    fb = CAMERA.fx * CAMERA.baseline
    seen = np.stack(
        (CAMERA.fx * x / z_there + CAMERA.cx, CAMERA.fy * y / z_there + CAMERA.cy, fb / z_there + common[2]), axis=1
    )
    seen += own * rng.normal(size=seen.shape)
    visible = (np.arange(len(rotation))[:, None] > anchor) & (z_there > 1.0)
    visible &= (np.abs(seen[:, 0] - 319.5) < 320) & (np.abs(seen[:, 1] - 239.5) < 240)
    return WindowPoints(
        anchor=anchor,
        pixel=pixel,
        disparity=fb / z + common[2] + own[2] * rng.normal(size=count),
        disparity_var=sigmas[2] ** 2,
        shared_var=believed * sigmas**2,
        seen=seen,
        inverse_sigma=np.where(visible[:, None], 1.0 / (np.sqrt(1 - believed) * sigmas), 0.0),
        crowding=np.ones(count),
    )


def start_near(
    rng: np.random.Generator, rotation: np.ndarray, position: np.ndarray, points: WindowPoints
) -> WindowState:
    """The true poses, all but the first off by some centimetres and tenths of a degree; points as first seen."""
    off = rng.normal(0, 0.003, (len(rotation), 3))
    off[0] = 0.0
    moved = rng.normal(0, 0.03, position.shape)
    moved[0] = 0.0
    zero = np.zeros(len(points))
    return WindowState(
        np.array([exp_so3(o) @ r for o, r in zip(off, rotation, strict=True)]),
        position + moved,
        np.stack((zero, zero, points.disparity, zero)),
    )


def known_start(rotation: np.ndarray, position: np.ndarray) -> PosePrior:
    """The first frame is where it is."""
    return PosePrior.of(rotation[0], position[0], 1e-12 * np.eye(6))


def pose_error(rotation: np.ndarray, position: np.ndarray, state: WindowState, frame: int) -> np.ndarray:
    """[dt, dtheta] of a frame: t_true = t + dt and R_true = Exp(dtheta) R."""
    return np.concatenate((position[frame] - state.position[frame], log_so3(rotation[frame] @ state.rotation[frame].T)))
