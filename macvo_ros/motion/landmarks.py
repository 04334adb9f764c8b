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

"""The keypoints of a motion as points in space."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Landmarks:
    """The keypoints of a frame pair with their metric covariance, float64.

    pixel: (N, 2) in the current left image.
    point: (N, 3) metres, left optical frame of the current image.
    covariance: (N, 3, 3) metres^2, same axes.
    match_sigma: (N,) pixels, standard deviation of the match (root of the mean of the two flow variances).
    weight: (N,) robust weight in the pose, 0 (rejected) to 1.
    inlier: (N,) bool.
    """

    pixel: Float64
    point: Float64
    covariance: Float64
    match_sigma: Float64
    weight: Float64
    inlier: npt.NDArray[np.bool_]
