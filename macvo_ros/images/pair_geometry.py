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

"""Is a stereo pair rectified, and the right way round? From features that are matched over the whole image.

The odometry's own search is bound to rows and cannot see an error that is larger than its window. SIFT features are
free: of a rectified pair their matches lie in the same row, and the right one lies to the left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from macvo_ros.images.frame import Image

_FEATURES, _RATIO = 1000, 0.75
"""SIFT: how many, and the distance of the best match over that of the second best. Chosen; what
comes out with them: `python -m bench.pair_geometry`."""
_WIDEST = 1280
"""Columns above which images are halved, for time; chosen."""


@dataclass(frozen=True)
class PairGeometry:
    """What features say of a few pairs.

    matches: how many were found. vertical: median distance of matches from their row, pixels. offset: median of how far
    the right one is below the left one, pixels. backwards: the part (0 to 1) of the matches that lies to the right in
    the right image by more than a pixel, where nothing of a rectified pair lies.
    """

    matches: int
    vertical: float
    offset: float
    backwards: float


def pair_geometry(pairs: Sequence[tuple[Image, Image]]) -> PairGeometry:
    """Measure pairs of left and right images, (H, W) grey or (H, W, 3) RGB uint8."""
    shifts = [np.empty((0, 2))] + [_shifts(left, right) for left, right in pairs]
    shift = np.concatenate(shifts)
    if not len(shift):
        return PairGeometry(0, float("nan"), float("nan"), float("nan"))
    return PairGeometry(
        matches=len(shift),
        vertical=float(np.median(np.abs(shift[:, 1]))),
        offset=float(np.median(shift[:, 1])),
        backwards=float(np.mean(shift[:, 0] > 1.0)),
    )


def _shifts(left: Image, right: Image) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """(N, 2) where the matches of left features lie in the right image, relative to them, pixels."""
    scale = 2 if left.shape[1] > _WIDEST else 1
    sift = cv2.SIFT.create(nfeatures=_FEATURES)
    found = [sift.detectAndCompute(_grey(image, scale), None) for image in (left, right)]
    (points, descriptors), (others, other_descriptors) = found
    if len(points) < 2 or len(others) < 2:
        return np.empty((0, 2))
    pairs = cv2.BFMatcher(cv2.NORM_L2).knnMatch(descriptors, other_descriptors, k=2)
    good = [best for best, second in pairs if best.distance < _RATIO * second.distance]
    shifts = [np.subtract(others[match.trainIdx].pt, points[match.queryIdx].pt) for match in good]
    return scale * np.array(shifts, dtype=np.float64).reshape(-1, 2)


def _grey(image: Image, scale: int) -> Image:
    grey = image if image.ndim == 2 else cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)
    size = grey.shape[1] // scale, grey.shape[0] // scale
    return np.asarray(grey if scale == 1 else cv2.resize(grey, size, interpolation=cv2.INTER_AREA))
