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

"""Does the whole image agree? Asked after the pose, which only its keypoints have voted on.

Keypoints are the most certain matches, so a sharp object that moves with the camera (the robot's own arm, a reflection,
the side of a bus) can win every one of them and agree with itself perfectly. The rest of the image knows better.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from macvo_ros.camera import StereoCamera
from macvo_ros.config import Config
from macvo_ros.covariance import depth_from_disparity, point_covariance, rays
from macvo_ros.frame import Image
from macvo_ros.interpolation import bilinear
from macvo_ros.matching.matcher import Match, look_up
from macvo_ros.matching.rigid_flow import rigid_flow
from macvo_ros.pose_solver import PointPairs, solve_pose
from macvo_ros.two_frame import TwoFrameResult

Float32 = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.float64]

_ROW_LIMIT = 1.0
"""Pixels by which stereo matches may leave their rows on average (in images up to 1000 wide, in proportion beyond)."""
_ROWS_UNUSUAL, _ROWS_NOISE, _ROWS_SPREAD = 3.0, 0.15, 0.64
"""Times the usual error of rows, pixels (as above), sigmas of a good match: below, a change is no sign of anything."""
_SPREAD_UNUSUAL = 2.0
"""Times the usual sigma of a good match. Sound frames reach 1.6; with a right image a frame late, most are beyond."""
_CERTAIN = 1.0
"""Standard deviation of a match below which a pixel has a say, pixels."""
_SLACK = 1.0
"""Difference of flows that is no contradiction, pixels."""
_STRIDE = 8
_ENOUGH = 50
_MINORITY = 0.1
"""Share of the image below which dissent is ordinary: occlusions, reflections, people (rendered crowds reach 0.05)."""
_MAJORITY = 0.5
"""Share of the dissenters that must agree with each other."""
_AGREED_CHI2 = 6.0
_GRID = (8, 4)
_RIVALS, _RIVAL_SHARE, _RIVAL_CHI2 = 8, 0.125, 3.0
"""Keypoints against the motion that must agree with each other, least number and share of all; their residuals."""
_BLUR = 1.5
"""Sigma, pixels, of what is smoothed away before looks are compared: noise, and what a match may be off by."""
_PATCH, _TEXTURE, _ALIKE, _UNLIKE = 4, 4.0, 0.8, 0.3
"""An evident match: half side of its patch (pixels), least contrast (grey levels), correlation, lead in correlation."""


_SIDE = np.arange(-_PATCH, _PATCH + 1, dtype=np.float32)
_OFFSETS = np.stack(np.meshgrid(_SIDE, _SIDE), axis=-1).reshape(-1, 2)
"""(P, 2) of the pixels of a patch."""
_AT_ONCE = 30_000


def row_error(match: Match, camera: StereoCamera) -> float:
    """How far stereo matches leave their rows, in units of what can be tolerated.

    Calibrated and synchronous cameras reach a tenth of it. Beyond 1 left and right were not taken at the same moment,
    or the calibration is not theirs, and depth, which is the same error along the rows, is worth nothing.
    """
    return math.sqrt(max(match.epipolar_var, 0.0)) / (_ROW_LIMIT * max(1.0, camera.width / 1000))


@dataclass(frozen=True)
class Rows:
    """How well stereo matches of a camera usually keep their rows.

    variance: mean of `Match.epipolar_var`, pixels^2; spread: mean of `stereo_spread`, pixels.
    """

    variance: float
    spread: float


def stereo_spread(match: Match) -> float:
    """Standard deviation, pixels, that the best fifth of the stereo matches may have."""
    return math.sqrt(float(np.quantile(match.disparity_var[::_STRIDE, ::_STRIDE].numpy(force=True), 0.2)))


def rows_left(match: Match, camera: StereoCamera, usual: Rows | None, spread: float) -> bool:
    """Whether stereo matches leave their rows more than is tolerable, or far more than these cameras usually do.

    usual: None where not known; spread: `stereo_spread` of the match. What a calibration leaves of it is alike in every
    frame; a right image of another moment adds what moved meanwhile. In rendered scenes the root of it stays within a
    factor of two of its mean, and a right image a frame late has four to a hundred times as much.
    """
    error = row_error(match, camera)
    if usual is None or error > 1.0:
        return error > 1.0
    # In the dark rows are as noisy as everything: what the best fifth of the matches may be off by is the measure.
    # But where that has doubled itself, in an image no noisier than usual, it is no excuse: the right image is wrong.
    noise = _ROWS_NOISE * max(1.0, camera.width / 1000)
    if spread <= _SPREAD_UNUSUAL * usual.spread:
        noise = max(noise, _ROWS_SPREAD * spread)
    unusual = max(noise, _ROWS_UNUSUAL * math.sqrt(max(usual.variance, 0.0)))
    return math.sqrt(max(match.epipolar_var, 0.0)) > unusual


@dataclass(frozen=True, eq=False)
class Dissent:
    """What speaks against a motion in the rest of the image.

    share: the part (0 to 1) of what is matched for certain whose flow contradicts the motion in a static scene.
    pixel: (N, 2) where, in the reference image.
    """

    share: float
    pixel: Float64


def find_dissent(
    camera: StereoCamera, images: tuple[Image, Image], reference: Match, match: Match, motion: Float64
) -> Dissent:
    """What contradicts a camera `motion` (4, 4); images, reference, match: of the two frames it lies between.

    Pixels speak whose match is certain, or evident: what is there looks like what was there by the flow, and unlike it
    by the motion. (A learned variance may have come to distrust whatever departs from the predicted motion.) A certain
    match is not heard where looks speak for the motion.
    """
    assert match.flow is not None
    assert match.flow_var is not None
    disparity = reference.disparity[::_STRIDE, ::_STRIDE].numpy(force=True)
    coarse = _every_nth_pixel(camera)
    turned = motion.copy()
    turned[:3, 3] = 0.0
    smaller = np.asarray(disparity / _STRIDE, dtype=np.float32)
    expected, rotation = (_STRIDE * np.asarray(rigid_flow(coarse, smaller, m)) for m in (motion, turned))
    parallax = np.linalg.norm(expected - rotation, axis=-1)
    d = np.maximum(disparity - camera.disparity_offset, 1e-3)
    disparity_sigma = np.sqrt(reference.disparity_var[::_STRIDE, ::_STRIDE].numpy(force=True))
    flow = match.flow[:, ::_STRIDE, ::_STRIDE].numpy(force=True).transpose(1, 2, 0)
    sigma = np.sqrt(match.flow_var[:, ::_STRIDE, ::_STRIDE].numpy(force=True).max(axis=0))
    depth_spread = parallax * disparity_sigma / d
    certain = (sigma < _CERTAIN) & (depth_spread < 2 * _CERTAIN)
    difference = np.linalg.norm(flow - expected, axis=-1)
    contrary = certain & (difference > _SLACK + 3.0 * np.hypot(sigma, depth_spread))
    doubtful = ~contrary & (difference > 2 * _SLACK + 3.0 * depth_spread) & (depth_spread < 2 * _CERTAIN)
    asked = contrary | doubtful
    if _share(asked, certain) <= _MINORITY:
        # Whatever the looks say, it is too little for anything to follow; only the limit of a wary frame is lower, and
        # it then judges by the certain matches alone.
        return Dissent(_share(contrary, certain), _STRIDE * np.argwhere(contrary)[:, ::-1].astype(np.float64))
    if asked.any():
        evident, refuted = _evident(images, _STRIDE * np.argwhere(asked)[:, ::-1], flow[asked], expected[asked])
        contrary[asked] = np.where(doubtful[asked], evident, ~refuted)
    return Dissent(_share(contrary, certain), _STRIDE * np.argwhere(contrary)[:, ::-1].astype(np.float64))


def _share(contrary: npt.NDArray[np.bool_], certain: npt.NDArray[np.bool_]) -> float:
    """The part of what speaks that contradicts."""
    return float(contrary.sum() / max((certain | contrary).sum(), _ENOUGH))


def unlike_share(
    camera: StereoCamera, images: tuple[Image, Image], reference: Match, motion: Float64, seen: float = 0.3
) -> float:
    """The part (0 to 1) of what is textured that does not look, where a `motion` (4, 4) puts it, as it did before.

    Of both images only what is larger than a match's error counts, and stands out of the noise. Matchers follow where
    they are led: led by something that moves with the camera, they find nothing in the rest of the image that could
    dissent. Looks cannot be led. seen: correlation from which patches look alike.
    """
    before, after = (
        cv2.GaussianBlur(i if i.ndim == 2 else cv2.cvtColor(i, cv2.COLOR_RGB2GRAY), (0, 0), _BLUR) for i in images
    )
    disparity = reference.disparity[::_STRIDE, ::_STRIDE].numpy(force=True)
    sigma = np.sqrt(reference.disparity_var[::_STRIDE, ::_STRIDE].numpy(force=True))
    flow = _STRIDE * np.asarray(rigid_flow(_every_nth_pixel(camera), np.float32(disparity / _STRIDE), motion))
    pixel = _STRIDE * np.stack(np.meshgrid(*(np.arange(n) for n in disparity.shape[::-1])), axis=-1)
    d = np.maximum(disparity - camera.disparity_offset, 1e-3)
    where = pixel + flow
    low, high = _STRIDE, np.array([camera.width, camera.height]) - 1 - _STRIDE
    inside = ((where >= low) & (where <= high) & (pixel >= low) & (pixel <= high)).all(axis=-1)
    sure = inside & (np.linalg.norm(flow, axis=-1) * np.minimum(sigma / d, 1.0) < 2 * _CERTAIN) & np.isfinite(d)
    first, second = (_patches(image, at[sure]) for image, at in ((before, pixel), (after, where)))
    norms = [np.sqrt((patch**2).mean(axis=1)) for patch in (first, second)]
    textured = norms[0] > _TEXTURE
    likeness = (first * second).mean(axis=1) / np.maximum(norms[0] * norms[1], 1e-3)
    return float((textured & (likeness < seen)).sum() / max(textured.sum(), _ENOUGH))


def _patches(image: Image, pixel: npt.NDArray[Any]) -> Float32:
    """(N, P) brightness around (N, 2) pixels, less its mean. (OpenCV takes at least one and at most 32766 at once.)"""
    where = pixel.astype(np.float32)[:, None] + _OFFSETS
    values = np.empty(where.shape[:2], np.float32)
    for i in range(0, len(where), _AT_ONCE):
        part = slice(i, i + _AT_ONCE)
        values[part] = cv2.remap(image, where[part], None, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    return np.asarray(values - values.mean(axis=1, keepdims=True))


def _evident(
    images: tuple[Image, Image], pixel: npt.NDArray[np.int64], flow: Float32, expected: Float32
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """(N,) whether the patches at (N, 2) pixels went with `flow` and not as `expected`, both (N, 2) pixels.

    And (N,) whether they rather went as expected.
    """
    before, after = (i if i.ndim == 2 else np.asarray(cv2.cvtColor(i, cv2.COLOR_RGB2GRAY)) for i in images)
    patches = [_patches(before, pixel), _patches(after, pixel + flow), _patches(after, pixel + expected)]
    norms = [np.sqrt((patch**2).sum(axis=1)) + 1e-3 for patch in patches]
    by_flow, by_motion = ((patches[0] * patches[i]).sum(axis=1) / (norms[0] * norms[i]) for i in (1, 2))
    textured = norms[0] > _TEXTURE * patches[0].shape[1] ** 0.5
    evident = textured & (by_flow > _ALIKE) & (by_flow > by_motion + _UNLIKE)
    return np.asarray(evident), np.asarray(textured & (by_motion > by_flow))


def other_motion(
    config: Config, camera: StereoCamera, reference: Match, match: Match, seed: Float64, dissent: Dissent
) -> Float64 | None:
    """(4, 4) motion on which most of the dissenters agree, if they are many: then two motions are to be seen.

    One is the camera's, the other that of something large and rigid, and nothing in two frames tells which is which.
    A crowd does not agree on a motion, so people walking by are not taken for one. Solved from `seed` (4, 4).
    """
    if dissent.share < _MINORITY or len(dissent.pixel) < config.pose.min_points:
        return None
    points = look_up(dissent.pixel, reference, match)
    near = (points.disparity - camera.disparity_offset > config.keypoints.min_disparity) & (
        points.matched_disparity - camera.disparity_offset > config.keypoints.min_disparity
    )
    points = points.subset(near)
    if len(points.pixel) < config.pose.min_points:
        return None
    matched = points.pixel + points.flow
    depth, depth_var = depth_from_disparity(camera, points.disparity, points.disparity_var)
    matched_depth, matched_var = depth_from_disparity(camera, points.matched_disparity, points.matched_disparity_var)
    pairs = PointPairs(
        rays(camera, points.pixel) * depth[:, None],
        point_covariance(camera, points.pixel, np.zeros_like(points.flow_var), depth, depth_var),
        rays(camera, matched) * matched_depth[:, None],
        point_covariance(camera, matched, points.flow_var, matched_depth, matched_var),
    )
    solution = solve_pose(pairs, seed, config.pose)
    agree = int(solution.inlier.sum()) >= max(config.pose.min_points, _MAJORITY * len(dissent.pixel))
    return solution.motion if agree and solution.chi2 < _AGREED_CHI2 else None


def rival_motion(
    config: Config, camera: StereoCamera, reference: Match, result: TwoFrameResult, seed: Float64
) -> Float64 | None:
    """(4, 4) motion on which most of the keypoints agree that were rejected, if they are many. Solved from `seed`.

    Keypoints are matched far more finely than the rest of the image, so they tell two motions apart that differ by a
    fraction of a pixel. In rendered scenes one sound frame in 5000 has such rivals, unless people walk by.
    """
    against = ~result.solution.inlier
    enough = max(_RIVALS, _RIVAL_SHARE * len(against))
    if against.sum() < enough:
        return None
    pixel = (result.landmarks.pixel - result.flow)[against]
    points, current_cov = result.landmarks.point[against], result.landmarks.covariance[against]
    disparity, disparity_var = bilinear((reference.disparity, reference.disparity_var), pixel)
    near = disparity - camera.disparity_offset > config.keypoints.min_disparity
    if near.sum() < enough:
        return None
    depth, depth_var = depth_from_disparity(camera, disparity[near], disparity_var[near])
    exact = np.zeros((len(depth), 2))
    pairs = PointPairs(
        rays(camera, pixel[near]) * depth[:, None],
        point_covariance(camera, pixel[near], exact, depth, depth_var),
        points[near],
        current_cov[near],
    )
    solution = solve_pose(pairs, seed, config.pose)
    agree = int(solution.inlier.sum()) >= max(enough, _MAJORITY * len(depth))
    return solution.motion if agree and solution.chi2 < _RIVAL_CHI2 else None


def coverage(camera: StereoCamera, pixel: Float64) -> float:
    """The part (0 to 1) of the cells of a coarse grid over the image in which there is one of the (N, 2) pixels."""
    columns, rows = _GRID
    cell = np.clip(pixel / (camera.width, camera.height), 0.0, 0.999) * _GRID
    return len(np.unique(cell.astype(np.int64) @ np.array([1, columns]))) / (columns * rows)


def _every_nth_pixel(camera: StereoCamera) -> StereoCamera:
    """The camera of image[::n, ::n]: all its pixels, disparities and flows are n times smaller."""
    n = _STRIDE
    return StereoCamera(
        camera.fx / n,
        camera.fy / n,
        camera.cx / n,
        camera.cy / n,
        camera.baseline,
        -(-camera.width // n),
        -(-camera.height // n),
        None if camera.cx_right is None else camera.cx_right / n,
    )
