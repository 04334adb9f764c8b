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

"""The image encoder: the first two stages of Twins-SVT-large (Chu et al. 2021), stride 8, 256 channels.

Features and context come from two encoders of this shape with weights of their own.
"""

from __future__ import annotations

from typing import cast

import torch
import torch.nn.functional as F
from torch import nn

from macvo_ros.matching.flowformer.attention import attend, from_windows, pad_to_multiple, to_windows

WINDOW = 7


class Mlp(nn.Module):
    """Two linear layers with a GELU between, (..., C) to (..., C)."""

    def __init__(self, dim: int, hidden: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(dim, hidden)
        self.fc2 = nn.Linear(hidden, dim)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Tokens (..., C) to (..., C)."""
        return cast(torch.Tensor, self.fc2(F.gelu(self.fc1(tokens))))


class LocalAttention(nn.Module):
    """Self-attention inside windows of 7x7; the map is zero-padded at the right and the bottom."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        """Maps (B, H, W, C) to (B, H, W, C). Padding pixels take part as keys, as in the authors' network."""
        height, width = maps.shape[1:3]
        padded = pad_to_multiple(maps, WINDOW)
        query, key, value = self.qkv(to_windows(padded, WINDOW)).chunk(3, dim=-1)
        windows = attend(query, key, value, self.heads)
        out = from_windows(windows, WINDOW, padded.shape[1], padded.shape[2])[:, :height, :width]
        return cast(torch.Tensor, self.proj(out))


class GlobalAttention(nn.Module):
    """Attention of every pixel to a map sub-sampled by a strided convolution."""

    def __init__(self, dim: int, heads: int, reduction: int) -> None:
        super().__init__()
        self.heads = heads
        self.q = nn.Linear(dim, dim)
        self.kv = nn.Linear(dim, 2 * dim)
        self.proj = nn.Linear(dim, dim)
        self.sr = nn.Conv2d(dim, dim, reduction, stride=reduction)
        self.norm = nn.LayerNorm(dim)

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        """Maps (B, H, W, C) to (B, H, W, C); rows and columns beyond the last whole patch are not looked at."""
        small = self.norm(self.sr(maps.permute(0, 3, 1, 2)).flatten(2).transpose(1, 2))
        key, value = self.kv(small).chunk(2, dim=-1)
        out = attend(self.q(maps.flatten(1, 2)), key, value, self.heads)
        return cast(torch.Tensor, self.proj(out)).view(maps.shape)


class Block(nn.Module):
    """Pre-norm transformer block: attention, then an MLP of ratio 4."""

    def __init__(self, dim: int, attention: nn.Module) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(dim, eps=1e-6)
        self.attn = attention
        self.norm2 = nn.LayerNorm(dim, eps=1e-6)
        self.mlp = Mlp(dim, 4 * dim)

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        """Maps (B, H, W, C) to (B, H, W, C)."""
        maps = maps + self.attn(self.norm1(maps))
        return cast(torch.Tensor, maps + self.mlp(self.norm2(maps)))


class PatchEmbedding(nn.Module):
    """Non-overlapping patches to tokens."""

    def __init__(self, channels: int, dim: int, patch: int) -> None:
        super().__init__()
        self.proj = nn.Conv2d(channels, dim, patch, stride=patch)
        self.norm = nn.LayerNorm(dim)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """Image (B, channels, H, W) to maps (B, H/patch, W/patch, C)."""
        return cast(torch.Tensor, self.norm(self.proj(image).permute(0, 2, 3, 1)))


class PositionConvolution(nn.Module):
    """Depth-wise 3x3 convolution with identity, which tells a token where it is."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.proj = nn.Sequential(nn.Conv2d(dim, dim, 3, padding=1, groups=dim))

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        """Maps (B, H, W, C) to (B, H, W, C)."""
        return cast(torch.Tensor, maps + self.proj(maps.permute(0, 3, 1, 2)).permute(0, 2, 3, 1))


class TwinsStages(nn.Module):
    """Stage 0: stride 4, 128 channels, 4 heads. Stage 1: stride 8, 256 channels, 8 heads. No final norm."""

    def __init__(self) -> None:
        super().__init__()
        self.patch_embeds = nn.ModuleList([PatchEmbedding(3, 128, 4), PatchEmbedding(128, 256, 2)])
        self.blocks = nn.ModuleList(
            nn.ModuleList([Block(dim, LocalAttention(dim, heads)), Block(dim, GlobalAttention(dim, heads, reduction))])
            for dim, heads, reduction in ((128, 4, 8), (256, 8, 4))
        )
        self.pos_block = nn.ModuleList([PositionConvolution(128), PositionConvolution(256)])

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """Image (B, 3, H, W) in [-1, 1] to (B, 256, H/8, W/8)."""
        maps = image
        for embed, blocks, position in zip(self.patch_embeds, self.blocks, self.pos_block, strict=True):
            local_block, global_block = cast(nn.ModuleList, blocks)
            tokens = global_block(position(local_block(embed(maps))))
            maps = tokens.permute(0, 3, 1, 2)
        return maps


class ImageEncoder(nn.Module):
    """The Twins stages under the name (`svt`) they have in the authors' checkpoint."""

    def __init__(self) -> None:
        super().__init__()
        self.svt = TwinsStages()

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """Image (B, 3, H, W) in [-1, 1], sides multiples of 8, to (B, 256, H/8, W/8)."""
        return cast(torch.Tensor, self.svt(image))
