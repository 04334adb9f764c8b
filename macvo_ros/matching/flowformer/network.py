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

"""FlowFormerCov: the matching network of the paper (III-A and its appendix on the network)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import nn

from macvo_ros.errors import ImageError
from macvo_ros.matching.flowformer.cost_encoder import MemoryEncoder
from macvo_ros.matching.flowformer.decoder import MemoryDecoder, Refinement
from macvo_ros.matching.flowformer.twins import ImageEncoder

STRIDE = 8
SMALLEST = 32


class Encoded(NamedTuple):
    """What is computed once for an image and reused for each pair it is part of.

    features: (B, 256, h, w) for matching. context: (B, 256, h, w), None for an image that is only a target.
    """

    features: torch.Tensor
    context: torch.Tensor | None


def padding(height: int, width: int) -> tuple[int, int, int, int]:
    """Left, right, top, bottom pixels that bring an image to multiples of 8, shared evenly."""
    across, down = -width % STRIDE, -height % STRIDE
    return across // 2, across - across // 2, down // 2, down - down // 2


def crop(maps: torch.Tensor, height: int, width: int) -> torch.Tensor:
    """Undo the padding: (..., H', W') to (..., height, width)."""
    left, _, top, _ = padding(height, width)
    return maps[..., top : top + height, left : left + width]


class FlowFormerCov(nn.Module):
    """FlowFormer (Huang et al. 2022) with MAC-VO's covariance decoder; 19 157 555 parameters under the authors' names.

    The result for a pair does not depend on what else is in the batch.
    """

    def __init__(self, iterations: int = 12) -> None:
        super().__init__()
        if not 1 <= iterations <= 12:
            raise ValueError(f"iterations: expected 1 to 12, got {iterations}")
        self.iterations = iterations
        self.memory_encoder = MemoryEncoder()
        self.memory_decoder = MemoryDecoder()
        self.context_encoder = ImageEncoder()

    def encode(self, image: torch.Tensor, with_context: bool = True) -> Encoded:
        """Image (B, 3, H, W), RGB in [0, 1], to its features and context at stride 8."""
        if min(image.shape[-2:]) < SMALLEST:
            raise ImageError(
                f"image is {image.shape[-1]}x{image.shape[-2]}; the network needs {SMALLEST} pixels a side at least"
            )
        padded = F.pad(2 * image - 1, padding(*image.shape[-2:]), mode="replicate")
        features = self.memory_encoder.features(padded)
        return Encoded(features, self.context_encoder(padded) if with_context else None)

    def refinements(self, source: Encoded, target: Encoded) -> Iterator[Refinement]:
        """The states of all iterations, from an image with context to another."""
        if source.context is None:
            raise ValueError("the first image of a pair needs its context: encode it with with_context=True")
        memory, cost = self.memory_encoder(source.features, target.features, source.context)
        constants, state = self.memory_decoder.start(memory, cost, source.context)
        for _ in range(self.iterations):
            state = self.memory_decoder(constants, state)
            yield state

    def match(self, source: Encoded, target: Encoded) -> tuple[torch.Tensor, torch.Tensor]:
        """Flow (B, 2, 8h, 8w), pixels, from source to target and its variance exp(2 s), pixels^2, padded size."""
        for state in self.refinements(source, target):
            last = state
        flow, log_sigma = self.memory_decoder.full_size(last)
        return flow, torch.exp(2 * log_sigma)

    def forward(self, image1: torch.Tensor, image2: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Two images (B, 3, H, W), RGB in [0, 1], to flow and variance from the first to the second.

        Each (B, 2, H, W), channels (u, v), pixels and pixels^2.
        """
        height, width = image1.shape[-2:]
        flow, variance = self.match(self.encode(image1), self.encode(image2, with_context=False))
        return crop(flow, height, width), crop(variance, height, width)
