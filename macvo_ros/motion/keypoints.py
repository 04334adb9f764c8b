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

"""Keypoint selection (paper III-B): non-minimum suppression, geometry filter, uncertainty filter, even spread.

Departures from the authors' code: the survivors are not drawn at random but taken cell by cell, the most certain
first, so the same images always give the same keypoints and they cover the image; medians are taken on every eighth
pixel of every eighth row (their sampling error is far below the factor they are used with). That factor is 3 by default
where the authors have 1.5: keypoints that are less certain count less in the solver anyway, and parts of the image with
none cost more than they do (seen on EuRoC MH_01; chosen, no log).

And the uncertainty is that of disparity, where the paper has that of depth, which is disparity's over d^2. A choice by
the measured d is a choice by its noise: the least of a window's d^-4 var(d) is mostly where d came out too large, and
keypoints are then nearer than they are (`python -m bench.selection_bias`). Nor is anything left out for being far.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import torch

from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.matching.matcher import IGNORED_VARIANCE
from macvo_ros.settings.config import KeypointConfig

Map = npt.NDArray[Any] | torch.Tensor
"""A dense map where it was computed: numpy on a CPU, a tensor on CUDA."""

_MEDIAN_STRIDE = 8
"""Pixels between those that a median of the whole map is taken from, for time; chosen, not measured."""
_USUAL_WIDTH = 640
"""Columns of the image that spacing and border are meant for; smaller ones get them in proportion. Chosen."""


def select_keypoints(
    disparity: torch.Tensor,
    disparity_var: torch.Tensor,
    flow: torch.Tensor,
    flow_var: torch.Tensor,
    camera: StereoCamera,
    config: KeypointConfig,
    seed: int = 0,
) -> npt.NDArray[np.int64]:
    """Choose keypoints in the reference left image.

    disparity, disparity_var: (H, W) of the reference frame, pixels, pixels^2.
    flow, flow_var: (2, H, W) from the reference to the current frame, pixels, pixels^2.
    Both variances may be given on a grid of every s-th pixel: keypoints are then looked for there.
    Returns (N, 2) integer pixels (u, v), N <= config.count, best spread first.
    """
    stride = disparity.shape[0] // disparity_var.shape[0]
    rows, columns = disparity_var.shape
    if stride > 1:
        every = (slice(stride // 2, stride * rows, stride), slice(stride // 2, stride * columns, stride))
        disparity, flow = disparity[every], flow[:, every[0], every[1]]
    maps: list[Any] = [each if each.is_cuda else each.numpy() for each in (disparity, disparity_var, flow, flow_var)]
    # On a CPU plain numpy: one thread, which does not wait for others on a busy machine. Operators only, for both.
    match_var = maps[3][0] + maps[3][1]
    if config.selector == "random":
        candidates = _random_pixels(rows, columns, config, seed)
    else:
        candidates = _local_minima(maps[1] * match_var, max(int(config.nms * _proportion(camera)) // stride, 1))

    u, v = candidates[:, 0], candidates[:, 1]
    at: Any = (v, u)
    if not isinstance(match_var, np.ndarray):
        at = tuple(torch.from_numpy(i).to(match_var.device) for i in (v, u))
    d, d_var, m_var, du, dv = (_on_cpu(each[at]) for each in (maps[0], maps[1], match_var, maps[2][0], maps[2][1]))
    if stride > 1:
        candidates = candidates * stride + stride // 2
        u, v = candidates[:, 0], candidates[:, 1]

    keep = _inside(u, v, config.border, camera) & _inside(u + du, v + dv, config.border, camera)
    if config.min_disparity > 0:
        keep &= d - camera.disparity_offset >= config.min_disparity
    if config.selector == "uncertainty":
        # Sigma above max_uncertainty medians of sigma is variance above its square times the median variance.
        factor = config.max_uncertainty**2
        coarse = (slice(None, None, max(_MEDIAN_STRIDE // stride, 1)),) * 2
        known = _on_cpu(maps[1][coarse]) < IGNORED_VARIANCE
        keep &= d_var <= factor * _median(_on_cpu(maps[1][coarse])[known])
        keep &= m_var <= factor * _median(_on_cpu(match_var[coarse])[known])
        order = _spread(candidates[keep], d_var[keep] * m_var[keep], config.count, camera)
        return candidates[keep][order]
    return candidates[keep][: config.count]


def _median(values: npt.NDArray[Any]) -> float:
    return float(np.median(values)) if values.size else 0.0


def _inside(u: npt.NDArray[Any], v: npt.NDArray[Any], border: int, camera: StereoCamera) -> npt.NDArray[np.bool_]:
    border = int(border * _proportion(camera))
    inside = (u >= border) & (u <= camera.width - 1 - border) & (v >= border) & (v <= camera.height - 1 - border)
    return np.asarray(inside)


def _proportion(camera: StereoCamera) -> float:
    return min(1.0, camera.width / _USUAL_WIDTH)


def _random_pixels(height: int, width: int, config: KeypointConfig, seed: int) -> npt.NDArray[np.int64]:
    """More random pixels than are needed, for the filters after it."""
    flat = np.random.default_rng(seed).choice(height * width, size=min(8 * config.count, height * width), replace=False)
    return np.stack((flat % width, flat // width), axis=1).astype(np.int64)


def _local_minima(quality: Map, window: int) -> npt.NDArray[np.int64]:
    """(M, 2) pixels (u, v) where the (H, W) map is the minimum of its window; ties broken by a fixed pattern."""
    ties = _tie_breaker(*quality.shape)
    if isinstance(quality, np.ndarray):
        image = np.multiply(quality, ties, out=quality)
        lowest = cv2.erode(image, np.ones((window | 1, window | 1), np.uint8))
        v, u = np.divmod(np.flatnonzero(image == lowest), image.shape[1])
    else:
        tensor = quality * torch.from_numpy(ties).to(quality.device)
        pooled = -torch.nn.functional.max_pool2d(-tensor[None, None], window | 1, stride=1, padding=(window | 1) // 2)
        v, u = (axis.cpu().numpy() for axis in torch.nonzero(tensor == pooled[0, 0], as_tuple=True))
    return np.stack((u, v), axis=1).astype(np.int64)


def _on_cpu(values: Map) -> npt.NDArray[Any]:
    return values if isinstance(values, np.ndarray) else values.cpu().numpy()


@lru_cache(maxsize=4)
def _tie_breaker(height: int, width: int) -> npt.NDArray[np.float32]:
    """(H, W) fixed factors within 1 +- 1e-3: where a floor makes variances equal, they decide, always alike."""
    noise = np.random.default_rng(0).uniform(1 - 1e-3, 1 + 1e-3, (height, width))
    return noise.astype(np.float32)


def _spread(
    pixels: npt.NDArray[np.int64], quality: npt.NDArray[np.float32], count: int, camera: StereoCamera
) -> npt.NDArray[np.int64]:
    """Indices of at most `count` pixels: the best of each of about `count` square cells, then the second best, ..."""
    side = max(1.0, (camera.width * camera.height / count) ** 0.5)
    row_length = int(camera.width / side) + 1
    cell = (pixels * (1.0 / side)).astype(np.int32) @ np.array([1, row_length], np.int32)
    order = np.argsort(quality, kind="stable")
    # Small integers are sorted by radix: much cheaper than a sort by two keys.
    order = order[np.argsort(cell[order].astype(np.uint16), kind="stable")]
    sorted_cell = cell[order]
    starts = np.flatnonzero(np.r_[True, sorted_cell[1:] != sorted_cell[:-1]]) if len(order) else order
    lengths = np.diff(np.r_[starts, len(order)])
    rank = np.arange(len(order)) - np.repeat(starts, lengths)
    # Whole rounds until there are enough, then the best of the last round.
    rounds = np.cumsum(np.bincount(rank, minlength=1))
    enough = rank <= np.searchsorted(rounds, count)
    order, rank = order[enough], rank[enough]
    return np.asarray(order[np.lexsort((quality[order], rank))][:count])
