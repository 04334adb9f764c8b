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

"""Sub-pixel look-ups in dense maps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch

Float64 = npt.NDArray[np.float64]


def bilinear(maps: Sequence[torch.Tensor], pixel: Float64) -> Float64:
    """Read C maps (H, W) at (N, 2) pixels (u, v); pixel centres are integers, outside is clamped to the edge.

    Returns (C, N) float64 on the CPU.
    """
    height, width = maps[0].shape
    u = np.clip(pixel[:, 0], 0.0, width - 1.0)
    v = np.clip(pixel[:, 1], 0.0, height - 1.0)
    u0 = np.minimum(u.astype(np.int64), max(width - 2, 0))
    v0 = np.minimum(v.astype(np.int64), max(height - 2, 0))
    du, dv = u - u0, v - v0
    right, down = min(1, width - 1), min(1, height - 1) * width
    corners = (v0 * width + u0)[None] + np.array([[0], [right], [down], [down + right]])
    if maps[0].is_cuda:
        index = torch.from_numpy(corners).to(maps[0].device)
        values = torch.stack([torch.take(each, index) for each in maps]).double().cpu().numpy()
    else:  # plain numpy: torch's threads wait for each other on a busy machine
        values = np.stack([each.numpy().reshape(-1).take(corners) for each in maps])
    weights = np.stack(((1 - du) * (1 - dv), du * (1 - dv), (1 - du) * dv, du * dv))
    return np.asarray((values * weights).sum(axis=1))
