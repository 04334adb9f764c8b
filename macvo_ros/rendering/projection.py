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

"""Quads as a camera sees them: one 3x3 matrix each, from which depth, texture coordinates and edges follow."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from macvo_ros.rendering.scene import SKY, WORLD, Scene

Float64 = npt.NDArray[np.float64]

NEAR = 0.02  # metres
SKY_DISTANCE = 1e5  # metres; what counts as sky has no parallax at all, see Visibility
SKY_INVERSE_DEPTH = 1e-4  # 1/metres: whatever is below is sky


@dataclass(frozen=True, eq=False)
class View:
    """One pinhole image: K (3, 3) pixels, width, height, world_from_camera (4, 4) optical frame, time in seconds."""

    K: Float64
    width: int
    height: int
    world_from_camera: Float64
    time: float = 0.0


@dataclass(frozen=True, eq=False)
class Projected:
    """The quads that may be seen in a view.

    index: (V,) which quads of the scene.
    matrix: (V, 3, 3) float64, maps (u, v, 1) to (s/z, t/z, 1/z). With X = o + s a + t b in the camera frame,
    z (u, v, 1) = K [a b o] (s, t, 1), hence matrix = (K [a b o])^-1: all three rows are affine in the pixel, exactly.
    bounds: (V, 4) pixel rectangle u0, u1, v0, v1 (ends excluded) that contains the visible part.
    plane_distance: (V,) metres from the camera centre to the plane.
    """

    index: npt.NDArray[np.intp]
    matrix: Float64
    bounds: npt.NDArray[np.intp]
    plane_distance: Float64


def project(scene: Scene, view: View) -> Projected:
    """Transform, cull and bound the quads of a scene for one view."""
    quads = scene.quads
    camera_from_world = np.linalg.inv(view.world_from_camera)
    camera_from_body = camera_from_world @ scene.body_poses(view.time)
    transform = camera_from_body[np.maximum(quads.body, WORLD)]
    rotation = transform[:, :3, :3]
    sky = quads.body == SKY
    a = np.einsum("qij,qj->qi", rotation, quads.side_s)
    b = np.einsum("qij,qj->qi", rotation, quads.side_t)
    o = np.einsum("qij,qj->qi", rotation, quads.origin) + np.where(sky[:, None], 0.0, transform[:, :3, 3])
    scale = np.where(sky, SKY_DISTANCE, 1.0)[:, None]
    a, b, o = a * scale, b * scale, o * scale

    normal = np.cross(a, b)
    facing = np.einsum("qi,qi->q", normal, o)  # negative: the front looks at the camera
    distance = np.abs(facing) / np.linalg.norm(normal, axis=1)
    keep = (quads.two_sided | (facing < 0)) & (distance > 1e-6)
    corners = np.stack([o, o + a, o + a + b, o + b], axis=1)
    keep &= corners[..., 2].max(axis=1) > NEAR
    index = np.flatnonzero(keep)

    bounds = _bounds(corners[index], view)
    seen = (bounds[:, 1] > bounds[:, 0]) & (bounds[:, 3] > bounds[:, 2])
    index, bounds = index[seen], bounds[seen]
    basis = np.stack([a[index], b[index], o[index]], axis=2)
    return Projected(index, np.linalg.inv(view.K @ basis), bounds, distance[index])


def _bounds(corners: Float64, view: View) -> npt.NDArray[np.intp]:
    """Pixel rectangles of (V, 4, 3) convex polygons cut at the near plane."""
    following = np.roll(corners, -1, axis=1)
    z0, z1 = corners[..., 2], following[..., 2]
    with np.errstate(divide="ignore", invalid="ignore"):
        cut = corners + ((NEAR - z0) / (z1 - z0))[..., None] * (following - corners)
    points = np.concatenate([corners, cut], axis=1)
    usable = np.concatenate([z0 >= NEAR, (z0 < NEAR) != (z1 < NEAR)], axis=1)
    depth = np.where(usable, points[..., 2], 1.0)
    pixel = np.einsum("ij,vpj->vpi", view.K, points)[..., :2] / depth[..., None]
    low = np.where(usable[..., None], pixel, np.inf).min(axis=1)
    high = np.where(usable[..., None], pixel, -np.inf).max(axis=1)
    size = np.array([view.width, view.height])
    first = np.clip(np.floor(low), 0, size).astype(np.intp)
    last = np.clip(np.ceil(high) + 1, 0, size).astype(np.intp)
    return np.stack([first[:, 0], last[:, 0], first[:, 1], last[:, 1]], axis=1)
