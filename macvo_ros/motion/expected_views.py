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


"""Where points of a window should be seen from another pose, and how the surface about each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.matching.native.library import kernels
from macvo_ros.motion.window_points import LEAST_DISPARITY, Bool, Whole, WindowPoints, WindowState

Float64 = npt.NDArray[np.float64]

_HALF = 6.0
"""Pixels to either side of a point, between which the warp of its patch is taken; chosen, not measured."""


@dataclass(frozen=True, eq=False)
class ExpectedViews:
    """M points and the surface about each: (M, 12) numbers, which the properties name."""

    numbers: Float64

    def subset(self, keep: Bool) -> ExpectedViews:
        """Those where (M,) `keep` is true."""
        return ExpectedViews(self.numbers[keep])

    @property
    def pixel(self) -> Float64:
        """(M, 2) where they should be."""
        return self.numbers[:, :2]

    @property
    def warp(self) -> Float64:
        """(M, 2, 2) of the first view, d(pixel here) / d(pixel there); zero where the surface is seen edge on."""
        return self.numbers[:, 2:6].reshape(-1, 2, 2)

    @property
    def scale(self) -> Float64:
        """(M,) determinant of the warp."""
        numbers = self.numbers
        return np.asarray(numbers[:, 2] * numbers[:, 5] - numbers[:, 3] * numbers[:, 4])

    @property
    def foreshortening(self) -> Float64:
        """(M, 2) of the warp, 1/pixel, see `foreshortening.py`."""
        return self.numbers[:, 6:8]

    @property
    def disparity(self) -> Float64:
        """(M,) as it would be measured, pixels."""
        return self.numbers[:, 8]

    @property
    def tilt(self) -> Float64:
        """(M, 2) slopes of the disparity over the image."""
        return self.numbers[:, 9:11]

    @property
    def parallax(self) -> Float64:
        """(M,) pixels that a point has moved farther by per pixel of disparity."""
        return self.numbers[:, 11]


def expected_views(
    camera: StereoCamera, points: WindowPoints, state: WindowState, slope: Float64, pose: Float64, which: Whole
) -> ExpectedViews:
    """Points of (M,) numbers, seen from a (4, 4) pose in odom.

    The surface about a point is taken for the plane that its disparity had at first sight; slope: (P, 2) of all points.
    """
    native = kernels()
    if native is None:
        return _expected(camera, points, state, slope, pose, which)
    lens = np.array([camera.fx, camera.fy, camera.cx, camera.cy, camera.baseline, camera.disparity_offset])
    numbers = np.empty((len(which), 12))
    plain = np.ascontiguousarray
    native(
        "macvo_expected_views", lens, plain(state.rotation), plain(state.position), plain(pose), len(points),
        points.anchor, plain(points.pixel), plain(state.points), plain(slope), len(which), which, _HALF,
        LEAST_DISPARITY, numbers,
    )  # fmt: skip
    return ExpectedViews(numbers)


def _expected(
    camera: StereoCamera, points: WindowPoints, state: WindowState, slope: Float64, pose: Float64, which: Whole
) -> ExpectedViews:
    anchor, pixel, found, slope = points.anchor[which], points.pixel[:, which], state.points[:, which], slope[which]
    turn = pose[:3, :3].T @ state.rotation[anchor]
    shift = (state.position[anchor] - pose[:3, 3]) @ pose[:3, :3]

    def project(offset: tuple[float, float], nearer: float = 0.0) -> tuple[Float64, Float64, Float64]:
        u, v = (pixel + found[:2]) + np.array(offset)[:, None]
        d = nearer + found[2] + slope @ np.array(offset) - camera.disparity_offset
        z = camera.fx * camera.baseline / np.maximum(d, LEAST_DISPARITY)
        first = z
        place = np.stack(((u - camera.cx) / camera.fx * z, (v - camera.cy) / camera.fy * z, z), axis=1)
        x, y, z = ((turn @ place[:, :, None])[:, :, 0] + shift).T
        behind = z < 0.05
        z = np.where(behind, 0.05, z)
        seen = np.stack((camera.fx * x / z + camera.cx, camera.fy * y / z + camera.cy), axis=1)
        seen[behind] = -1e6
        return seen, camera.fx * camera.baseline / z + camera.disparity_offset, z / first

    middle, disparity, depth = project((0.0, 0.0))
    parallax = np.linalg.norm(project((0.0, 0.0), 0.1)[0] - middle, axis=1) / 0.1
    right, left = project((_HALF, 0.0)), project((-_HALF, 0.0))
    low, high = project((0.0, _HALF)), project((0.0, -_HALF))
    warp = np.stack((right[0] - left[0], low[0] - high[0]), axis=2) / (2 * _HALF)
    change = np.stack((right[1] - left[1], low[1] - high[1]), axis=1) / (2 * _HALF)
    nearer = np.stack((right[2] - left[2], low[2] - high[2]), axis=1) / (2 * _HALF * depth[:, None])
    sound = np.abs(np.linalg.det(warp)) > 1e-3
    warp[~sound] = 0.0
    invertible = np.where(sound[:, None, None], warp, np.eye(2))
    tilt = np.linalg.solve(invertible.transpose(0, 2, 1), change[:, :, None])[:, :, 0]
    parts = (middle, warp.reshape(-1, 4), nearer, disparity + found[3], np.clip(tilt, -0.5, 0.5), parallax)
    return ExpectedViews(np.column_stack(parts))
