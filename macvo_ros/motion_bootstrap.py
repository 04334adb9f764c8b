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

"""A first guess of a large motion, from sparse features: where no velocity is known yet, or the known one misled.

Dense matchers look near where they are told to. Binary features (ORB) are compared over the whole image instead, and
the motion is fitted with RANSAC to their depths in the reference frame. It only seeds the real estimate; none of its
error enters a pose. (The paper seeds with TartanVO, a network of its own.)
"""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt
import torch

from macvo_ros.camera import StereoCamera
from macvo_ros.covariance import rays
from macvo_ros.frame import Image, StereoFrame
from macvo_ros.interpolation import bilinear
from macvo_ros.se3 import inverse, transform

Float64 = npt.NDArray[np.float64]

_FEATURES = 1500
_RATIO = 0.85
_REPROJECTION = 3.0
_MIN_INLIERS = 20
_MIN_DISPARITY = 1.0


def bootstrap_motion(reference: StereoFrame, disparity: torch.Tensor, current: StereoFrame) -> Float64 | None:
    """(4, 4) pose of the current left camera in the reference one, or None if too few features agree.

    disparity: (H, W) of the reference frame, pixels. Deterministic.
    """
    orb = cv2.ORB.create(nfeatures=_FEATURES, fastThreshold=7)
    pixel, descriptors = _features(orb, reference.left)
    target, target_descriptors = _features(orb, current.left)
    if len(pixel) < _MIN_INLIERS or len(target) < _MIN_INLIERS:
        return None
    pairs = cv2.BFMatcher(cv2.NORM_HAMMING).knnMatch(descriptors, target_descriptors, k=2)
    good = np.array(
        [(p[0].queryIdx, p[0].trainIdx) for p in pairs if len(p) == 2 and p[0].distance < _RATIO * p[1].distance]
    )
    if len(good) < _MIN_INLIERS:
        return None
    pixel, target = pixel[good[:, 0]], target[good[:, 1]]
    return _fit(reference.camera, pixel, bilinear((disparity,), pixel)[0], target)


def _features(orb: cv2.ORB, image: Image) -> tuple[Float64, npt.NDArray[np.uint8]]:
    keypoints, descriptors = orb.detectAndCompute(image, None)
    pixel = np.array([k.pt for k in keypoints], dtype=np.float64).reshape(-1, 2)
    return pixel, np.asarray(descriptors if descriptors is not None else np.empty((0, 32)), dtype=np.uint8)


def _fit(camera: StereoCamera, pixel: Float64, disparity: Float64, target: Float64) -> Float64 | None:
    """PnP with RANSAC on (N, 2) pixels with disparities (N,) and their (N, 2) matches."""
    d = disparity - camera.disparity_offset
    usable = d >= _MIN_DISPARITY
    if usable.sum() < _MIN_INLIERS:
        return None
    points = rays(camera, pixel[usable]) * (camera.fx * camera.baseline / d[usable])[:, None]
    cv2.setRNGSeed(0)
    found, rotation, translation, inliers = cv2.solvePnPRansac(
        points, target[usable], camera.K, None, iterationsCount=300, reprojectionError=_REPROJECTION, confidence=0.999
    )
    if not found or inliers is None or len(inliers) < _MIN_INLIERS:
        return None
    matrix = cv2.Rodrigues(rotation)[0]
    motion = inverse(
        transform(np.asarray(matrix, dtype=np.float64), np.asarray(translation, dtype=np.float64).reshape(3))
    )
    return motion if np.isfinite(motion).all() else None
