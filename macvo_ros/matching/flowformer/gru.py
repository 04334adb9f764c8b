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

"""Separable convolutional GRU, and its input convolutions shared between several GRUs."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

HIDDEN = 128
PADDING = ((0, 2), (2, 0))


class SeparableGRU(nn.Module):
    """ConvGRU of 128 hidden channels: a 1x5 pass, then a 5x1 pass (Teed and Deng 2020).

    The input is [inp, motion, global], 3 x 128 channels, convolved beforehand by `constant_share` (`inp` and biases,
    the same in all iterations) and `input_share` (the rest).
    """

    def __init__(self) -> None:
        super().__init__()
        for number, kernel in ((1, (1, 5)), (2, (5, 1))):
            for gate in "zrq":
                padding = PADDING[number - 1]
                self.add_module(f"conv{gate}{number}", nn.Conv2d(4 * HIDDEN, HIDDEN, kernel, padding=padding))

    def weights(self, number: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Weight (3*128, 512, kh, kw) and bias (3*128,) of gates z, r, q of pass 0 or 1."""
        convolutions = [self.get_submodule(f"conv{gate}{number + 1}") for gate in "zrq"]
        weight = torch.cat([convolution.get_parameter("weight") for convolution in convolutions])
        return weight, torch.cat([convolution.get_parameter("bias") for convolution in convolutions])

    def step(self, hidden: torch.Tensor, inputs: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        """Hidden state (B, 128, h, w) and the inputs' share (B, 384, h, w) of both passes to the next hidden state."""
        for number, share in enumerate(inputs):
            weight = self.weights(number)[0][:, :HIDDEN]
            gates = torch.sigmoid(
                F.conv2d(hidden, weight[: 2 * HIDDEN], padding=PADDING[number]) + share[:, : 2 * HIDDEN]
            )
            update, reset = gates.chunk(2, dim=1)
            candidate = torch.tanh(
                F.conv2d(reset * hidden, weight[2 * HIDDEN :], padding=PADDING[number]) + share[:, 2 * HIDDEN :]
            )
            hidden = hidden + update * (candidate - hidden)
        return hidden


def constant_share(gru: SeparableGRU, inp: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """What `inp` (B, 128, h, w) and the biases add to the gates of both passes, each (B, 384, h, w)."""
    shares = []
    for number in range(2):
        weight, bias = gru.weights(number)
        shares.append(F.conv2d(inp, weight[:, HIDDEN : 2 * HIDDEN], bias, padding=PADDING[number]))
    return shares[0], shares[1]


def input_share(
    gru: SeparableGRU, moving: torch.Tensor, constant: tuple[torch.Tensor, torch.Tensor]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Add what [motion, global] (B, 256, h, w) contributes to `constant`."""
    shares = []
    for number in range(2):
        weight = gru.weights(number)[0][:, 2 * HIDDEN :]
        shares.append(F.conv2d(moving, weight, padding=PADDING[number]) + constant[number])
    return shares[0], shares[1]
