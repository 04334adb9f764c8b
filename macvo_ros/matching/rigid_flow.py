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

"""The flow a static scene shows under a known motion: the seed of a search, or what a match is compared with."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.matching.native.library import kernels

Float32 = npt.NDArray[np.float32]


def rigid_flow(camera: StereoCamera, disparity: Float32, motion: npt.NDArray[np.float64]) -> Float32:
    """Flow of every pixel of a frame with known disparity when the camera moves.

    disparity: (H, W) pixels; motion: (4, 4) pose of the moved camera in this one. Returns (H, W, 2) pixels.
    A point X = z ray goes to R^T (X - t); times inverse depth w = d / (fx b) that is R^T (ray - w t), which also
    holds at infinity.
    """
    if kernels() is not None:
        return _rigid_flow_natively(camera, disparity, motion)
    x, y = _rays(camera)
    w = np.maximum(disparity - camera.disparity_offset, 0.0) * (1.0 / (camera.fx * camera.baseline))
    rotation = motion[:3, :3].T.astype(np.float32)
    t = (rotation @ motion[:3, 3]).astype(np.float32)
    a = rotation[0, 0] * x + rotation[0, 1] * y + rotation[0, 2] - w * t[0]
    b = rotation[1, 0] * x + rotation[1, 1] * y + rotation[1, 2] - w * t[1]
    # A point that comes to lie behind the camera has no flow; keep it finite.
    c = np.maximum(rotation[2, 0] * x + rotation[2, 1] * y + rotation[2, 2] - w * t[2], 0.05)
    flow = np.empty((camera.height, camera.width, 2), np.float32)
    flow[..., 0] = camera.fx * (a / c - x)
    flow[..., 1] = camera.fy * (b / c - y)
    limit = np.float32(max(camera.width, camera.height))
    return np.clip(flow, -limit, limit, out=flow)


def _rigid_flow_natively(camera: StereoCamera, disparity: Float32, motion: npt.NDArray[np.float64]) -> Float32:
    """`rigid_flow` by a compiled kernel."""
    rotation = np.ascontiguousarray(motion[:3, :3].T, dtype=np.float32)
    t = (rotation @ motion[:3, 3]).astype(np.float32)
    flow = np.empty((camera.height, camera.width, 2), np.float32)
    unit, limit = 1.0 / (camera.fx * camera.baseline), max(camera.width, camera.height)
    lens = (camera.fx, camera.fy, camera.cx, camera.cy, camera.disparity_offset, unit, limit)
    native, given = kernels(), np.ascontiguousarray(disparity, dtype=np.float32)
    assert native is not None
    native("macvo_rigid_flow", given, camera.height, camera.width, np.array(lens, np.float32), rotation, t, flow)
    return flow


@lru_cache(maxsize=4)
def _rays(camera: StereoCamera) -> tuple[Float32, Float32]:
    x = (np.arange(camera.width, dtype=np.float32)[None] - np.float32(camera.cx)) / np.float32(camera.fx)
    y = (np.arange(camera.height, dtype=np.float32)[:, None] - np.float32(camera.cy)) / np.float32(camera.fy)
    return x, y
