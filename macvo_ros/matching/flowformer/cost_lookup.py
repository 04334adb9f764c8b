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

"""What the decoder looks at in each iteration: costs around the current match, and the latent cost memory."""

from __future__ import annotations

from typing import cast

import torch
import torch.nn.functional as F
from torch import nn

from macvo_ros.matching.flowformer.latent_attention import LatentLayer
from macvo_ros.matching.flowformer.position_code import sine_code

RADIUS = 4
SIDE = 2 * RADIUS + 1


def window_offsets() -> torch.Tensor:
    """Offsets (1, 9, 9, 2) of the look-up: entry [0, i, j] is (i - 4, j - 4) added to (x, y)."""
    steps = torch.arange(-RADIUS, RADIUS + 1, dtype=torch.float32)
    return torch.stack(torch.meshgrid(steps, steps, indexing="ij"), dim=-1)[None]


def look_up(cost: torch.Tensor, matches: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    """Bilinear costs around the matches, zero outside of the map.

    cost: (B, h*w, h, w). matches: (B, 2, h, w) target coordinates (x, y), pixels at stride 8. Returns (B, 81, h, w).
    """
    batch, pixels, height, width = cost.shape
    where = matches.flatten(2).transpose(1, 2).reshape(batch * pixels, 1, 1, 2) + offsets
    # Pixel centres to grid_sample's own coordinates; the same points as align_corners, and defined for a side of 1.
    grid = torch.stack([(2 * where[..., 0] + 1) / width - 1, (2 * where[..., 1] + 1) / height - 1], dim=-1)
    samples = F.grid_sample(cost.view(batch * pixels, 1, height, width), grid, align_corners=False)
    return samples.view(batch, height, width, SIDE * SIDE).permute(0, 3, 1, 2)


class MemoryReader(LatentLayer):
    """Cross attention of one query per pixel to the 8 latent tokens of that pixel."""

    def __init__(self, dim: int = 64, memory_dim: int = 128, heads: int = 8) -> None:
        super().__init__(dim, memory_dim, heads, proj_in=2 * dim)

    def memory(self, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Latent tokens (B, P, K, 128) to keys and values (B, P, K, 64); the same in all iterations."""
        return self.k(tokens), self.v(tokens)

    def forward(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, matches: torch.Tensor
    ) -> torch.Tensor:
        """Query (B, P, 64), keys and values (B, P, K, 64), matches (B, P, 2) in pixels at stride 8, to (B, P, 64)."""
        heads, dim = self.heads, query.shape[-1]
        asked = self.q(self.norm1(query) + sine_code(matches, dim)) * (dim // heads) ** -0.5
        # One query per pixel: products and sums over 8 tokens are cheaper than a batched matrix product.
        split = (*key.shape[:3], heads, dim // heads)
        weights = torch.softmax((asked[:, :, None] * key).view(split).sum(-1), dim=2)
        read = (weights[..., None] * value.view(split)).sum(2).flatten(2)
        return self.feed_forward(query + self.proj(torch.cat([read, query], dim=-1)))


class MemoryDecoderLayer(nn.Module):
    """The memory reader under the name (`cross_attend`) it has in the authors' checkpoint."""

    def __init__(self) -> None:
        super().__init__()
        self.cross_attend = MemoryReader()

    def forward(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, matches: torch.Tensor
    ) -> torch.Tensor:
        """See `MemoryReader.forward`; query and result (B, 64, h, w), matches (B, 2, h, w)."""
        tokens = query.flatten(2).transpose(1, 2)
        read = self.cross_attend(tokens, key, value, matches.flatten(2).transpose(1, 2))
        return cast(torch.Tensor, read.transpose(1, 2).reshape(query.shape))
