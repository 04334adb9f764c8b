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

"""Perspective inside a patch: how a plane in the world is foreshortened from one frame to the next.

Let s(x) = z' / z be a point's depth in the current frame over that in the reference, at reference pixel x. For a rigid
motion q = R p + t and disparity d = fx b / z it is

    s = R_31 (u - cx) / fx + R_32 (v - cy) / fy + R_33 + t_z d / (fx b),

and on a plane d is affine in the pixel, so s is too: s(x + o) = s (1 + g . o). The plane's homography then takes an
offset o from a pixel to  J o / (1 + g . o)  from where that pixel went, J its Jacobian: g is all that an affine warp
lacks. On ground that rushes by it is what biases a patch: its near part grows more than its far part.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.geometry.se3 import inverse
from macvo_ros.images.frame import StereoFrame
from macvo_ros.matching.patch_refinement import fitted_plane

Float32 = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.float64]


def expected_foreshortening(
    reference: StereoFrame, motion: Float64 | None, to_right: Float32, pixel: Float64
) -> Float64 | None:
    """`foreshortening` around (N, 2) pixels of the full image, of planes through a dense stereo match.

    to_right: (H, W, 1) the disparity's opposite, pixels of the frame that was matched; None where no motion is known.
    """
    if motion is None:
        return None
    full = reference.full.camera
    reduction = np.array((full.width, full.height)) / np.array(to_right.shape[1::-1])
    value, slope, _ = fitted_plane(to_right, np.rint(pixel).astype(np.int64), reduction)
    return foreshortening(full, motion, pixel, -value[:, 0].astype(np.float64), -slope[:, 0].astype(np.float64))


def foreshortening(
    camera: StereoCamera, motion: Float64, pixel: Float64, disparity: Float64, slope: Float64
) -> Float64:
    """(N, 2) g, 1/pixel, of the planes around (N, 2) pixels of the reference's left image.

    motion: (4, 4) pose of the current left camera in the reference one, metres, as expected: an error of some percent
    does little. disparity: (N,) pixels; slope: (N, 2) its change per pixel along u and v.
    """
    turned = inverse(motion)
    toward = turned[2, 3] / (camera.fx * camera.baseline)
    tilt = turned[2, :2] / (camera.fx, camera.fy)
    depth = (pixel - (camera.cx, camera.cy)) @ tilt + turned[2, 2] + toward * (disparity - camera.disparity_offset)
    return np.asarray((tilt + toward * slope) / np.maximum(depth, 0.1)[:, None])
