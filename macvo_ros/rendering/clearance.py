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

"""Nobody walks through a camera, and no camera runs into a parked car or a tree: what is too near is left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

import numpy as np
import numpy.typing as npt

from macvo_ros.rendering.motion import Trajectory
from macvo_ros.rendering.projection import View
from macvo_ros.rendering.scene import WORLD, Quads, Scene

CLEARANCE = 1.0
"""Metres that people and cars keep from a camera."""
_STANDING = 0.5
"""Metres that a camera keeps from a parked car, a tree or a rock."""


def keep_clear(scene: Scene, views: Sequence[View], carrier: Trajectory) -> Scene:
    """The scene without what comes too near to one of the views; where nothing does, the same scene.

    carrier: the camera's own motion; what has the same is carried by it (a gripper) and stays.
    """
    quads, poses = scene.quads, np.stack([scene.body_poses(view.time) for view in views])  # (V, B, 4, 4)
    moving = [body for body in np.unique(quads.body[scene.moving]) if scene.motions[body - 1] is not carrier]
    parts = [(quads.body == body, poses[:, body], CLEARANCE) for body in moving]
    standing = np.unique(quads.obstacle[quads.obstacle > 0])
    parts += [(quads.obstacle == obstacle, poses[:, WORLD], _STANDING) for obstacle in standing]
    near = [part for part, pose, clearance in parts if _nearest(quads, part, pose, views) < clearance]
    if not near:
        return scene
    keep = ~np.any(near, axis=0)
    return replace(scene, quads=Quads(*(getattr(quads, field.name)[keep] for field in fields(Quads))))


def _nearest(quads: Quads, part: npt.NDArray[np.bool_], poses: npt.NDArray[np.float64], views: Sequence[View]) -> float:
    """Metres from the nearest of V views to a (Q,) part of the quads, whose body has (V, 4, 4) poses."""
    origin, side_s, side_t = (each[part] for each in (quads.origin, quads.side_s, quads.side_t))
    cameras = np.stack([view.world_from_camera for view in views])
    place = np.linalg.solve(poses, cameras)[:, :3, 3]
    offset = place[:, None] - origin  # (V, Q, 3)
    s, t = (
        np.clip((offset * side).sum(axis=-1) / (side * side).sum(axis=-1), 0, 1)[..., None] for side in (side_s, side_t)
    )
    return float(np.linalg.norm(offset - s * side_s - t * side_t, axis=-1).min())
