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

"""Clips to train `lite` on, as files: three stereo frames in a row with their truth, wherever they come from.

Truth is kept at one random pixel of each 4x4 block: as much as a network that works at a quarter of the resolution can
learn from, and a sixteenth of the disk.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import astuple
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np
import numpy.typing as npt

from macvo_ros.atomic_write import atomic_write
from macvo_ros.errors import SequenceError
from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.images.frame import Image

Float32 = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.float64]

BLOCK = 4
FRAMES = 3


class FrameTruth(NamedTuple):
    """Truth at the pixels of a left image: disparity (H, W) and static_flow (2, H, W), the flow to the next left image
    if everything stood still; pixels, nan where unknown."""

    disparity: Float32
    static_flow: Float32


class Clip:
    """Three grey stereo frames, and the sampled truth of the first two."""

    def __init__(self, path: Path) -> None:
        try:
            with np.load(path) as arrays:
                self.arrays: dict[str, npt.NDArray[np.generic]] = {name: arrays[name] for name in arrays.files}
        except (OSError, ValueError) as error:
            raise SequenceError(f"{path} is not a clip ({error}); remove it to have it made again") from None
        fx, fy, cx, cy, baseline, width, height = (float(x) for x in self.arrays["camera"][:7])
        self.camera = StereoCamera(fx, fy, cx, cy, baseline, int(width), int(height))

    def grey(self, frame: int) -> tuple[Image, Image]:
        """(H, W) left and right images."""
        left, right = self.arrays["grey"][frame]
        return np.ascontiguousarray(left, dtype=np.uint8), np.ascontiguousarray(right, dtype=np.uint8)

    def motion(self, frame: int) -> Float64:
        """(4, 4) pose of frame + 1 in frame; frame -1 is the motion before the clip."""
        poses = np.asarray(self.arrays["poses"], dtype=np.float64)
        return np.asarray(np.linalg.solve(poses[frame + 1], poses[frame + 2]))

    def pixel(self, frame: int) -> npt.NDArray[np.int64]:
        """(h, w, 2) the pixels (u, v) at which truth is known."""
        place = self.arrays["place"][frame].astype(np.int64)
        v, u = np.mgrid[: place.shape[0], : place.shape[1]] * BLOCK
        return np.stack((u + place % BLOCK, v + place // BLOCK), axis=-1)

    def truth(self, name: str, frame: int) -> Float32:
        """disparity (h, w) or static_flow (2, h, w) at those pixels, of frame 0 or 1."""
        return np.asarray(self.arrays[name][frame], dtype=np.float32)


def clip_arrays(
    camera: StereoCamera,
    poses: Float64,
    images: Sequence[tuple[Image, Image]],
    truths: Sequence[FrameTruth],
    rng: np.random.Generator,
) -> dict[str, npt.NDArray[np.generic]]:
    """What the file of a clip holds, by name.

    poses: (4, 4, 4) of the frame before the clip and its three frames, any world; images: three RGB or grey pairs;
    truths: of the first two frames; rng: chooses the pixels.
    """
    rows, columns = camera.height // BLOCK, camera.width // BLOCK
    place = rng.integers(0, BLOCK * BLOCK, (FRAMES, rows, columns), dtype=np.uint8)[:-1]
    v, u = np.mgrid[:rows, :columns] * BLOCK
    at = [(v + some // BLOCK, u + some % BLOCK) for some in place]
    return {
        "camera": np.array(astuple(camera)[:7], dtype=np.float64),
        "poses": poses,
        "place": place,
        "grey": np.array([[_grey(image) for image in pair] for pair in images], dtype=np.uint8),
        "disparity": np.stack([truth.disparity[i] for truth, i in zip(truths, at, strict=True)]),
        "static_flow": np.stack([truth.static_flow[:, i[0], i[1]] for truth, i in zip(truths, at, strict=True)]),
    }


def save_clip(path: Path, arrays: dict[str, npt.NDArray[np.generic]]) -> None:
    """Write what `clip_arrays` made."""
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    atomic_write(path, buffer.getvalue())


def sequence_of(clip: Path) -> str:
    """The name of what a clip was cut from: its file is called SEQUENCE_NUMBER.npz."""
    return clip.stem.rpartition("_")[0]


def _grey(image: Image) -> Image:
    return image if image.ndim == 2 else np.asarray(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), dtype=np.uint8)
