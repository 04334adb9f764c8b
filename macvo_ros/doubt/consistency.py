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
the side of a bus) can win every one of them and agree with itself perfectly. Two questions to the rest of the image:
where do certain matches contradict the motion, and where does the image not look as the motion predicts?
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.images.frame import Image
from macvo_ros.images.work_size import shrunk
from macvo_ros.matching.matcher import Match
from macvo_ros.matching.rigid_flow import rigid_flow

Float32 = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

# What the figures are taken with is chosen, not measured: what is usual of them is (`python -m bench.sound_frames`).
_CELL = 8
"""Pixels between the places that are asked, in an image of up to 640 columns; in proportion beyond."""
_CERTAIN = 1.0
"""Standard deviation below which a match has a say, pixels (flow and disparity alike)."""
_SLACK = 1.0
"""Difference of flows that a dense match cannot resolve, pixels."""
_SIGMAS = 3.0
"""Beyond which, and the slack, a flow contradicts the motion."""
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


@dataclass(frozen=True, eq=False)
class Outliers:
    """What of the certain matches, or of the keypoints, contradicts a motion.

    share: the part (0 to 1) of them. pixel: (N, 2) where, in the reference image that was matched.
    """

    share: float
    pixel: Float64


def find_flow_outliers(camera: StereoCamera, reference: Match, match: Match, motion: Float64) -> Outliers:
    """Certain matches that contradict a camera `motion` (4, 4) in a static scene; reference, match: the frames' own.

    The flow that the motion and the disparity imply is compared with the flow that was found, each with its sigma.
    """
    assert match.flow is not None
    assert match.flow_var is not None
    step = _CELL * max(1, round(camera.width / 640))
    every = (slice(step // 2, None, step),) * 2
    disparity, disparity_var = (
        each[every].numpy(force=True) for each in (reference.disparity, reference.disparity_var)
    )
    flow, flow_var = (each[:, every[0], every[1]].numpy(force=True) for each in (match.flow, match.flow_var))
    coarse = _sampled(camera, step, disparity.shape)
    expected = step * rigid_flow(coarse, disparity / np.float32(step), motion)
    turned = motion.copy()
    turned[:3, 3] = 0.0
    parallax = np.linalg.norm(expected - step * rigid_flow(coarse, disparity / np.float32(step), turned), axis=-1)
    d = np.maximum(disparity - camera.disparity_offset, 1e-3)
    depth_spread = parallax * np.sqrt(disparity_var) / d
    sigma = np.sqrt(flow_var.max(axis=0))
    certain = (sigma < _CERTAIN) & (depth_spread < _CERTAIN) & (disparity_var < _CERTAIN**2)
    difference = np.linalg.norm(flow.transpose(1, 2, 0) - expected, axis=-1)
    contrary = certain & (difference > _SLACK + _SIGMAS * np.hypot(sigma, depth_spread))
    pixel = step * np.argwhere(contrary)[:, ::-1].astype(np.float64) + step // 2
    return Outliers(float(contrary.sum() / max(certain.sum(), _ENOUGH)), pixel)


def appearance_mismatch(
    camera: StereoCamera,
    images: tuple[Image, Image],
    reference: Match,
    motion: Float64,
    masked: Mask | None = None,
) -> float:
    """The part (0 to 1) of what is textured that does not look, where a `motion` (4, 4) puts it, as it did before.

    images: left ones of the reference and the current frame, grey; masked: (H, W) where the latter shows the robot.
    Matchers follow where they are led: led by something that moves with the camera, they find nothing in the rest of
    the image that could contradict. Looks cannot be led.
    """
    shrink = max(1, round(camera.width / _COLUMNS))
    before, after = (shrunk(image, shrink).astype(np.float32) for image in images)
    rows, columns = before.shape
    every = (slice(shrink // 2, rows * shrink, shrink), slice(shrink // 2, columns * shrink, shrink))
    disparity, variance = (each[every].numpy(force=True) for each in (reference.disparity, reference.disparity_var))
    coarse = camera.cropped(0, 0, columns * shrink, rows * shrink).resized(columns, rows)
    flow = rigid_flow(coarse, disparity / np.float32(shrink), motion)
    u, v = np.meshgrid(np.arange(columns, dtype=np.float32), np.arange(rows, dtype=np.float32))
    u, v = u + flow[..., 0], v + flow[..., 1]
    warped = cv2.remap(after, u, v, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    inside = (u >= 0) & (u <= columns - 1) & (v >= 0) & (v <= rows - 1)
    if masked is not None:
        hidden = np.ascontiguousarray(masked[every]).astype(np.uint8)
        inside &= cv2.remap(hidden, u, v, cv2.INTER_NEAREST) == 0
    d = np.maximum(disparity - camera.disparity_offset, 1e-3)
    placed = np.linalg.norm(flow, axis=-1) * np.minimum(np.sqrt(variance) / d, 1.0) < _CERTAIN
    asked = cv2.erode((inside & placed & (variance < (2 * shrink) ** 2)).astype(np.uint8), np.ones((3, 3), np.uint8))
    contrast, likeness = _correlation(before, warped)
    noise = float(np.quantile(contrast[::4, ::4], _FLAT))
    textured = (asked > 0) & (contrast > max(_CONTRAST, _ABOVE_NOISE * noise))
    return float((textured & (likeness < _ALIKE)).sum() / max(textured.sum(), _ENOUGH))


def _correlation(first: Float32, second: Float32) -> tuple[Float32, Float32]:
    """(H, W) standard deviation of the first image in a window, and correlation of the two there."""
    mean = [cv2.blur(image, _WINDOW) for image in (first, second)]
    variance = [
        np.maximum(cv2.blur(image * image, _WINDOW) - m * m, 0) for image, m in zip((first, second), mean, strict=True)
    ]
    product = cv2.blur(first * second, _WINDOW) - mean[0] * mean[1]
    return np.sqrt(variance[0]), product / np.sqrt(variance[0] * variance[1] + np.float32(1e-3))


def _sampled(camera: StereoCamera, step: int, shape: tuple[int, ...]) -> StereoCamera:
    """The camera of image[step // 2 :: step, step // 2 :: step]: pixels, disparities and flows are so much smaller."""
    at = step // 2
    return StereoCamera(
        camera.fx / step,
        camera.fy / step,
        (camera.cx - at) / step,
        (camera.cy - at) / step,
        camera.baseline,
        shape[1],
        shape[0],
        None if camera.cx_right is None else (camera.cx_right - at) / step,
    )
