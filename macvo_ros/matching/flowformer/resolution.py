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

"""The size of the images the network sees, and the way of its results back to the size of the camera's images."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from macvo_ros.errors import ConfigError
from macvo_ros.matching.flowformer.network import SMALLEST


def inference_size(height: int, width: int, asked_height: int = 0, asked_width: int = 0) -> tuple[int, int]:
    """Rows and columns to run at, for images of `height` x `width`; 0 asks for the shape of the image."""
    if asked_height == 0 and asked_width == 0:
        return height, width
    rows = asked_height or max(1, round(asked_width * height / width))
    columns = asked_width or max(1, round(asked_height * width / height))
    if min(rows, columns) < SMALLEST:
        raise ConfigError(
            f"flowformer.height and flowformer.width make the network's images {columns}x{rows}; it needs {SMALLEST} "
            "pixels a side at least"
        )
    return rows, columns


def resize_image(image: torch.Tensor, height: int, width: int) -> torch.Tensor:
    """(B, 3, H, W) to (B, 3, height, width), low-pass filtered where it shrinks."""
    if image.shape[-2:] == (height, width):
        return image
    return F.interpolate(image, (height, width), mode="bilinear", align_corners=False, antialias=True)


def resize_flow(
    flow: torch.Tensor, variance: torch.Tensor, height: int, width: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Flow (B, 2, h, w), pixels, and variance, pixels^2, to (B, 2, height, width) in pixels of the larger image.

    A flow of one pixel there is `width / w` pixels here; its variance grows with the square.
    """
    rows, columns = flow.shape[-2:]
    if (rows, columns) == (height, width):
        return flow, variance
    scale = torch.tensor([width / columns, height / rows], device=flow.device)[:, None, None]
    flow = F.interpolate(flow, (height, width), mode="bilinear", align_corners=False)
    variance = F.interpolate(variance, (height, width), mode="bilinear", align_corners=False)
    return flow * scale, variance * scale**2
