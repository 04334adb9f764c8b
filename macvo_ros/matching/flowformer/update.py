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

"""One refinement of flow and of its uncertainty: motion features, global aggregation, GRUs, heads (paper Fig. 3)."""

from __future__ import annotations

from typing import cast

import torch
import torch.nn.functional as F
from torch import nn

from macvo_ros.matching.flowformer.gru import HIDDEN, SeparableGRU


class MotionEncoder(nn.Module):
    """Costs (B, 145, h, w) and flow (B, 2, h, w) to motion features (B, 128, h, w), the last two of them the flow."""

    def __init__(self) -> None:
        super().__init__()
        self.convc1 = nn.Conv2d(145, 256, 1)
        self.convc2 = nn.Conv2d(256, 192, 3, padding=1)
        self.convf1 = nn.Conv2d(2, 128, 7, padding=3)
        self.convf2 = nn.Conv2d(128, 64, 3, padding=1)
        self.conv = nn.Conv2d(256, 126, 3, padding=1)

    def forward(self, flow: torch.Tensor, cost: torch.Tensor) -> torch.Tensor:
        """Flow in pixels at stride 8."""
        seen = F.relu(self.convc2(F.relu(self.convc1(cost))))
        moved = F.relu(self.convf2(F.relu(self.convf1(flow))))
        motion = F.relu(self.conv(torch.cat([seen, moved], dim=1)))
        return torch.cat([motion, flow.to(motion.dtype)], dim=1)


class ContextAttention(nn.Module):
    """How much each pixel looks like each other by context (GMA, Jiang et al. 2021; one head, content only)."""

    def __init__(self) -> None:
        super().__init__()
        self.to_qk = nn.Conv2d(HIDDEN, 2 * HIDDEN, 1, bias=False)

    def forward(self, inp: torch.Tensor) -> torch.Tensor:
        """Context (B, 128, h, w) to row-stochastic weights (B, h*w, h*w)."""
        query, key = self.to_qk(inp).flatten(2).chunk(2, dim=1)
        return torch.softmax((query * HIDDEN**-0.5).transpose(1, 2) @ key, dim=-1)


class Aggregator(nn.Module):
    """Motion of pixels with a similar context, so that an occluded pixel moves with its surface."""

    def __init__(self) -> None:
        super().__init__()
        self.to_v = nn.Conv2d(HIDDEN, HIDDEN, 1, bias=False)
        self.gamma = nn.Parameter(torch.zeros(1))

    def forward(self, weights: torch.Tensor, motion: torch.Tensor) -> torch.Tensor:
        """Weights (B, h*w, h*w) and motion features (B, 128, h, w) to global motion features (B, 128, h, w)."""
        gathered = self.to_v(motion).flatten(2) @ weights.transpose(1, 2)
        return cast(torch.Tensor, motion + self.gamma * gathered.view(motion.shape))


class FlowHead(nn.Module):
    """Hidden state (B, 128, h, w) to a flow increment (B, 2, h, w), pixels at stride 8."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(HIDDEN, 256, 3, padding=1)
        self.conv2 = nn.Conv2d(256, 2, 3, padding=1)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """See the class."""
        return cast(torch.Tensor, self.conv2(F.relu(self.conv1(hidden))))


class CovarianceHead(nn.Module):
    """Hidden state (B, 128, h, w) to an increment of log sigma / 8 (B, 2, h, w)."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(HIDDEN, 256, 3, padding=1)
        self.conv2 = nn.Conv2d(256, 128, 3, padding=1)
        self.conv3 = nn.Conv2d(128, 64, 3, padding=1)
        self.conv4 = nn.Conv2d(64, 2, 3, padding=1)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """See the class. There is no activation between the second and the third convolution."""
        return cast(torch.Tensor, self.conv4(F.relu(self.conv3(self.conv2(F.relu(self.conv1(hidden)))))))


def upsampling_mask() -> nn.Sequential:
    """Layers from a hidden state to the 576 logits (before the factor 0.25) of the convex upsampling."""
    return nn.Sequential(nn.Conv2d(HIDDEN, 256, 3, padding=1), nn.ReLU(), nn.Conv2d(256, 576, 1))


class FlowUpdate(nn.Module):
    """The layers that refine flow."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = MotionEncoder()
        self.gru = SeparableGRU()
        self.flow_head = FlowHead()
        self.mask = upsampling_mask()
        self.aggregator = Aggregator()


class CovarianceUpdate(nn.Module):
    """The layers that refine the uncertainty: the branch that MAC-VO adds to FlowFormer and trains."""

    def __init__(self) -> None:
        super().__init__()
        self.gru = SeparableGRU()
        self.cov_head = CovarianceHead()
        self.mask = upsampling_mask()


def upsample(maps: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Convex upsampling: (B, 2, h, w), logits (B, 576, h, w) to 8 times convex combinations, (B, 2, 8h, 8w)."""
    batch, channels, height, width = maps.shape
    weights = torch.softmax(0.25 * mask.float().view(batch, 1, 9, 64, height, width), dim=2)
    neighbours = F.unfold(8 * maps, 3, padding=1).view(batch, channels, 9, 1, height, width)
    fine = (weights * neighbours).sum(2).view(batch, channels, 8, 8, height, width)
    return fine.permute(0, 1, 4, 2, 5, 3).reshape(batch, channels, 8 * height, 8 * width)
