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


"""The points of a window of frames, what was seen of them, and what a state of poses and points predicts instead.

A point is a pixel x of its first view, the *anchor*, and the disparity d there. Four unknowns:

    [a_u, a_v, d, b]      what its patch shows lies at x + a in the anchor; every disparity of it is wrong by b.

a and b are what all later observations of the point have in common, because they are compared with the same patch: a
point seen ten times with the same patch is not ten measurements. Their variances are known beforehand; the rest of an
observation's variance is its own. Residuals, predicted minus seen, each divided by its sigma:

    of an observation in frame k        u, v, disparity + b   from the point and the poses of anchor and frame
    of the first view                   d + b and the disparity measured there;   a and b and zero

Arrays hold frames first, then rows and columns of small matrices, then points: one product serves all points of a
frame.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from macvo_ros.geometry.camera import StereoCamera

Float64 = npt.NDArray[np.float64]
Bool = npt.NDArray[np.bool_]
Whole = npt.NDArray[np.int64]

LEAST_DISPARITY = 0.02
"""Pixels, above that of a point at infinity: nothing is farther. Chosen, not measured."""


@dataclass(frozen=True, eq=False)
class WindowPoints:
    """P points with their observations in N frames, sorted by anchor.

    anchor: (P,) frame of the first view; pixel: (2, P) there; disparity, disparity_var: (P,) measured there.
    shared_var: (3, P) pixels^2, variance of a_u, a_v and b.
    seen: (N, 3, P) u, v and disparity in each frame, pixels; inverse_sigma: (N, 3, P) of the part of their errors that
    is not shared, 1 / pixels, zero where the point was not observed (in its anchor above all).
    crowding: (P,) at least 1: how many points err like this one (`ErrorCorrelation`), itself included.
    """

    anchor: Whole
    pixel: Float64
    disparity: Float64
    disparity_var: Float64
    shared_var: Float64
    seen: Float64
    inverse_sigma: Float64
    crowding: Float64

    def __len__(self) -> int:
        return len(self.anchor)

    def subset(self, keep: Bool) -> WindowPoints:
        """The points where (P,) `keep` is true."""
        rows = np.flatnonzero(keep)
        return WindowPoints(**{name: value.take(rows, axis=-1) for name, value in vars(self).items()})


@dataclass(frozen=True, eq=False)
class WindowState:
    """rotation: (N, 3, 3), position: (N, 3) metres of the left camera in odom; points: (4, P) [a_u, a_v, d, b]."""

    rotation: Float64
    position: Float64
    points: Float64


@dataclass(frozen=True, eq=False)
class Observations:
    """The M observations of a window as lists, point by point: frame and point of each, u v disparity and 1 / sigma.

    known: (Q,) points that were observed, begins: (Q,) where the observations of each begin. order: (M,) observations
    by first view and frame; pairs: (2, Q) of these, pair_begins: (Q,) where each begins in that order.
    """

    frame: Whole
    point: Whole
    seen: Float64
    inverse_sigma: Float64
    known: Whole
    begins: Whole
    order: Whole
    pairs: Whole
    pair_begins: Whole

    @staticmethod
    def of(points: WindowPoints) -> Observations:
        """All there are."""
        point, frame = map(np.ascontiguousarray, np.nonzero(points.inverse_sigma[:, 0].T > 0))
        frames = len(points.seen)
        known, begins = np.unique(point, return_index=True)
        pair = points.anchor[point] * frames + frame
        order = np.argsort(pair, kind="stable")
        numbers, firsts = np.unique(pair[order], return_index=True)
        return Observations(
            frame,
            point,
            np.ascontiguousarray(points.seen[frame, :, point].T),
            np.ascontiguousarray(points.inverse_sigma[frame, :, point].T),
            known,
            begins,
            order,
            np.stack(np.divmod(numbers, frames)),
            firsts,
        )

    def __len__(self) -> int:
        return len(self.frame)


@dataclass(frozen=True, eq=False)
class Residuals:
    """What a state predicts of M observations.

    in_camera: (3, M) the points in the axes of the observing camera, metres. white: (3, M) residuals in sigmas;
    squared: (M,) their squared lengths. first: (P,) d + b minus the disparity measured in the first view, pixels.
    """

    in_camera: Float64
    white: Float64
    squared: Float64
    first: Float64


def residuals(camera: StereoCamera, points: WindowPoints, state: WindowState, seen: Observations) -> Residuals:
    """Predicted minus seen."""
    rotation, position = state.rotation[points.anchor], state.position[points.anchor]
    in_odom = (rotation @ in_anchor(camera, points, state).T[:, :, None])[:, :, 0] + position
    everywhere = (in_odom[None] - state.position[:, None]) @ state.rotation
    in_camera = np.ascontiguousarray(everywhere[seen.frame, seen.point].T)
    x, y, z = in_camera
    np.maximum(z, 1e-3, out=z)
    white = np.empty_like(in_camera)
    white[0] = camera.fx * x / z + camera.cx
    white[1] = camera.fy * y / z + camera.cy
    white[2] = camera.fx * camera.baseline / z + camera.disparity_offset + state.points[3, seen.point]
    white -= seen.seen
    white *= seen.inverse_sigma
    first = state.points[2] + state.points[3] - points.disparity
    return Residuals(in_camera, white, np.einsum("im,im->m", white, white), first)


def jacobians(
    camera: StereoCamera, points: WindowPoints, state: WindowState, seen: Observations, found: Residuals, root: Float64
) -> tuple[Float64, Float64]:
    """Derivatives of the residuals, times (M,) `root`, by the observing pose and by the point.

    Returns (3, 6, M) by [dt, dtheta] in the axes of the camera (dq = -dt + [q]x dtheta), and (3, 4, M).
    """
    x, y, z = found.in_camera
    scale = seen.inverse_sigma * root
    u, v = camera.fx / z * scale[0], camera.fy / z * scale[1]
    d = -camera.fx * camera.baseline / (z * z) * scale[2]
    tilt_u, tilt_v = -u * x / z, -v * y / z
    pose = np.zeros((3, 6, len(seen)))
    pose[0, 0], pose[0, 2], pose[1, 1], pose[1, 2], pose[2, 2] = -u, -tilt_u, -v, -tilt_v, -d
    pose[0, 3], pose[0, 4], pose[0, 5] = -tilt_u * y, tilt_u * x - u * z, u * y
    pose[1, 3], pose[1, 4], pose[1, 5] = v * z - tilt_v * y, tilt_v * x, -v * x
    pose[2, 3], pose[2, 4] = -d * y, d * x

    near = in_anchor(camera, points, state)
    depth = near[2]
    change = np.zeros((len(points), 3, 3))
    change[:, 0, 0], change[:, 1, 1] = depth / camera.fx, depth / camera.fy
    change[:, :, 2] = (-near * (depth / (camera.fx * camera.baseline))).T
    change = state.rotation[points.anchor] @ change
    turned = state.rotation.transpose(0, 2, 1) @ change.transpose(1, 0, 2).reshape(3, -1)
    turned = turned.reshape(len(state.rotation), 3, len(points), 3)[seen.frame, :, seen.point].transpose(1, 2, 0)
    own = np.zeros((3, 4, len(seen)))
    own[0, :3] = u * turned[0] + tilt_u * turned[2]
    own[1, :3] = v * turned[1] + tilt_v * turned[2]
    own[2, :3] = d * turned[2]
    own[2, 3] = scale[2]
    return pose, own


def in_anchor(camera: StereoCamera, points: WindowPoints, state: WindowState) -> Float64:
    """(3, P) metres, in the axes of the camera of the first view."""
    far = np.maximum(state.points[2] - camera.disparity_offset, LEAST_DISPARITY)
    depth = camera.fx * camera.baseline / far
    u, v = points.pixel + state.points[:2]
    return np.stack(((u - camera.cx) / camera.fx * depth, (v - camera.cy) / camera.fy * depth, depth))
