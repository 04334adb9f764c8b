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

"""The network of `lite`: from the evidence about a match to its log sigma, per axis, before and after refinement.

A U of three levels, from an eighth to a 32nd of the resolution, that reads and writes the quarter-resolution grid in
one strided step each. The finest level is depthwise-separable, since most of the time would go there; plain
convolutions carry the coarse levels, where the context is.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional

from macvo_ros.errors import WeightsError
from macvo_ros.matching.lite.features import CHANNELS
from macvo_ros.matching.weights_file import read_tensors, write_safetensors

Float32 = npt.NDArray[np.float32]

WEIGHTS = Path(__file__).with_name("lite.safetensors")
OUTPUTS = ("dense_u", "dense_v", "refined_u", "refined_v")
LIMITS = (-4.6, 3.7)
"""log sigma stays between 0.01 and 40 pixels."""


def _separable(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, inputs, 3, padding=1, groups=inputs), nn.Conv2d(inputs, outputs, 1), nn.ReLU(inplace=True)
    )


def _plain(inputs: int, outputs: int, stride: int = 1, dilation: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, stride=stride, padding=dilation, dilation=dilation), nn.ReLU(inplace=True)
    )


class LiteNetwork(nn.Module):
    """(B, C, h, w) evidence (`features.CHANNELS`) to (B, 4, h, w) log sigma in pixels (`OUTPUTS`); h and w even."""

    def __init__(self, widths: tuple[int, int, int] = (16, 32, 48)) -> None:
        super().__init__()
        self.widths = b, c, d = widths
        self.down_8 = nn.Sequential(_plain(len(CHANNELS), b, stride=2), _separable(b, b))
        self.down_16 = nn.Sequential(_plain(b, c, stride=2), _plain(c, c))
        self.down_32 = nn.Sequential(_plain(c, d, stride=2), _plain(d, d), _plain(d, d, dilation=2))
        self.whole = nn.Linear(d, d)
        self.up_16 = nn.Conv2d(d, c, 1)
        self.join_16 = _plain(c, c)
        self.up_8 = nn.Conv2d(c, b, 1)
        self.join_8 = nn.Sequential(_separable(b, b), _separable(b, b))
        self.out = nn.Conv2d(b, 4 * len(OUTPUTS), 1)

    def forward(self, evidence: torch.Tensor) -> torch.Tensor:
        """See the class."""
        at_8 = self.down_8(evidence)
        at_16 = self.down_16(at_8)
        at_32 = self.down_32(at_16)
        at_32 = at_32 + functional.relu(self.whole(at_32.mean((2, 3))))[:, :, None, None]
        at_16 = self.join_16(at_16 + _grown(self.up_16(at_32), at_16))
        at_8 = self.join_8(at_8 + _grown(self.up_8(at_16), at_8))
        log_sigma = functional.pixel_shuffle(self.out(at_8).contiguous(), 2)
        return log_sigma.clamp(*LIMITS)


def _grown(coarse: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    return functional.interpolate(coarse, size=like.shape[-2:], mode="bilinear", align_corners=False)


def load_network(path: Path = WEIGHTS) -> LiteNetwork:
    """The trained network, ready to run."""
    network = LiteNetwork()
    tensors = {name: tensor.float() for name, tensor in read_tensors(path).items()}
    expected = {name: tensor.shape for name, tensor in network.state_dict().items()}
    if {name: tensor.shape for name, tensor in tensors.items()} != expected:
        raise WeightsError(
            f"{path} does not hold the weights of this version's lite network; leave lite.weights empty, train anew "
            "with macvo train lite, or install the package anew"
        )
    network.load_state_dict(tensors)
    network.eval().to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return network


def packed_weights(network: LiteNetwork) -> Float32:
    """All weights in the order in which `native/network.c` runs through the layers.

    Of a convolution (kernel, kernel, channels in, channels out), of the linear layer (in, out), each before its bias.
    """
    layers = [module for module in network.modules() if isinstance(module, nn.Conv2d | nn.Linear)]
    parts = []
    for layer in layers:
        turned = layer.weight.permute(2, 3, 1, 0) if isinstance(layer, nn.Conv2d) else layer.weight.T
        assert layer.bias is not None
        parts += [turned.reshape(-1), layer.bias]
    return torch.cat(parts).detach().float().numpy()


def save_network(network: LiteNetwork, path: Path, metadata: dict[str, str]) -> None:
    """Write the weights in half precision, which costs nothing measurable."""
    write_safetensors(path, {name: tensor.half() for name, tensor in network.state_dict().items()}, metadata)
