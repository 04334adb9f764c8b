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

"""Dense maps at the size of the camera's image, for whoever wants to see them; the odometry itself does not."""

from __future__ import annotations

import cv2
import numpy as np
import torch

from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.matching.matcher import FlowMatch, Match, StereoMatch


def at_full_size(match: Match, camera: StereoCamera) -> Match:
    """Disparity and flow with their variances, in pixels of the camera's image; the match itself if it has that size.

    Variances are those of the pixel that lies nearest; displacements are interpolated.
    """
    height, width = match.disparity.shape
    if (width, height) == (camera.width, camera.height):
        return match
    u, v = camera.width / width, camera.height / height
    stereo = StereoMatch(
        disparity=_enlarged(match.disparity, camera, u, cv2.INTER_LINEAR),
        disparity_var=_enlarged(match.disparity_var, camera, u**2, cv2.INTER_NEAREST),
        row_check=match.row_check,
    )
    if match.temporal is None:
        return Match(stereo)
    flow, variance = match.temporal.flow, match.temporal.flow_var
    both = [_enlarged(axis, camera, scale, cv2.INTER_LINEAR) for axis, scale in zip(flow, (u, v), strict=True)]
    var = [_enlarged(axis, camera, scale**2, cv2.INTER_NEAREST) for axis, scale in zip(variance, (u, v), strict=True)]
    return Match(stereo, FlowMatch(torch.stack(both), torch.stack(var)))


def _enlarged(values: torch.Tensor, camera: StereoCamera, scale: float, kind: int) -> torch.Tensor:
    """A (h, w) map, times scale, as (H, W) of the camera's image."""
    small = np.ascontiguousarray(values.numpy(force=True))
    large = cv2.resize(small, (camera.width, camera.height), interpolation=kind) * np.float32(scale)
    return torch.from_numpy(np.asarray(large, dtype=np.float32))
