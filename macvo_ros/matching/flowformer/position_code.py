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

"""The sine code of pixel coordinates that the cost encoder and the decoder add to their queries and keys."""

from __future__ import annotations

import math

import torch


def sine_code(coordinates: torch.Tensor, dim: int) -> torch.Tensor:
    """Code coordinates (..., 2) = (x, y), pixels, as (..., dim): sin x, cos x, sin y, cos y, each at dim/4 frequencies.

    Frequency k is k * pi / 200 radians a pixel, k = 0 ... dim/4 - 1.
    """
    frequency = torch.arange(dim // 4, device=coordinates.device, dtype=torch.float32) * (math.pi / 200.0)
    angle = coordinates.float()[..., None] * frequency
    return torch.cat([angle.sin(), angle.cos()], dim=-1).flatten(-2)


def pixel_grid(height: int, width: int, device: torch.device, step: float = 1.0, start: float = 0.0) -> torch.Tensor:
    """Coordinates (height, width, 2) = (x, y) = start + step * (column, row)."""
    y = torch.arange(height, device=device, dtype=torch.float32) * step + start
    x = torch.arange(width, device=device, dtype=torch.float32) * step + start
    return torch.stack([x[None, :].expand(height, width), y[:, None].expand(height, width)], dim=-1)
