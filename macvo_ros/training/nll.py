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

"""The training loss: how unlikely the true flow is under the predicted Gaussian (paper, III-A, L_cov)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

LARGEST_FLOW = 400.0
"""Pixels; longer true flows are left out, as in RAFT and its descendants."""


def paper_loss(flow: torch.Tensor, log_sigma: torch.Tensor, truth: torch.Tensor, valid: torch.Tensor) -> torch.Tensor:
    """Mean of e^T Sigma^-1 e + log det Sigma over valid pixels, Sigma = diag(exp(2 log_sigma)), per sample (B,).

    flow, truth: (B, 2, H, W) pixels. log_sigma: (B, 2, H, W). valid: (B, H, W) bool. 0 where no pixel is valid.
    """
    used = (valid & (truth.square().sum(1) < LARGEST_FLOW**2))[:, None]
    terms = (flow - truth).square() * torch.exp(-2 * log_sigma) + 2 * log_sigma
    total = torch.where(used, terms, torch.zeros_like(terms)).sum((1, 2, 3))
    return total / used.sum((1, 2, 3)).clamp(min=1)


def sequence_loss(
    predictions: Sequence[tuple[torch.Tensor, torch.Tensor]], truth: torch.Tensor, valid: torch.Tensor, decay: float
) -> torch.Tensor:
    """`paper_loss` of all iterations, the i-th of N weighted by decay^(N - 1 - i); mean over the batch, a scalar."""
    total = truth.new_zeros(truth.shape[0])
    for age, (flow, log_sigma) in enumerate(reversed(predictions)):
        total = total + decay**age * paper_loss(flow, log_sigma, truth, valid)
    return total.mean()


def nll(loss: float) -> float:
    """Negative log-likelihood in nats per axis and pixel from a mean `paper_loss`."""
    return loss / 4 + math.log(2 * math.pi) / 2
