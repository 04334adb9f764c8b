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

"""Does the whole image agree with a motion that only its keypoints have voted on?

Keypoints are the most certain matches, so a sharp object that moves with the camera (the robot's own arm, a reflection,
the side of a bus) can win every one of them and agree with itself perfectly. Matchers follow where they are led: led by
such an object, they find nothing in the rest of the image that could contradict. Looks cannot be led.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from macvo_ros.images.frame import Image, StereoFrame
from macvo_ros.images.work_size import shrunk
from macvo_ros.matching.matcher import Match
from macvo_ros.matching.native.library import Kernels, kernels
from macvo_ros.matching.rigid_flow import rigid_flow

Float32 = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.float64]

# What the figure is taken with is chosen, not measured: what is usual of it is (`python -m bench.sound_frames`).
_CERTAIN = 1.0
"""Pixels: where depth places a pixel less certainly than that, it is not compared."""
_ENOUGH = 50
"""Places below which a share of them says little: it is taken of so many."""
_COLUMNS = 160
"""Width, about, of the images whose looks are compared."""
_WINDOW = (7, 7)
"""Pixels of those small images that are compared."""
_CONTRAST = 4.0
"""Standard deviation of brightness from which a window has texture, grey levels, in an image without much noise."""
_FLAT, _ABOVE_NOISE = 0.1, 2.0
"""The flattest tenth of the windows tells the noise, and texture is twice as much: then two windows of one thing
correlate by 0.75 at least."""
_ALIKE = 0.3
"""Correlation of two windows below which they show different things: unrelated ones reach 0.2 +- 0.1 (no log)."""


def appearance_mismatch(reference: StereoFrame, match: Match, current: StereoFrame, motion: Float64) -> float:
    """The part (0 to 1) of what is textured that does not look, where a `motion` (4, 4) puts it, as it did before.

    match: of the reference. What the current frame's mask says to show the robot is not compared.
    """
    camera = current.camera
    shrink = max(1, round(camera.width / _COLUMNS))
    before, after = (shrunk(frame.grey[0], shrink).astype(np.float32) for frame in (reference, current))
    rows, columns = before.shape
    every = (slice(shrink // 2, rows * shrink, shrink), slice(shrink // 2, columns * shrink, shrink))
    disparity, variance = (each[every].numpy(force=True) for each in (match.disparity, match.disparity_var))
    coarse = camera.cropped(0, 0, columns * shrink, rows * shrink).resized(columns, rows)
    flow = rigid_flow(coarse, disparity / np.float32(shrink), motion)
    hidden = None if current.masked is None else np.ascontiguousarray(current.masked[every]).astype(np.uint8)
    d = np.maximum(disparity - camera.disparity_offset, 1e-3)
    looks = _Looks(before, after, flow, d, variance, hidden, (2 * shrink) ** 2)
    native = None if min(before.shape) < 2 else kernels()
    asked, contrast, likeness = looks.compared() if native is None else looks.compared_by(native)
    noise = float(np.quantile(contrast[::4, ::4], _FLAT))
    textured = (asked > 0) & (contrast > max(_CONTRAST, _ABOVE_NOISE * noise))
    return float((textured & (likeness < _ALIKE)).sum() / max(textured.sum(), _ENOUGH))


@dataclass(frozen=True, eq=False)
class _Looks:
    """Two small images (H, W), the flow (H, W, 2) that leads from one to the other, and how well it is known.

    d: (H, W) disparity less that of infinity, with its variance, and the variance up to which it is known; hidden:
    above 0 where `after` shows the robot.
    """

    before: Float32
    after: Float32
    flow: Float32
    d: Float32
    variance: Float32
    hidden: Image | None
    most_variance: float

    def compared(self) -> tuple[Image, Float32, Float32]:
        """(H, W) where the image can be asked, its contrast there, and its correlation with what the flow leads to."""
        rows, columns = self.before.shape
        u, v = np.meshgrid(np.arange(columns, dtype=np.float32), np.arange(rows, dtype=np.float32))
        u, v = u + self.flow[..., 0], v + self.flow[..., 1]
        warped = cv2.remap(self.after, u, v, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
        inside = (u >= 0) & (u <= columns - 1) & (v >= 0) & (v <= rows - 1)
        if self.hidden is not None:
            inside &= cv2.remap(self.hidden, u, v, cv2.INTER_NEAREST) == 0
        off = np.linalg.norm(self.flow, axis=-1) * np.minimum(np.sqrt(self.variance) / self.d, 1.0)
        known = inside & (off < _CERTAIN) & (self.variance < self.most_variance)
        asked = cv2.erode(known.astype(np.uint8), np.ones((3, 3), np.uint8))
        return np.asarray(asked, dtype=np.uint8), *_correlation(self.before, warped)

    def compared_by(self, native: Kernels) -> tuple[Image, Float32, Float32]:
        """The same by a compiled kernel."""
        shape = self.d.shape
        asked, contrast, likeness = (np.empty(shape, kind) for kind in (np.uint8, np.float32, np.float32))
        maps = (self.before, self.after, self.flow, self.d, self.variance)
        contiguous = (np.ascontiguousarray(each, dtype=np.float32) for each in maps)
        native(
            "macvo_appearance", *contiguous, self.hidden, *shape, _CERTAIN, self.most_variance, _WINDOW[0] // 2, asked,
            contrast, likeness,
        )  # fmt: skip
        return asked, contrast, likeness


def _correlation(first: Float32, second: Float32) -> tuple[Float32, Float32]:
    """(H, W) standard deviation of the first image in a window, and correlation of the two there."""
    mean = [cv2.blur(image, _WINDOW) for image in (first, second)]
    variance = [
        np.maximum(cv2.blur(image * image, _WINDOW) - m * m, 0) for image, m in zip((first, second), mean, strict=True)
    ]
    product = cv2.blur(first * second, _WINDOW) - mean[0] * mean[1]
    return np.sqrt(variance[0]), product / np.sqrt(variance[0] * variance[1] + np.float32(1e-3))
