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

"""Pairs of images with their true flow: what matching networks are trained on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch

from macvo_ros.errors import SequenceError
from macvo_ros.images.frame import Image

Float32 = npt.NDArray[np.float32]
Bool = npt.NDArray[np.bool_]


class FlowPair(NamedTuple):
    """first, second: (3, H, W) RGB in [0, 1]. flow: (2, H, W) pixels from first to second. valid: (H, W) bool."""

    first: torch.Tensor
    second: torch.Tensor
    flow: torch.Tensor
    valid: torch.Tensor


class FlowPairs(Protocol):
    """A set of pairs; images are read or rendered when a pair is asked for."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> FlowPair: ...


class Joined:
    """Several sets one after the other."""

    def __init__(self, sets: Sequence[FlowPairs]) -> None:
        self._sets = sets
        self._ends = np.cumsum([len(item) for item in sets])

    def __len__(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    def __getitem__(self, index: int) -> FlowPair:
        which = int(np.searchsorted(self._ends, index, side="right"))
        if not 0 <= index < len(self):
            raise IndexError(f"pair {index} of {len(self)}")
        return self._sets[which][index - (int(self._ends[which - 1]) if which else 0)]


def make_pair(first: Image, second: Image, flow: Float32, valid: Bool) -> FlowPair:
    """From images (H, W) grey or (H, W, 3) RGB of uint8, flow (2, H, W) and valid (H, W)."""
    valid = valid & np.isfinite(flow).all(axis=0)
    flow = np.where(valid, flow, np.float32(0))
    return FlowPair(_image(first), _image(second), torch.from_numpy(flow), torch.from_numpy(valid))


def stereo_truth(disparity: Float32) -> tuple[Float32, Bool]:
    """Flow (2, H, W) of a stereo pair from its disparity (H, W), and where the point is seen in the right image.

    A point is hidden where another one with a disparity larger by more than a pixel falls on the same right pixel.
    """
    height, width = disparity.shape
    rows, columns = np.mgrid[:height, :width]
    known = np.isfinite(disparity)
    there = np.rint(columns - np.where(known, disparity, 0)).astype(np.int64)
    inside = known & (there >= 0) & (there < width)
    nearest = np.full((height, width), -np.inf, np.float32)
    np.maximum.at(nearest, (rows[inside], there[inside]), disparity[inside])
    seen = inside.copy()
    seen[inside] = disparity[inside] > nearest[rows[inside], there[inside]] - 1
    return np.stack([-disparity, np.zeros_like(disparity)]), seen


def crop_pair(pair: FlowPair, height: int, width: int, random: np.random.Generator) -> FlowPair:
    """A random part of `height` x `width` pixels."""
    rows, columns = pair.valid.shape
    if rows < height or columns < width:
        raise SequenceError(f"cannot crop {width}x{height} from images of {columns}x{rows}; choose a smaller crop")
    top, left = int(random.integers(rows - height + 1)), int(random.integers(columns - width + 1))
    window = (..., slice(top, top + height), slice(left, left + width))
    return FlowPair(*(tensor[window].contiguous() for tensor in pair))


def _image(pixels: Image) -> torch.Tensor:
    channels = np.broadcast_to(pixels, (3, *pixels.shape)) if pixels.ndim == 2 else pixels.transpose(2, 0, 1)
    return torch.from_numpy(channels.astype(np.float32) / np.float32(255))
