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

"""Attention of the latent cost tokens: to the embedded cost maps, and among themselves."""

from __future__ import annotations

from typing import cast

import torch
import torch.nn.functional as F
from torch import nn

from macvo_ros.matching.flowformer.attention import attend


class LatentLayer(nn.Module):
    """The layers that reading and mixing have in common: two norms, q, k, v, output projection and feed-forward."""

    def __init__(self, dim: int, memory_dim: int, heads: int, proj_in: int | None = None) -> None:
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(dim)
        self.norm2 = nn.LayerNorm(dim)
        self.q = nn.Linear(dim, dim)
        self.k = nn.Linear(memory_dim, dim)
        self.v = nn.Linear(memory_dim, dim)
        self.proj = nn.Linear(proj_in or dim, dim)
        self.ffn = nn.Sequential(nn.Linear(dim, dim), nn.GELU(), nn.Identity(), nn.Linear(dim, dim))

    def feed_forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Tokens (..., C) to (..., C), with the residual."""
        return cast(torch.Tensor, tokens + self.ffn(self.norm2(tokens)))


class LatentReader(LatentLayer):
    """Learned latent tokens read each cost map (Perceiver style).

    All maps are asked the same questions, so keys and values are never formed: the key projection is folded into the
    query and the value projection is applied to the attended tokens. Same sums as the authors', about half the work.
    """

    def forward(self, latent: torch.Tensor, memory: torch.Tensor) -> torch.Tensor:
        """Latent tokens (1, K, C) and map tokens (N, M, C) to (N, K, C)."""
        count, dim = latent.shape[1:]
        size = dim // self.heads
        query = self.q(self.norm1(latent))[0].view(count, self.heads, size) * size**-0.5
        key_weight = self.k.weight.view(self.heads, size, dim)
        questions = torch.einsum("khs,hsc->hkc", query, key_weight).flatten(0, 1)
        # A key's bias shifts all logits of one query alike, and the softmax does not see it.
        weights = torch.softmax(F.linear(memory, questions), dim=1)
        answers = (weights.transpose(1, 2) @ memory).view(-1, self.heads, count, dim)
        value_weight = self.v.weight.view(self.heads, size, dim)
        read = torch.einsum("nhkc,hsc->nkhs", answers, value_weight).flatten(2) + self.v.bias
        return self.feed_forward(latent + self.proj(read))


class LatentMixer(LatentLayer):
    """Self-attention among the K latent tokens of one source pixel."""

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Tokens (N, K, C) to (N, K, C)."""
        normed = self.norm1(tokens)
        mixed = attend(self.q(normed), self.k(normed), self.v(normed), self.heads)
        return self.feed_forward(tokens + self.proj(mixed))
