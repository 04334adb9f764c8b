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

"""Where the dense search begins: the predicted motion, or a better one from sparse features where that is poor.

Dense matchers look near where they are told to. Corners of the reference are tracked (Lucas-Kanade over a pyramid) from
where the prediction puts them. Where they end near there, the prediction stands. Where they do not (a slow camera, a
jerk, the first two frames), a motion is fitted to them with RANSAC; where they agree on none either, SIFT features are
compared over the whole image (ORB misses views that are turned by ten degrees and blurred, as every sixth frame of
a drone's: EuRoC MH_01, frames 180 and 186). The result only seeds the real estimate; none of its error enters a pose.
(The paper seeds with TartanVO, a network of its own.)
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import cv2
import numpy as np
import numpy.typing as npt

from macvo_ros.geometry.camera import StereoCamera, pixels, rays
from macvo_ros.geometry.interpolation import bilinear
from macvo_ros.geometry.se3 import inverse, transform
from macvo_ros.images.frame import StereoFrame
from macvo_ros.images.mask import usable_pixels
from macvo_ros.images.work_size import shrunk
from macvo_ros.matching.matcher import Match

Float32 = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.float64]

_WIDTH, _FEATURE_WIDTH = 400, 800
"""Columns, at most, of the images that corners are tracked in, and that SIFT features are compared in: in half of that
too few of a motorway's are found to start at speed (`python -m bench.cold_starts`)."""
_CORNERS, _QUALITY, _SPACING = 200, 0.005, 8
_WINDOW, _LEVELS = (13, 13), 4
_CONVERGED = (cv2.TERM_CRITERIA_EPS | cv2.TERM_CRITERIA_COUNT, 15, 0.05)
_NEAR = 2.0
"""Median distance from the prediction, pixels of these images, up to which it stands: the dense search spans that."""
_CERTAIN = 0.2
"""Sigma of a corner's disparity over the disparity, up to which its depth is used."""
_MIN_DISPARITY = 1.0
_MIN_INLIERS, _MIN_SHARE = 20, 0.4
"""Features, and share of them, that must agree on a fitted motion."""
_REPROJECTION = 3.0
"""Pixels of the image by which they may miss it."""
_PLACES = 32
"""Columns of the grid at which two motions are compared."""
_FEATURES, _CONTRAST, _RATIO = 800, 0.02, 0.85
"""SIFT: how many, least contrast (below OpenCV's default: blurred images have little), best match over second best."""


def seed_motion(reference: StereoFrame, match: Match, current: StereoFrame, predicted: Float64) -> Float64:
    """(4, 4) pose of the current left camera in the reference one to start a search from; match: of the reference.

    predicted: (4, 4) likewise. Deterministic.
    """
    tracked = _tracked(reference, match, current, predicted)
    if tracked is not None:
        points, expected, target = tracked
        if np.median(np.linalg.norm(target - expected, axis=1)) < _NEAR * _shrink(reference.camera):
            return predicted
        found = _fit(reference.camera, points, target)
        if found is not None:
            return found
    found = feature_motion(reference, match, current)
    return predicted if found is None else found


def feature_motion(reference: StereoFrame, match: Match, current: StereoFrame) -> Float64 | None:
    """(4, 4) pose of the current left camera in the reference one from SIFT features of the whole image, if any."""
    shrink = _shrink(reference.camera, _FEATURE_WIDTH)
    with ThreadPoolExecutor(max_workers=1) as thread:  # one image each: this is a frame that is late already
        other = thread.submit(_features, current, shrink)
        pixel, descriptors = _features(reference, shrink)
        target, target_descriptors = other.result()
    if len(pixel) < _MIN_INLIERS or len(target) < _MIN_INLIERS:
        return None
    pairs = cv2.BFMatcher(cv2.NORM_L2).knnMatch(descriptors, target_descriptors, k=2)
    good = np.array(
        [(p[0].queryIdx, p[0].trainIdx) for p in pairs if len(p) == 2 and p[0].distance < _RATIO * p[1].distance]
    )
    if len(good) < _MIN_INLIERS:
        return None
    points, usable = _points(reference.camera, match, pixel[good[:, 0]])
    return _fit(reference.camera, points, target[good[:, 1]][usable], share=0.0)


def same_start(frame: StereoFrame, match: Match, first: Float64, second: Float64) -> bool:
    """Whether a dense search from a frame would start in about the same place under two (4, 4) motions."""
    step = max(1, frame.camera.width // _PLACES)
    v, u = (
        axis.ravel() for axis in np.mgrid[step // 2 : frame.camera.height : step, step // 2 : frame.camera.width : step]
    )
    points, _ = _points(frame.camera, match, np.column_stack((u, v)).astype(np.float64))
    if not len(points):
        return False
    places = []
    for motion in (first, second):
        moved = (points - motion[:3, 3]) @ motion[:3, :3]
        places.append(moved[:, :2] / np.maximum(moved[:, 2:], 0.1 * points[:, 2:]))
    apart = np.linalg.norm((places[0] - places[1]) * (frame.camera.fx, frame.camera.fy), axis=1)
    return bool(np.median(apart) < _NEAR * _shrink(frame.camera))


def _tracked(
    reference: StereoFrame, match: Match, current: StereoFrame, predicted: Float64
) -> tuple[Float64, Float64, Float64] | None:
    """(N, 3) points of the reference, metres, and (N, 2) pixels of the current image: as predicted, and as tracked."""
    camera, shrink = reference.camera, _shrink(reference.camera)
    before, after = (shrunk(frame.grey[0], shrink) for frame in (reference, current))
    where = usable_pixels(reference, *before.shape[::-1])
    corners = cv2.goodFeaturesToTrack(before, _CORNERS, _QUALITY, _SPACING, mask=where)
    if corners is None:
        return None
    pixel = (corners.reshape(-1, 2) + 0.5) * shrink - 0.5
    points, usable = _points(camera, match, pixel.astype(np.float64))
    moved = (points - predicted[:3, 3]) @ predicted[:3, :3]
    ahead = moved[:, 2] > 0.1 * points[:, 2]
    points, moved, start = points[ahead], moved[ahead], corners.reshape(-1, 2)[usable][ahead]
    if len(points) < _MIN_INLIERS:
        return None
    expected = pixels(camera, moved)
    guess = ((expected + 0.5) / shrink - 0.5).astype(np.float32)
    inside = ((guess >= 0) & (guess <= np.array(before.shape[::-1]) - 1)).all(axis=1)
    points, expected, start, guess = points[inside], expected[inside], start[inside], guess[inside]
    if len(points) < _MIN_INLIERS:
        return None
    found, status, _ = cv2.calcOpticalFlowPyrLK(
        before,
        after,
        start,
        guess.copy(),
        winSize=_WINDOW,
        maxLevel=_LEVELS,
        criteria=_CONVERGED,
        flags=cv2.OPTFLOW_USE_INITIAL_FLOW,
    )
    good = status.ravel() == 1
    if good.sum() < _MIN_INLIERS:
        return None
    return points[good], expected[good], (found[good].astype(np.float64) + 0.5) * shrink - 0.5


def _shrink(camera: StereoCamera, columns: int = _WIDTH) -> int:
    """By what whole number an image is made smaller, to have no more than so many columns."""
    return max(1, -(-camera.width // columns))


def _points(camera: StereoCamera, match: Match, pixel: Float64) -> tuple[Float64, npt.NDArray[np.bool_]]:
    """(M, 3) points, metres, of those of (N, 2) pixels whose depth is known, and (N,) which those are."""
    disparity, variance = bilinear((match.disparity, match.disparity_var), pixel)
    d = disparity - camera.disparity_offset
    usable = (d >= _MIN_DISPARITY) & (variance < (_CERTAIN * d) ** 2)
    return rays(camera, pixel[usable]) * camera.depth(disparity[usable])[:, None], usable


def _features(frame: StereoFrame, shrink: int) -> tuple[Float64, Float32]:
    """(N, 2) pixels of the left image and (N, 128) descriptors of features that were found in it, shrunk."""
    image = shrunk(frame.grey[0], shrink)
    sift = cv2.SIFT.create(nfeatures=_FEATURES, contrastThreshold=_CONTRAST)
    keypoints, descriptors = sift.detectAndCompute(image, usable_pixels(frame, *image.shape[::-1]))
    pixel = (np.array([k.pt for k in keypoints], dtype=np.float64).reshape(-1, 2) + 0.5) * shrink - 0.5
    return pixel, np.asarray(descriptors if descriptors is not None else np.empty((0, 128)), dtype=np.float32)


def _fit(camera: StereoCamera, points: Float64, target: Float64, share: float = _MIN_SHARE) -> Float64 | None:
    """PnP with RANSAC on (N, 3) points and their (N, 2) pixels; None if fewer than a share of them agree."""
    if len(points) < _MIN_INLIERS:
        return None
    cv2.setRNGSeed(0)
    found, rotation, translation, inliers = cv2.solvePnPRansac(
        points, target, camera.K, None, iterationsCount=300, reprojectionError=_REPROJECTION, confidence=0.999
    )
    if not found or inliers is None or len(inliers) < max(_MIN_INLIERS, share * len(points)):
        return None
    matrix = cv2.Rodrigues(rotation)[0]
    motion = inverse(
        transform(np.asarray(matrix, dtype=np.float64), np.asarray(translation, dtype=np.float64).reshape(3))
    )
    return motion if np.isfinite(motion).all() else None
