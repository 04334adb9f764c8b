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

"""Multi-head attention on flat tokens, and the cutting of a map into windows and back."""

from __future__ import annotations

import torch
import torch.nn.functional as F


def attend(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, heads: int) -> torch.Tensor:
    """Multi-head scaled dot-product attention: (..., N, C), (..., M, C), (..., M, D) to (..., N, D)."""

    def split(tokens: torch.Tensor) -> torch.Tensor:
        # One leading dimension: with more than one, torch falls back to its slow path on a CPU.
        return tokens.reshape(-1, tokens.shape[-2], heads, tokens.shape[-1] // heads).transpose(1, 2)

    attended = F.scaled_dot_product_attention(split(query), split(key), split(value))
    return attended.transpose(1, 2).reshape(*query.shape[:-1], value.shape[-1])


def pad_to_multiple(maps: torch.Tensor, multiple: int) -> torch.Tensor:
    """Append zero rows and columns to (..., H, W, C) until both sides are multiples of `multiple`."""
    height, width = maps.shape[-3], maps.shape[-2]
    return F.pad(maps, (0, 0, 0, -width % multiple, 0, -height % multiple))


def to_windows(maps: torch.Tensor, side: int) -> torch.Tensor:
    """Cut (B, H, W, C), sides multiples of `side`, into (B, H/side * W/side, side * side, C)."""
    batch, height, width, channels = maps.shape
    windows = maps.view(batch, height // side, side, width // side, side, channels).transpose(2, 3)
    return windows.reshape(batch, (height // side) * (width // side), side * side, channels)


def from_windows(windows: torch.Tensor, side: int, height: int, width: int) -> torch.Tensor:
    """Inverse of `to_windows`: back to (B, H, W, C) for a padded size of `height` x `width`."""
    batch, _, _, channels = windows.shape
    maps = windows.view(batch, height // side, width // side, side, side, channels).transpose(2, 3)
    return maps.reshape(batch, height, width, channels)
