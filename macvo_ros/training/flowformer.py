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

"""Training FlowFormerCov's covariance branch on a frozen FlowFormer, as the authors did."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from macvo_ros.matching.flowformer.network import FlowFormerCov, crop
from macvo_ros.matching.weights_file import write_safetensors
from macvo_ros.training.flow_pairs import FlowPairs
from macvo_ros.training.nll import nll, paper_loss, sequence_loss

DECAY = 0.85
"""Weight of an iteration relative to the next one: 0.85 in the authors' code (0.8 in the paper)."""


class CovarianceTraining(nn.Module):
    """The loss of a batch. Only `memory_decoder.cov_update` learns; all else is frozen."""

    def __init__(self, network: FlowFormerCov, decay: float = DECAY) -> None:
        super().__init__()
        self.network = network.requires_grad_(False)
        self.network.memory_decoder.cov_update.requires_grad_(True)
        self.decay = decay

    def forward(
        self, first: torch.Tensor, second: torch.Tensor, truth: torch.Tensor, valid: torch.Tensor
    ) -> torch.Tensor:
        """Images (B, 3, H, W), true flow (B, 2, H, W), valid (B, H, W) to the loss, a scalar."""
        return sequence_loss(self.predictions(first, second), truth, valid, self.decay)

    def predictions(self, first: torch.Tensor, second: torch.Tensor) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Flow and log sigma, (B, 2, H, W) each, after each iteration."""
        source, target = self.network.encode(first), self.network.encode(second, with_context=False)
        states = self.network.refinements(source, target)
        full = [self.network.memory_decoder.full_size(state) for state in states]
        height, width = first.shape[-2:]
        return [(crop(flow, height, width), crop(log_sigma, height, width)) for flow, log_sigma in full]


@torch.no_grad()
def held_out_nll(training: CovarianceTraining, pairs: FlowPairs, device: torch.device, most: int = 50) -> float:
    """Mean negative log-likelihood, nats per axis and pixel, of the last iteration on up to `most` whole pairs."""
    losses = []
    for index in range(min(most, len(pairs))):
        first, second, flow, valid = (tensor[None].to(device) for tensor in pairs[index])
        predicted, log_sigma = training.predictions(first, second)[-1]
        losses.append(float(paper_loss(predicted, log_sigma, flow, valid)))
    return nll(sum(losses) / len(losses))


def write_network(training: CovarianceTraining, path: Path) -> None:
    """The trained network as a checkpoint that the flowformer matcher loads."""
    write_safetensors(path, training.network.state_dict(), {"network": "flowformer_cov", "trained": "macvo_ros"})
