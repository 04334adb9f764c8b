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


"""Points of a window found again in the next frame: where they should be, and where their patches are.

Needs nothing of a matcher but the points it found first; the images are read as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.images.frame import StereoFrame
from macvo_ros.matching.matcher import Match, PointMatches
from macvo_ros.matching.patch_refinement import fitted_plane
from macvo_ros.matching.patch_tracking import Patches, cut_patches, find_patches, joined_patches
from macvo_ros.motion.sliding_window import Sightings
from macvo_ros.motion.window_points import LEAST_DISPARITY, Bool, WindowPoints, WindowState
from macvo_ros.uncertainty.calibration_shift import CalibrationShift

Float32 = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.float64]

_RADII, _STRIDE = (6, 18), 3
"""Of the patches, pixels: a 36th of the image's width within these, every third pixel, as `lite` refines.
Chosen, not measured."""
_LARGEST_SCALE = 2.0
"""A patch that is now so many times larger or smaller than at first sight is given up; chosen, not measured."""
_MIN_LIKENESS = 0.4
"""Normalised correlation below which two patches are taken for unrelated, as the matchers do; chosen, not measured."""
_FLOW_PATCH, _STEREO_PATCH, _FLOOR = 0.64, 0.46, 0.01
"""Sigma of a patch's place per least-squares sigma, and its floor in pixels, as fitted for `lite`'s refinement
(`python -m bench.calibrate_lite`, `lite/refinement.py`)."""
_RELIEF, RELIEF_DEPTH = 0.1, 0.23
"""What is no plane moves in parts, and a patch follows some of them: by how much more disparity than that at its middle
it seems to move along its epipolar line, per pixel of relief, and by how much it leaves that line, per pixel that this
much disparity would move it by. RELIEF_DEPTH and _RELIEF are the root mean squares of `python -m
bench.followed_errors`."""
_HALF = 6.0
"""Pixels to either side of a point, between which the warp of its patch is taken; chosen, not measured."""


@dataclass(frozen=True, eq=False)
class PointPatches:
    """Of each of P points: its patch, (P, 2) slopes of disparity there, (3, P) variance that its first matches had.

    relief: (P,) root mean square by which the disparity about it departs from a plane, pixels.

    views: the patches of each first view as they were cut, which are large and therefore stay where they are.
    view: (P,) which of these a point's is in, never falling; row: (P,) which of its patches.
    """

    views: tuple[Patches, ...]
    view: npt.NDArray[np.int64]
    row: npt.NDArray[np.int64]
    slope: Float64
    relief: Float64
    variance: Float64

    def __len__(self) -> int:
        return len(self.slope)

    def subset(self, keep: Bool) -> PointPatches:
        """Those where (P,) `keep` is true."""
        used, view = np.unique(self.view[keep], return_inverse=True)
        views = tuple(self.views[each] for each in used.tolist()) or self.views[:1]
        return PointPatches(views, view, self.row[keep], self.slope[keep], self.relief[keep], self.variance[:, keep])

    def joined(self, other: PointPatches) -> PointPatches:
        """These and others after them."""
        return PointPatches(
            self.views + other.views,
            np.concatenate((self.view, other.view + len(self.views))),
            np.concatenate((self.row, other.row)),
            np.vstack((self.slope, other.slope)),
            np.concatenate((self.relief, other.relief)),
            np.hstack((self.variance, other.variance)),
        )

    def patches(self, keep: Bool) -> Patches:
        """The patches of those where (P,) `keep` is true."""
        view, row = self.view[keep], self.row[keep]
        return joined_patches([each.subset(row[view == index]) for index, each in enumerate(self.views)])


@dataclass(frozen=True, eq=False)
class SmoothPair:
    """Left and right image, (H, W) grey, slightly smoothed: every third pixel tells as much as all of the original."""

    left: Float32
    right: Float32

    @staticmethod
    def of(frame: StereoFrame) -> SmoothPair:
        """Of a frame as the camera took it."""
        return SmoothPair(frame.full.smooth_left, frame.full.smooth_right)


def first_views(image: Float32, match: Match, points: PointMatches) -> PointPatches:
    """The patches of points of a frame, whose smoothed left image and dense match are given."""
    radius = int(np.clip(_STRIDE * round(image.shape[1] / 107), *_RADII))
    disparity = match.disparity.numpy(force=True)[..., None]
    reduction = np.array(image.shape[::-1]) / np.array(disparity.shape[1::-1])
    _, slope, relief = fitted_plane(disparity, np.rint(points.pixel).astype(np.int64), reduction)
    variance = np.vstack((points.flow_var.T, points.matched_disparity_var))
    cut = cut_patches(image, points.pixel, radius, _STRIDE)
    count = len(slope)
    slopes = slope[:, 0].astype(np.float64)
    return PointPatches((cut,), np.zeros(count, np.int64), np.arange(count), slopes, relief, variance)


def follow(
    camera: StereoCamera,
    views: PointPatches,
    points: WindowPoints,
    state: WindowState,
    wanted: Bool,
    pose: Float64,
    images: SmoothPair,
    lens: CalibrationShift,
) -> Sightings:
    """Look for the `wanted` of P points in the images of a camera thought to be at (4, 4) `pose` in odom.

    lens: what is known of the calibration's error; patches are looked for where it puts them, and what is returned is
    as in the images. The variance is that of a match by itself; what of it is shared is the caller's to take off.
    """
    count = len(points)
    seen, variance, found = np.zeros((3, count)), np.ones((3, count)), np.zeros(count, bool)
    surface = _expected(camera, views, points, state, pose)
    in_image = lens.in_image(np.vstack((surface.pixel.T, surface.disparity)))
    expected, disparity = in_image[:2].T, in_image[2]
    scale = np.abs(np.linalg.det(surface.warp))
    last = np.array([camera.width, camera.height]) - 1
    inside = ((expected >= 0) & (expected <= last)).all(axis=1)
    at = np.flatnonzero(wanted & inside & (scale > _LARGEST_SCALE**-2) & (scale < _LARGEST_SCALE**2))
    picked = np.zeros(count, bool)
    picked[at] = True
    patches = views.patches(picked)
    here = find_patches(patches, images.left, expected[at], surface.warp[at], surface.foreshortening[at])
    if len(at):
        radius, stride = int(patches.radius[0]), int(patches.stride[0])
        there = find_patches(
            cut_patches(images.left, here.pixel, radius, stride, axes=1),
            images.right,
            lens.in_right_image(here.pixel, disparity[at]),
            _row_warp(surface.tilt[at]),
        )
        seen[:2, at] = here.pixel.T
        seen[2, at] = here.pixel[:, 0] - there.pixel[:, 0]
        patch = np.vstack((_FLOW_PATCH**2 * here.patch_var.T, _STEREO_PATCH**2 * there.patch_var.T)) + _FLOOR**2
        # A patch that fits well is no proof that the surface, or the light, is what it was; and what is no plane moves
        # in parts, the nearer ones farther.
        variance[:, at] = np.maximum(patch, views.variance[:, at])
        variance[:2, at] += (_RELIEF * surface.parallax[at] * views.relief[at]) ** 2
        found[at] = here.found & there.found & (np.minimum(here.likeness, there.likeness) > _MIN_LIKENESS)
        found[at] &= seen[2, at] - camera.disparity_offset > 0.5
    return Sightings(seen, variance, found)


class _Expected(NamedTuple):
    """P points and the surface about each, as they should be seen: (P, 2) pixel, (P, 2, 2) warp of the first view.

    foreshortening: (P, 2) of that warp; disparity: (P,), tilt: (P, 2) its slopes over the image. parallax: (P,) pixels
    that a point has moved farther by per pixel of disparity.
    """

    pixel: Float64
    warp: Float64
    foreshortening: Float64
    disparity: Float64
    tilt: Float64
    parallax: Float64


def _expected(
    camera: StereoCamera, views: PointPatches, points: WindowPoints, state: WindowState, pose: Float64
) -> _Expected:
    """Seen from a pose.

    The surface about a point is taken for the plane that its disparity had at first sight.
    """
    rotation, position = state.rotation[points.anchor], state.position[points.anchor]
    turn = pose[:3, :3].T @ rotation
    shift = (position - pose[:3, 3]) @ pose[:3, :3]

    def project(offset: tuple[float, float], nearer: float = 0.0) -> tuple[Float64, Float64, Float64]:
        u, v = (points.pixel + state.points[:2]) + np.array(offset)[:, None]
        d = nearer + state.points[2] + views.slope @ np.array(offset) - camera.disparity_offset
        z = camera.fx * camera.baseline / np.maximum(d, LEAST_DISPARITY)
        first = z
        place = np.stack(((u - camera.cx) / camera.fx * z, (v - camera.cy) / camera.fy * z, z), axis=1)
        x, y, z = ((turn @ place[:, :, None])[:, :, 0] + shift).T
        behind = z < 0.05
        z = np.where(behind, 0.05, z)
        pixel = np.stack((camera.fx * x / z + camera.cx, camera.fy * y / z + camera.cy), axis=1)
        pixel[behind] = -1e6
        return pixel, camera.fx * camera.baseline / z + camera.disparity_offset, z / first

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
    return _Expected(middle, warp, nearer, disparity + state.points[3], np.clip(tilt, -0.5, 0.5), parallax)


def _row_warp(tilt: Float64) -> Float64:
    """(N, 2, 2) d(right pixel) / d(left pixel) where the disparity has (N, 2) slopes."""
    warp = np.tile(np.eye(2), (len(tilt), 1, 1))
    warp[:, 0] -= tilt
    return warp
