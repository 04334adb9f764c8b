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

"""Attention of latent tokens between source pixels, guided by the context of the first image.

Token k of each pixel forms a map of its own; a local (windowed) and a global (sub-sampled) block move information
across it. Context is concatenated to queries and keys but not to values. The authors tile the contexts of a batch in
the wrong order, so that pairs in a batch see each other's contexts; here each pair sees its own.
"""

from __future__ import annotations

from typing import cast

import torch
import torch.nn.functional as F
from torch import nn

from macvo_ros.matching.flowformer.attention import attend, from_windows, pad_to_multiple, to_windows
from macvo_ros.matching.flowformer.position_code import pixel_grid, sine_code
from macvo_ros.matching.flowformer.twins import WINDOW, Mlp

CONTEXT = 64


class ContextLinear(nn.Linear):
    """A linear layer on [token, context] whose context share is computed once for all K tokens of a pixel."""

    def split(self, tokens: torch.Tensor, context: torch.Tensor) -> torch.Tensor:
        """W [token, context], without bias: tokens (B, K, H, W, C), context (B, H, W, 64) to (B, K, H, W, C')."""
        own = self.in_features - CONTEXT
        return F.linear(tokens, self.weight[:, :own]) + F.linear(context, self.weight[:, own:])[:, None]


class LocalContextAttention(nn.Module):
    """Windowed attention (7x7) with context in queries and keys, and the position in the window added to both."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.context_proj = nn.Linear(256, CONTEXT)
        self.q = ContextLinear(dim + CONTEXT, dim)
        self.k = ContextLinear(dim + CONTEXT, dim)
        self.v = nn.Linear(dim, dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, tokens: torch.Tensor, context: torch.Tensor) -> torch.Tensor:
        """Tokens (B, K, H, W, C) and context (B, H, W, 256) to (B, K, H, W, C)."""
        height, width = tokens.shape[2:4]
        context = self.context_proj(context)
        position = sine_code(pixel_grid(WINDOW, WINDOW, tokens.device).flatten(0, 1), self.q.in_features)

        def windows(maps: torch.Tensor, offset: torch.Tensor) -> torch.Tensor:
            return to_windows(pad_to_multiple(maps, WINDOW).flatten(0, 1), WINDOW) + offset

        query = windows(self.q.split(tokens, context), self.q(position))
        key = windows(self.k.split(tokens, context), self.k(position))
        value = windows(F.linear(tokens, self.v.weight), self.v.bias)
        attended = attend(query, key, value, self.heads)
        maps = from_windows(attended, WINDOW, height + -height % WINDOW, width + -width % WINDOW)
        return cast(torch.Tensor, self.proj(maps[:, :height, :width])).view(tokens.shape)


class GlobalContextAttention(nn.Module):
    """Attention of every pixel to a map sub-sampled 4 times; context in queries and keys."""

    def __init__(self, dim: int, heads: int, reduction: int = 4) -> None:
        super().__init__()
        self.heads, self.reduction = heads, reduction
        self.context_proj = nn.Linear(256, CONTEXT)
        self.q = ContextLinear(dim + CONTEXT, dim)
        self.k = nn.Linear(dim, dim)
        self.v = nn.Linear(dim, dim)
        self.proj = nn.Linear(dim, dim)
        self.sr_key = nn.Conv2d(dim + CONTEXT, dim, reduction, stride=reduction)
        self.sr_value = nn.Conv2d(dim, dim, reduction, stride=reduction)
        self.norm = nn.LayerNorm(dim)

    def forward(self, tokens: torch.Tensor, context: torch.Tensor) -> torch.Tensor:
        """Tokens (B, K, H, W, C) and context (B, H, W, 256) to (B, K, H, W, C)."""
        batch, count, height, width, dim = tokens.shape
        context = self.context_proj(context)
        position = sine_code(pixel_grid(height, width, tokens.device), self.q.in_features)
        query = self.q.split(tokens, context) + self.q(position)

        maps = pad_to_multiple(tokens, self.reduction).flatten(0, 1).permute(0, 3, 1, 2)
        guide = pad_to_multiple(context, self.reduction).permute(0, 3, 1, 2)
        weight = self.sr_key.weight
        guided = F.conv2d(guide, weight[:, dim:], self.sr_key.bias, stride=self.reduction)[:, None]
        small = F.conv2d(maps, weight[:, :dim], stride=self.reduction)
        small = small.view(batch, count, *small.shape[1:]) + guided
        rows, columns = small.shape[-2:]
        grid = pixel_grid(rows, columns, tokens.device, step=self.reduction).flatten(0, 1)
        keys = self.norm(small.flatten(0, 1).flatten(2).transpose(1, 2))
        key = self.k(keys + sine_code(grid, dim))
        value = self.v(self.norm(self.sr_value(maps).flatten(2).transpose(1, 2)))
        attended = attend(query.flatten(0, 1).flatten(1, 2), key, value, self.heads)
        return cast(torch.Tensor, self.proj(attended)).view(tokens.shape)


class ContextBlock(nn.Module):
    """Pre-norm transformer block whose attention takes a context."""

    def __init__(self, dim: int, attention: nn.Module) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(dim)
        self.attn = attention
        self.norm2 = nn.LayerNorm(dim)
        self.mlp = Mlp(dim, 4 * dim)

    def forward(self, tokens: torch.Tensor, context: torch.Tensor) -> torch.Tensor:
        """Tokens (B, K, H, W, C) and context (B, H, W, 256) to (B, K, H, W, C)."""
        tokens = tokens + self.attn(self.norm1(tokens), context)
        return cast(torch.Tensor, tokens + self.mlp(self.norm2(tokens)))


class VerticalLayer(nn.Module):
    """One exchange between source pixels: local block, then global block."""

    def __init__(self, dim: int = 128, heads: int = 8) -> None:
        super().__init__()
        self.local_block = ContextBlock(dim, LocalContextAttention(dim, heads))
        self.global_block = ContextBlock(dim, GlobalContextAttention(dim, heads))

    def forward(self, tokens: torch.Tensor, context: torch.Tensor) -> torch.Tensor:
        """Tokens (B, K, H, W, C) and context (B, H, W, 256) to (B, K, H, W, C)."""
        return cast(torch.Tensor, self.global_block(self.local_block(tokens, context), context))
