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

import numpy as np
import numpy.typing as npt

from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.images.frame import StereoFrame
from macvo_ros.matching.matcher import Match, PointMatches
from macvo_ros.matching.patch_refinement import fitted_plane
from macvo_ros.matching.patch_tracking import Patches, cut_patches, find_patches
from macvo_ros.motion.calibration_shift import CalibrationShift
from macvo_ros.motion.expected_views import expected_views
from macvo_ros.motion.sliding_window import Sightings
from macvo_ros.motion.window_points import Bool, WindowPoints, WindowState

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


@dataclass(frozen=True, eq=False)
class PointPatches:
    """Of each of P points: its patch, (P, 2) slopes of disparity there, (3, P) variance that its first matches had.

    relief: (P,) root mean square by which the disparity about it departs from a plane, pixels.

    kept: patches, large and therefore left where they are; row: (P,) which of them is a point's. The others are of
    points that have left, and are written anew as new points come.
    """

    kept: Patches
    row: npt.NDArray[np.int64]
    slope: Float64
    relief: Float64
    variance: Float64

    def __len__(self) -> int:
        return len(self.slope)

    def subset(self, keep: Bool) -> PointPatches:
        """Those where (P,) `keep` is true."""
        return PointPatches(self.kept, self.row[keep], self.slope[keep], self.relief[keep], self.variance[:, keep])

    def joined(self, other: PointPatches) -> PointPatches:
        """These and others after them; what is kept of points that left since may be written over."""
        kept = self.kept
        if len(kept) < len(self) + len(other):
            kept = kept.with_room(2 * (len(self) + len(other)))
        unused = np.ones(len(kept), bool)
        unused[self.row] = False
        row = np.flatnonzero(unused)[: len(other)]
        kept.overwrite(row, other.kept)
        return PointPatches(
            kept,
            np.concatenate((self.row, row)),
            np.vstack((self.slope, other.slope)),
            np.concatenate((self.relief, other.relief)),
            np.hstack((self.variance, other.variance)),
        )


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
    return PointPatches(cut, np.arange(count), slopes, relief, variance)


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
    at = np.flatnonzero(wanted)
    surface = expected_views(camera, points, state, views.slope, pose, at)
    in_image = lens.in_image(np.stack((*surface.pixel.T, surface.disparity)))
    pixel, last = in_image[:2], np.array([[camera.width], [camera.height]]) - 1
    scale = np.abs(surface.scale)
    sound = ((pixel >= 0) & (pixel <= last)).all(axis=0)
    sound &= (scale > _LARGEST_SCALE**-2) & (scale < _LARGEST_SCALE**2)
    at, surface, in_image = at[sound], surface.subset(sound), in_image[:, sound]
    if not len(at):
        return Sightings(seen, variance, found)
    kept, expected = views.kept, np.ascontiguousarray(in_image[:2].T)
    here = find_patches(kept, images.left, expected, surface.warp, surface.foreshortening, views.row[at])
    there = find_patches(
        cut_patches(images.left, here.pixel, kept.radius, kept.stride, axes=1),
        images.right,
        lens.in_right_image(here.pixel, in_image[2]),
        _row_warp(surface.tilt),
    )
    seen[:2, at] = here.pixel.T
    seen[2, at] = here.pixel[:, 0] - there.pixel[:, 0]
    patch = np.vstack((_FLOW_PATCH**2 * here.patch_var.T, _STEREO_PATCH**2 * there.patch_var.T)) + _FLOOR**2
    # A patch that fits well is no proof that the surface, or the light, is what it was; and what is no plane moves
    # in parts, the nearer ones farther.
    variance[:, at] = np.maximum(patch, views.variance[:, at])
    variance[:2, at] += (_RELIEF * surface.parallax * views.relief[at]) ** 2
    found[at] = here.found & there.found & (np.minimum(here.likeness, there.likeness) > _MIN_LIKENESS)
    found[at] &= seen[2, at] - camera.disparity_offset > 0.5
    return Sightings(seen, variance, found)


def _row_warp(tilt: Float64) -> Float64:
    """(N, 2, 2) d(right pixel) / d(left pixel) where the disparity has (N, 2) slopes."""
    warp = np.tile(np.eye(2), (len(tilt), 1, 1))
    warp[:, 0] -= tilt
    return warp
