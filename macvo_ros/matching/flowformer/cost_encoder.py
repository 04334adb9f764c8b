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

"""The cost memory: all-pairs matching costs, compressed to 8 latent tokens for each source pixel."""

from __future__ import annotations

from typing import cast

import torch
from torch import nn

from macvo_ros.matching.flowformer.cost_embedding import CostEmbedding
from macvo_ros.matching.flowformer.latent_attention import LatentMixer, LatentReader
from macvo_ros.matching.flowformer.twins import ImageEncoder
from macvo_ros.matching.flowformer.vertical_attention import VerticalLayer

TOKENS, DIM, HEADS, LAYERS = 8, 128, 8, 3
CHUNK_VALUES = 48
"""Floats alive at once for each value of a cost map while it is embedded (input, first convolution, tokens)."""


def all_pairs_cost(source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Costs (B, h*w, h, w) = <source feature, target feature> of features (B, C, h, w); not divided by sqrt(C).

    Always float32: the decoder interpolates in these maps in all iterations.
    """
    with torch.autocast(source.device.type, enabled=False):
        cost = source.float().flatten(2).transpose(1, 2) @ target.float().flatten(2)
    return cost.view(cost.shape[0], cost.shape[1], target.shape[-2], target.shape[-1])


class CostPerceiver(nn.Module):
    """Cost maps to latent tokens.

    The embedding of cost maps is by far the largest tensor of the network and each source pixel's map is independent of
    the others there, so it runs in chunks of maps that fit into `memory_mb` megabytes (0: all at once).
    """

    def __init__(self) -> None:
        super().__init__()
        self.memory_mb = 64
        self.latent_tokens = nn.Parameter(torch.randn(1, TOKENS, DIM))
        self.patch_embed = CostEmbedding(DIM)
        self.input_layer = LatentReader(DIM, DIM, HEADS)
        self.encoder_layers = nn.ModuleList(LatentMixer(DIM, DIM, HEADS) for _ in range(LAYERS))
        self.vertical_encoder_layers = nn.ModuleList(VerticalLayer(DIM, HEADS) for _ in range(LAYERS))

    def read(self, cost: torch.Tensor) -> torch.Tensor:
        """Cost maps (N, h, w) to latent tokens (N, K, C), chunk by chunk."""
        count, height, width = cost.shape
        if self.memory_mb <= 0:
            return cast(torch.Tensor, self.input_layer(self.latent_tokens, self.patch_embed(cost[:, None])))
        chunk = max(1, self.memory_mb * 2**20 // (4 * CHUNK_VALUES * height * width))
        pieces = [
            self.input_layer(self.latent_tokens, self.patch_embed(part[:, None])) for part in torch.split(cost, chunk)
        ]
        return torch.cat(pieces) if count else cost.new_zeros(0, TOKENS, DIM)

    def forward(self, cost: torch.Tensor, context: torch.Tensor) -> torch.Tensor:
        """Costs (B, h*w, h, w) and context (B, 256, h, w) to latent tokens (B, h*w, K, C)."""
        batch, pixels, height, width = cost.shape
        context = context.permute(0, 2, 3, 1)
        first = self.read(cost.flatten(0, 1))
        tokens = first
        for mixer, vertical in zip(self.encoder_layers, self.vertical_encoder_layers, strict=True):
            maps = mixer(tokens).view(batch, height, width, TOKENS, DIM).permute(0, 3, 1, 2, 4)
            tokens = vertical(maps, context).permute(0, 2, 3, 1, 4).reshape(batch * pixels, TOKENS, DIM)
        return (tokens + first).view(batch, pixels, TOKENS, DIM)


class MemoryEncoder(nn.Module):
    """Image features, and the cost memory of a pair of them."""

    def __init__(self) -> None:
        super().__init__()
        self.feat_encoder = ImageEncoder()
        self.channel_convertor = nn.Conv2d(256, 256, 1, bias=False)
        self.cost_perceiver_encoder = CostPerceiver()

    def features(self, image: torch.Tensor) -> torch.Tensor:
        """Image (B, 3, H, W) in [-1, 1] to features (B, 256, H/8, W/8)."""
        return cast(torch.Tensor, self.channel_convertor(self.feat_encoder(image)))

    def forward(
        self, source: torch.Tensor, target: torch.Tensor, context: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Features and context (B, 256, h, w) to latent tokens (B, h*w, 8, 128) and cost maps (B, h*w, h, w)."""
        cost = all_pairs_cost(source, target)
        return self.cost_perceiver_encoder(cost, context), cost
