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

"""What a perfect matcher would answer: depth, disparity, flow and what is hidden, exact at pixel centres."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from macvo_ros.rendering.projection import SKY_INVERSE_DEPTH
from macvo_ros.rendering.scene import WORLD, Scene
from macvo_ros.rendering.visibility import Visibility

Float32 = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Truth:
    """Truth at the pixels of a left image, float32, pixels and metres.

    depth: (H, W) metres along the optical axis, inf for sky.
    disparity: (H, W) pixels, positive; a left pixel (u, v) is at (u - disparity, v) in the right image.
    disparity_valid: (H, W) the point is inside the right image and not hidden there.
    flow: (2, H, W) du, dv to the next left image, of what is really there; moving objects move.
    static_flow: (2, H, W) the flow if everything had stood still: what odometry wants.
    flow_valid: (H, W) the point is inside the next image and not hidden there.
    moving: (H, W) the pixel sees a moving object.
    surface: (H, W) int32 index of the quad seen, -1 for nothing.
    """

    depth: Float32
    disparity: Float32
    disparity_valid: Mask
    flow: Float32
    static_flow: Float32
    flow_valid: Mask
    moving: Mask
    surface: npt.NDArray[np.int32]


def depth(visible: Visibility) -> Float32:
    """(H, W) metres along the optical axis, inf for sky."""
    with np.errstate(divide="ignore"):
        metres: Float32 = np.float32(1.0) / visible.inverse_depth
    return metres


def flow(scene: Scene, first: Visibility, second: Visibility, *, static: bool = False) -> tuple[Float32, Mask]:
    """Flow (2, H, W) from the first view to the second, pixels, and where it is visible in the second.

    With X_2 = R X_1 + t and w = 1/z:  p_2 ~ K_2 R K_1^-1 p_1 + w K_2 t, exact for any depth, sky included.
    static: bodies stay where they were at the first view's time (the mask then says only what falls inside).
    """
    height, width = first.slot.shape
    before = scene.body_poses(first.view.time)
    after = before if static else scene.body_poses(second.view.time)
    camera = np.linalg.inv(second.view.world_from_camera)
    motion = camera @ after @ np.linalg.inv(before) @ first.view.world_from_camera  # (B, 4, 4) X_2 from X_1
    target, inverse_depth = _transfer(first, second, motion[WORLD])
    if not static and len(motion) > 1:
        body = np.append(np.maximum(scene.quads.body, WORLD), WORLD)[first.surface()]
        for index in range(1, len(motion)):
            on_body = body == index
            if on_body.any():
                moved, moved_depth = _transfer(first, second, motion[index])
                np.copyto(target, moved, where=on_body)
                np.copyto(inverse_depth, moved_depth, where=on_body)
    visible = _seen(first, second, target, inverse_depth)
    target[0] -= np.arange(width)
    target[1] -= np.arange(height)[:, None]
    return target.astype(np.float32), visible


def _transfer(first: Visibility, second: Visibility, motion: Float64) -> tuple[Float64, Float64]:
    """Pixel positions (2, H, W) in the second image and inverse depths (H, W) there of the first view's points."""
    height, width = first.slot.shape
    infinite = second.view.K @ motion[:3, :3] @ np.linalg.inv(first.view.K)
    shift = second.view.K @ motion[:3, 3]
    u, v = np.arange(width, dtype=np.float64), np.arange(height, dtype=np.float64)[:, None]
    w = first.inverse_depth.astype(np.float64)
    x, y, z = (infinite[i, 0] * u + (infinite[i, 1] * v + infinite[i, 2]) + shift[i] * w for i in range(3))
    behind = z <= 1e-9
    z[behind] = np.nan
    return np.stack([x / z, y / z]), w / z


def _seen(first: Visibility, second: Visibility, target: Float64, inverse_depth: Float64) -> Mask:
    """Where the point that moved to `target` is inside the second image and nothing is in front of it."""
    height, width = second.slot.shape
    with np.errstate(invalid="ignore"):
        inside = (target[0] >= 0) & (target[0] <= width - 1) & (target[1] >= 0) & (target[1] <= height - 1)
    column = np.rint(np.where(inside, target[0], 0)).astype(np.intp)
    row = np.rint(np.where(inside, target[1], 0)).astype(np.intp)
    # what the nearest pixel sees, on its plane, at the exact place of the point
    slot = second.slot[row, column]
    plane = np.concatenate([second.projected.matrix[:, 2], np.zeros((1, 3))])
    there = plane[slot, 0] * target[0] + plane[slot, 1] * target[1] + plane[slot, 2]
    same = np.append(second.projected.index, -1)[slot] == first.surface()
    with np.errstate(invalid="ignore"):
        unhidden = same | (there <= inverse_depth * 1.01 + SKY_INVERSE_DEPTH)
    visible: Mask = inside & unhidden
    return visible


def truth(scene: Scene, left: Visibility, right: Visibility, following: Visibility) -> Truth:
    """All of it, from the left view, the right view of the same instant and the next left view."""
    stereo, seen_right = flow(scene, left, right)
    real, seen_next = flow(scene, left, following)
    surface = left.surface()
    moving = np.append(scene.moving, False)[surface]
    static_flow = flow(scene, left, following, static=True)[0] if moving.any() else real
    return Truth(depth(left), -stereo[0], seen_right, real, static_flow, seen_next, moving, surface)
