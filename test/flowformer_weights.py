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

"""A FlowFormerCov whose weights follow from the names of its tensors: comparable without a checkpoint."""

from __future__ import annotations

import functools
import math
import zlib
from collections.abc import Iterator

import numpy as np
import pytest
import torch

from macvo_ros.matching.flowformer import FlowFormerCov


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """On a busy machine torch's threads spend their time waiting for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def weight(name: str, shape: tuple[int, ...]) -> torch.Tensor:
    """The tensor that goes with a name."""
    values = np.random.RandomState(zlib.crc32(name.encode())).standard_normal(shape)
    if name.endswith("latent_tokens"):
        pass
    elif name.endswith("gamma"):
        values = np.full(shape, 0.5)
    elif len(shape) >= 2:
        values = values / math.sqrt(np.prod(shape[1:]))
        values = values * (0.1 if "flow_head.conv2" in name else 0.01 if "cov_head.conv4" in name else 1.0)
    elif "norm" in name and name.endswith("weight"):
        values = 1 + 0.05 * values
    else:
        values = 0.02 * values
    return torch.from_numpy(values.astype(np.float32))


@functools.cache
def _state() -> dict[str, torch.Tensor]:
    state = FlowFormerCov().state_dict()
    return {n: t if n == "memory_decoder.delta" else weight(n, tuple(t.shape)) for n, t in state.items()}


def named_state() -> dict[str, torch.Tensor]:
    """A state dict of all names; the tensors are shared, do not write into them."""
    return dict(_state())


def named_network(iterations: int = 12) -> FlowFormerCov:
    """The network with these weights."""
    network = FlowFormerCov(iterations)
    network.load_state_dict(named_state())
    return network.eval().requires_grad_(False)


def waves(height: int, width: int, shift: float = 0.0) -> torch.Tensor:
    """A smooth colourful image (1, 3, H, W) in [0, 1], moved by `shift` pixels to the right."""
    y, x = torch.meshgrid(torch.arange(height) * 1.0, torch.arange(width) - float(shift), indexing="ij")
    channels = [torch.sin(x / a) * torch.cos(y / b) + torch.sin((x + y) / c) for a, b, c in _PERIODS]
    return torch.stack(channels)[None] / 4 + 0.5


_PERIODS = ((5.0, 7.0, 3.0), (4.0, 9.0, 11.0), (13.0, 3.0, 6.0))
