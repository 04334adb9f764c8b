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

"""Cost maps to tokens: a few strided convolutions over each source pixel's map of matching costs."""

from __future__ import annotations

from typing import cast

import torch
import torch.nn.functional as F
from torch import nn

from macvo_ros.matching.flowformer.position_code import pixel_grid, sine_code

PATCH = 8
CODE = 64


class CostEmbedding(nn.Module):
    """One cost map (h, w) to (h/8 * w/8) tokens of 128 channels, with the position of each patch mixed in.

    The position code is the same for every map, so its share of the first 1x1 convolution is computed once per call
    and not once per map (the authors concatenate it to each map).
    """

    def __init__(self, dim: int = 128) -> None:
        super().__init__()
        self.proj = nn.Sequential(
            nn.Conv2d(1, dim // 8, 6, stride=2, padding=2),
            nn.ReLU(),
            nn.Conv2d(dim // 8, dim // 4, 6, stride=2, padding=2),
            nn.ReLU(),
            nn.Conv2d(dim // 4, dim // 2, 6, stride=2, padding=2),
        )
        self.ffn_with_coord = nn.Sequential(nn.Conv2d(dim, dim, 1), nn.ReLU(), nn.Conv2d(dim, dim, 1))
        self.norm = nn.LayerNorm(dim)

    def forward(self, cost: torch.Tensor) -> torch.Tensor:
        """Cost maps (N, 1, h, w) to tokens (N, ceil(h/8) * ceil(w/8), 128)."""
        height, width = cost.shape[-2:]
        cost = F.pad(cost, (0, -width % PATCH, 0, -height % PATCH))
        maps = self.proj(cost)
        first, second = cast(nn.Conv2d, self.ffn_with_coord[0]), cast(nn.Conv2d, self.ffn_with_coord[2])
        grid = pixel_grid(maps.shape[-2], maps.shape[-1], maps.device, step=PATCH, start=PATCH / 2)
        weight = first.weight.flatten(1)
        content = weight.shape[1] - CODE
        position = F.linear(sine_code(grid, CODE).flatten(0, 1), weight[:, content:], first.bias)
        tokens = F.linear(maps.flatten(2).transpose(1, 2), weight[:, :content]) + position
        tokens = F.linear(F.relu(tokens), second.weight.flatten(1), second.bias)
        return cast(torch.Tensor, self.norm(tokens))
