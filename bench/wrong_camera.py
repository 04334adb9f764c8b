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

"""A rendered sequence through cameras that are off in a known way: one rendering serves for any error.

A turned camera, another focal length and a lens that bends the image all move pixels and change nothing that is seen,
so the images of the camera as told are moved to where the wrong one has them (Lanczos interpolation; OpenCV's cubic one
moves by 0.30 pixels where a quarter is asked for).
"""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
import numpy.typing as npt

from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.geometry.se3 import exp_so3
from macvo_ros.images.frame import Image, StereoFrame
from macvo_ros.rendering.sequence import RenderedSequence
from macvo_ros.rendering.worlds import build
from macvo_ros.sequences.sequence import Sequence
from macvo_ros.uncertainty.calibration_model import FOCAL, K1, PITCH, ROLL, YAW

Float64 = npt.NDArray[np.float64]
_ROUNDS = 8
"""Of undoing the distortion, which shrinks what remains by a factor of 30 or more each."""


_SOFTNESS = 0.7
"""Of the lens, pixels, as ordinary ones have: an image as sharp as its pixels cannot be moved by less than one."""


class RenderedOnce:
    """Implements `macvo_ros.sequences.Sequence`: a rendered sequence that remembers its frames (1.5 GB for 30 s)."""

    def __init__(self, world: str, frames: int, seed: int, rate: float) -> None:
        built = build(world, seed)
        sensor = replace(built.sensor, softness=max(built.sensor.softness, _SOFTNESS))
        self._rendered = RenderedSequence(built, frames, seed, rate=rate, sensor=sensor, name=world)
        self._frames: dict[int, StereoFrame] = {}
        self.name, self.stamps = self._rendered.name, self._rendered.stamps
        self.camera, self.ground_truth = self._rendered.camera, self._rendered.ground_truth

    def __len__(self) -> int:
        return len(self.stamps)

    def __getitem__(self, index: int) -> StereoFrame:
        if index not in self._frames:
            self._frames[index] = self._rendered[index]
        return self._frames[index]


class WrongCamera:
    """Implements `macvo_ros.sequences.Sequence`: another one through cameras that are not as told.

    error: by the numbers of `CalibrationModel`; PITCH, YAW, ROLL, FOCAL and K1 are known here. since: the
    frame from which on they are wrong.
    """

    def __init__(self, rendered: Sequence, error: dict[int, float], since: int = 0) -> None:
        self._rendered, self._since = rendered, since
        self.name, self.stamps = rendered.name, rendered.stamps
        self.ground_truth = rendered.ground_truth
        self.camera = rendered[0].camera
        self._sources = [_source(self.camera, error, right) for right in (False, True)] if error else None

    def __len__(self) -> int:
        return len(self.stamps)

    def __getitem__(self, index: int) -> StereoFrame:
        frame = self._rendered[index]
        if self._sources is None or index < self._since:
            return frame
        left, right = (_moved(*each) for each in zip((frame.left, frame.right), self._sources, strict=True))
        return StereoFrame(left, right, frame.stamp, self.camera)


def _source(camera: StereoCamera, error: dict[int, float], right: bool) -> tuple[npt.NDArray[np.float32], ...]:
    """(H, W) column and row, in the image of the camera as told, of what the wrong one shows at each pixel."""
    # A focal length that is told too small is one that is really too large.
    scale, k1 = 1.0 + error.get(FOCAL, 0.0), error.get(K1, 0.0)
    cx = camera.cx - camera.disparity_offset if right else camera.cx
    v, u = np.mgrid[: camera.height, : camera.width].astype(np.float64)
    bent = np.stack(((u - cx) / (scale * camera.fx), (v - camera.cy) / (scale * camera.fy)), axis=-1)
    straight = bent
    for _ in range(_ROUNDS if k1 else 0):
        straight = bent / (1.0 + k1 * (straight**2).sum(axis=-1, keepdims=True))
    ray = np.dstack((straight, np.ones(straight.shape[:2])))
    if right:
        ray = ray @ exp_so3(np.array([error.get(axis, 0.0) for axis in (PITCH, YAW, ROLL)])).T
    u = camera.fx * ray[..., 0] / ray[..., 2] + cx
    v = camera.fy * ray[..., 1] / ray[..., 2] + camera.cy
    return u.astype(np.float32), v.astype(np.float32)


def _moved(image: Image, source: tuple[npt.NDArray[np.float32], ...]) -> Image:
    return np.asarray(cv2.remap(image, source[0], source[1], cv2.INTER_LANCZOS4, borderMode=cv2.BORDER_REPLICATE))
