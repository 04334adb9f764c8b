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

"""Training the network of `lite` with the paper's negative log-likelihood on the matcher's actual errors."""

from __future__ import annotations

import torch
from torch import nn

from macvo_ros.matching.lite.network import LiteNetwork
from macvo_ros.training.lite_samples import LiteSamples
from macvo_ros.training.nll import paper_loss

LARGEST_ERROR = 20.0
"""Pixels to which errors are clipped: how wrong a lost match is does not matter."""
OUTLIERS = 0.01
"""Share of refined matches that are wrong beyond anything to be seen; the solver's rejection is there for them."""


class LiteTraining(nn.Module):
    """The loss of a batch: Eq. 1 (Gaussian) for dense matches; for refined ones the same with a uniform part.

    Dense sigmas choose keypoints, so they answer for every outlier. Refined sigmas weigh keypoints in the solver, which
    rejects outliers by itself: a hundredth of them may be anywhere within `LARGEST_ERROR` (documented departure from
    Eq. 1, without which that hundredth alone sets the sigma of good matches).
    """

    def __init__(self, network: LiteNetwork) -> None:
        super().__init__()
        self.network = network

    def forward(
        self, evidence: torch.Tensor, refined: torch.Tensor, dense: torch.Tensor, valid: torch.Tensor
    ) -> torch.Tensor:
        """Evidence (B, C, h, w), errors (B, 2, h, w) with nan in `refined` where unknown, valid (B, h, w)."""
        log_sigma = self.network(evidence).float()  # the loss is not for half precision
        clipped = dense.clamp(-LARGEST_ERROR, LARGEST_ERROR)
        gaussian = paper_loss(clipped, log_sigma[:, :2], torch.zeros_like(dense), valid).mean()
        known = torch.isfinite(refined)
        error = torch.where(known, refined, torch.zeros_like(refined)).clamp(-LARGEST_ERROR, LARGEST_ERROR)
        terms = robust_nll(error, log_sigma[:, 2:])
        return gaussian + 2 * (terms * known).sum() / known.sum().clamp(min=1)


def robust_nll(error: torch.Tensor, log_sigma: torch.Tensor) -> torch.Tensor:
    """-2 log((1 - e) N(error; 0, sigma^2) sqrt(2 pi) + e / range): the paper's per-axis term plus outliers."""
    inlier = -0.5 * (error * torch.exp(-log_sigma)).square() - log_sigma
    spread = torch.full_like(inlier, OUTLIERS / (2 * LARGEST_ERROR)).log()
    return -2 * torch.logaddexp(inlier, spread)


@torch.no_grad()
def held_out_loss(training: LiteTraining, samples: LiteSamples, device: torch.device, most: int = 60) -> float:
    """Mean loss on up to `most` whole samples, evenly spread."""
    losses = []
    for index in range(0, len(samples), max(1, len(samples) // most)):
        evidence, refined, dense, valid = (tensor[None].to(device) for tensor in samples[index])
        rows, columns = (size // 2 * 2 for size in valid.shape[-2:])
        losses.append(float(training(*(t[..., :rows, :columns] for t in (evidence, refined, dense, valid)))))
    return sum(losses) / max(len(losses), 1)
