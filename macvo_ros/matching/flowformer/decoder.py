"""The recurrent decoder: flow and log sigma from the cost memory, refined in each iteration."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import nn

from macvo_ros.matching.flowformer.cost_lookup import MemoryDecoderLayer, look_up, window_offsets
from macvo_ros.matching.flowformer.gru import HIDDEN, constant_share, input_share
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

    def refine(
        self, memory: torch.Tensor, cost: torch.Tensor, context: torch.Tensor, iterations: int
    ) -> Iterator[Refinement]:
        """Latent tokens (B, h*w, 8, 128), costs (B, h*w, h, w), context (B, 256, h, w) to one state per iteration."""
        update, covariance = self.update_block, self.cov_update
        hidden, inp = self.proj(context).split(HIDDEN, dim=1)
        hidden, inp = torch.tanh(hidden), torch.relu(inp)
        cov_hidden = hidden
        attention = self.att(inp)
        key, value = self.decoder_layer.cross_attend.memory(memory)
        flow_constant, cov_constant = constant_share(update.gru, inp), constant_share(covariance.gru, inp)
        height, width = context.shape[-2:]
        home = pixel_grid(height, width, context.device).permute(2, 0, 1)[None]
        flow = torch.zeros_like(home).repeat(context.shape[0], 1, 1, 1)
        log_sigma = torch.zeros_like(flow)
        for _ in range(iterations):
            flow = flow.detach()  # gradients stop here as in RAFT: each iteration learns from its own increment
            matches = home + flow
            seen = look_up(cost, matches, self.delta)
            remembered = self.decoder_layer(self.flow_token_encoder(seen), key, value, matches)
            motion = update.encoder(flow, torch.cat([remembered, seen.to(remembered.dtype)], dim=1))
            moving = torch.cat([motion, update.aggregator(attention, motion)], dim=1)
            hidden = update.gru.step(hidden, input_share(update.gru, moving, flow_constant))
            cov_hidden = covariance.gru.step(cov_hidden, input_share(covariance.gru, moving, cov_constant))
            flow = flow + update.flow_head(hidden).float()
            log_sigma = log_sigma + covariance.cov_head(cov_hidden).float()
            yield Refinement(flow, log_sigma, hidden, cov_hidden)

    def full_size(self, state: Refinement) -> tuple[torch.Tensor, torch.Tensor]:
        """Flow in pixels and log sigma (log pixels), each (B, 2, 8h, 8w).

        log sigma goes through the same operator as flow, including its factor 8, as in the authors' network.
        """
        flow = upsample(state.flow, self.update_block.mask(state.hidden))
        return flow, upsample(state.log_sigma, self.cov_update.mask(state.cov_hidden))
