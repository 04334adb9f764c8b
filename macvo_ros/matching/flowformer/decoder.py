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

"""The recurrent decoder: flow and log sigma from the cost memory, refined in each iteration."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import nn

from macvo_ros.matching.flowformer.cost_lookup import MemoryDecoderLayer, look_up, window_offsets
from macvo_ros.matching.flowformer.gru import constant_share, input_share
from macvo_ros.matching.flowformer.position_code import pixel_grid
from macvo_ros.matching.flowformer.update import ContextAttention, CovarianceUpdate, FlowUpdate, upsample


class Refinement(NamedTuple):
    """State after an iteration, at stride 8.

    flow: (B, 2, h, w) pixels at stride 8.
    log_sigma: (B, 2, h, w), an eighth of log sigma (pixels at full size).
    hidden, cov_hidden: (B, 128, h, w) states of the two GRUs.
    """

    flow: torch.Tensor
    log_sigma: torch.Tensor
    hidden: torch.Tensor
    cov_hidden: torch.Tensor


class Constants(NamedTuple):
    """What is the same in all iterations.

    cost: (B, h*w, h, w). key, value: (B, h*w, 8, 64) of the latent tokens. attention: (B, h*w, h*w) between pixels.
    flow_share, cov_share: the context's share of the gates of both GRUs, each (B, 384, h, w) for both passes.
    home: (1, 2, h, w) coordinates of the source pixels.
    """

    cost: torch.Tensor
    key: torch.Tensor
    value: torch.Tensor
    attention: torch.Tensor
    flow_share: tuple[torch.Tensor, torch.Tensor]
    cov_share: tuple[torch.Tensor, torch.Tensor]
    home: torch.Tensor


class MemoryDecoder(nn.Module):
    """Refines flow and uncertainty from the cost memory.

    Flow and log sigma are kept in float32 whatever the precision of the layers. Departures from the authors' code, same
    numbers: upsampling masks only where a full-size result is asked for; the context's share of the GRU inputs once.
    """

    delta: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("delta", window_offsets())
        self.flow_token_encoder = nn.Sequential(nn.Conv2d(81, 64, 1), nn.GELU(), nn.Conv2d(64, 64, 1))
        self.proj = nn.Conv2d(256, 256, 1)
        self.decoder_layer = MemoryDecoderLayer()
        self.update_block = FlowUpdate()
        self.att = ContextAttention()
        self.cov_update = CovarianceUpdate()

    def start(self, memory: torch.Tensor, cost: torch.Tensor, context: torch.Tensor) -> tuple[Constants, Refinement]:
        """Latent tokens (B, h*w, 8, 128), costs (B, h*w, h, w), context (B, 256, h, w) to the state at the start."""
        hidden, inp = self.proj(context).chunk(2, dim=1)
        hidden, inp = torch.tanh(hidden), torch.relu(inp)
        key, value = self.decoder_layer.cross_attend.memory(memory)
        home = pixel_grid(context.shape[-2], context.shape[-1], context.device).permute(2, 0, 1)[None]
        constants = Constants(
            cost,
            key,
            value,
            self.att(inp),
            constant_share(self.update_block.gru, inp),
            constant_share(self.cov_update.gru, inp),
            home,
        )
        flow = torch.zeros_like(home).repeat(context.shape[0], 1, 1, 1)
        return constants, Refinement(flow, torch.zeros_like(flow), hidden, hidden)

    def forward(self, constants: Constants, state: Refinement) -> Refinement:
        """One iteration. Gradients do not pass through the flow that came in, as in RAFT."""
        update, covariance = self.update_block, self.cov_update
        flow = state.flow.detach()
        matches = constants.home + flow
        seen = look_up(constants.cost, matches, self.delta)
        remembered = self.decoder_layer(self.flow_token_encoder(seen), constants.key, constants.value, matches)
        motion = update.encoder(flow, torch.cat([remembered, seen.to(remembered.dtype)], dim=1))
        moving = torch.cat([motion, update.aggregator(constants.attention, motion)], dim=1)
        hidden = update.gru.step(state.hidden, input_share(update.gru, moving, constants.flow_share))
        cov_hidden = covariance.gru.step(state.cov_hidden, input_share(covariance.gru, moving, constants.cov_share))
        return Refinement(
            flow + update.flow_head(hidden).float(),
            state.log_sigma + covariance.cov_head(cov_hidden).float(),
            hidden,
            cov_hidden,
        )

    def full_size(self, state: Refinement) -> tuple[torch.Tensor, torch.Tensor]:
        """Flow in pixels and log sigma (log pixels), each (B, 2, 8h, 8w).

        log sigma goes through the same operator as flow, including its factor 8, as in the authors' network.
        """
        flow = upsample(state.flow, self.update_block.mask(state.hidden))
        return flow, upsample(state.log_sigma, self.cov_update.mask(state.cov_hidden))
