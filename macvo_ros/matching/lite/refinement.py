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

"""Sub-pixel refinement as `lite` does it: which patches, and what variance matches have after it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from macvo_ros.geometry.interpolation import bilinear
from macvo_ros.images.frame import StereoFrame
from macvo_ros.matching.lite.features import SCALE, ImageFeatures
from macvo_ros.matching.patch_model import PatchModel, linearise
from macvo_ros.matching.patch_refinement import RefinedCoefficients, Refinement, refine_patches

Float32 = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.float64]

_STRIDE = 3
"""Pixels between the samples of a patch; the images are smoothed so that they miss nothing."""
_RADII = (6, 18)
"""Of the patches that keypoints are refined with, pixels: a 36th of the image's width within these. What lies in a
patch should be about a plane, and in a small image it is farther apart."""

REFINED_STEREO_VARIANCE = RefinedCoefficients(floor=0.01, patch=0.46, dense=0.71)
REFINED_FLOW_VARIANCE = RefinedCoefficients(floor=0.01, patch=0.64, dense=0.64)


def smooth_patches(source: ImageFeatures, pixel: Float64, axes: int) -> PatchModel:
    """Patches around (N, 2) pixels: every third pixel of the smoothed image, which tells as much as all of them.

    On rendered scenes wide patches leave smaller errors than narrow ones, most of all in the dark (chosen in trials, no
    log).
    """
    image = source.smooth()
    radius = int(np.clip(_STRIDE * round(image.shape[1] / 107), *_RADII))
    return linearise(image, pixel, radius, _STRIDE, axes)


def refine_smooth(
    source: ImageFeatures,
    target: ImageFeatures,
    dense: Float32,
    pixel: Float64,
    axes: int,
    foreshortening: Float64 | None = None,
    rows: Float64 | None = None,
) -> Refinement:
    """`refine_patches` of `smooth_patches`."""
    return refine_patches(smooth_patches(source, pixel, axes), target.smooth(), dense, pixel, foreshortening, rows)


def refined_variance(
    coefficients: RefinedCoefficients,
    learned: tuple[torch.Tensor, ...],
    frame: StereoFrame,
    pixel: Float64,
    dense_var: Float64,
    refinement: Refinement,
) -> Float64:
    """(N, A) variance of refined matches at (N, 2) pixels of a frame's full image, in its pixels.

    learned: A maps (h, w) on the network's grid, variance after refinement; dense_var: (N, A) before it. In a reduced
    image the errors of refined matches, in pixels of the full one, grow as the root of the reduction.
    """
    at = (frame.from_full(pixel) - (SCALE - 1) / 2) / SCALE
    learned_var = bilinear(learned, at).T * frame.reduction[: dense_var.shape[1]]
    variance = coefficients.variance(learned_var, refinement)
    return np.where(refinement.ok[:, None], variance, dense_var)
