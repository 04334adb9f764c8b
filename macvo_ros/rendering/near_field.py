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

"""The near field: a bench or a wall full of small things, 0.1 to 0.7 m before the camera."""

from __future__ import annotations

import numpy as np

from macvo_ros.rendering import things
from macvo_ros.rendering.close_motion import Inspect
from macvo_ros.rendering.motion import Float64, Trajectory, random_rotation, rotation_z
from macvo_ros.rendering.palette import Palette
from macvo_ros.rendering.scene import Light, Scene, SceneBuilder

_BENCH = np.eye(3)  # axes of a work surface: ahead (or up), left, away from the surface
_WALL = np.array([[0.0, 0.0, -1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])


def bench(rng: np.random.Generator, palette: Palette, distance: float) -> tuple[Scene, Trajectory]:
    """A bench seen from above or a wall seen from before, with things on it, at `distance` metres.

    Everything is sized by the distance: a tile of texture is about as large as the image is wide there, hence a texel
    about a pixel. A third of the cameras see the fingers of the gripper that they are mounted on.
    """
    upright = rng.random() < 0.4
    frame = _WALL if upright else _BENCH
    by_hand = rng.random() < 0.65
    # a gripper needs room between the camera and the bench
    yaw, pitch = rng.normal(0, 0.25), rng.normal(0, 0.25) if upright else -rng.uniform(0.75 if by_hand else 1.0, 1.4)
    trajectory = Inspect(
        rng,
        distance,
        float(np.clip(yaw, -0.5, 0.5)),
        float(np.clip(pitch, -0.5, 0.5) if upright else pitch),
        roll=float(rng.normal(0, 0.2)),
        pace=float(np.exp(rng.uniform(np.log(0.5), np.log(2.5)))),
        shake=float(rng.uniform(0.5, 1.5)) if by_hand else 0.0,
    )
    lamp = rng.uniform([-0.6, -0.6, 0.5], [0.2, 0.6, 1.0], (1, 3))
    builder = SceneBuilder(Light(rng.uniform(0.45, 0.75), lamps=lamp, lamp_strength=rng.uniform(0.1, 0.5)))
    low, high = np.array([-2.5, -2.0, -0.8]), np.array([2.5, 2.0, 1.8])
    builder.room(
        low, high, palette.some("wall", 4), palette.one("floor"), palette.one("ceiling"), rng.uniform(1.0, 2.5)
    )
    slab = tuple(distance * rng.uniform([2.4, 3.0, 0.08], [5.0, 5.0, 0.2]))
    top = palette.one("wall" if upright else "floor")
    metres = distance * rng.uniform(0.6, 1.6)
    builder.box(frame @ [0.0, 0.0, -slab[2] / 2], slab, frame, [top], metres, rng, gloss=0.3 * (rng.random() < 0.1))
    _papers(builder, rng, palette, frame, distance)
    _objects(builder, rng, palette, frame, distance)
    if not by_hand:
        _gripper(builder, rng, palette, trajectory, distance)
    return builder.build(palette.atlas, palette.one("mirror")), trajectory


def _papers(builder: SceneBuilder, rng: np.random.Generator, palette: Palette, frame: Float64, distance: float) -> None:
    """Sheets that lie flat on the surface: labels, drawings, cloths."""
    for index in range(int(rng.integers(2, 7))):
        size = distance * rng.uniform(0.15, 0.7, 2)
        place = np.append(distance * rng.uniform([-0.6, -0.9], [0.9, 0.9]), distance * 0.003 * (index + 1))
        turn = rotation_z(rng.uniform(0, 2 * np.pi))
        a, b = turn[:, 0] * size[0], turn[:, 1] * size[1]
        texture = int(rng.choice([*palette.of("print"), *palette.of("thing")]))
        builder.quad(frame @ (place - a / 2 - b / 2), frame @ a, frame @ b, texture, float(size.max()))


def _objects(
    builder: SceneBuilder, rng: np.random.Generator, palette: Palette, frame: Float64, distance: float
) -> None:
    """Boxes that stand or hang on the surface, and rods across them; the highest reaches a quarter of the way."""
    goods = [*palette.of("thing"), *palette.of("print"), *palette.of("wall")]
    for _ in range(int(rng.integers(6, 26))):
        size = distance * np.exp(rng.uniform(np.log([0.05, 0.05, 0.02]), np.log([0.4, 0.4, 0.25])))
        place = np.append(distance * rng.uniform([-0.35, -1.0], [1.1, 1.0]), size[2] / 2)
        metres, gloss = distance * rng.uniform(0.4, 1.5), 0.4 if rng.random() < 0.15 else 0.0
        turn = frame @ rotation_z(rng.uniform(0, np.pi))
        builder.box(frame @ place, tuple(size), turn, things.pick(rng, goods, 3), metres, rng, gloss=gloss)
    for _ in range(int(rng.integers(0, 7))):  # cables, pens, pipes
        thick, length = distance * rng.uniform(0.01, 0.04), distance * rng.uniform(0.3, 1.5)
        place = np.append(distance * rng.uniform([-0.2, -0.7], [0.8, 0.7]), distance * rng.uniform(0.02, 0.2))
        tilt = random_rotation(rng) if rng.random() < 0.2 else rotation_z(rng.uniform(0, np.pi))
        size = np.array([min(length, 0.25 * distance) if tilt[2, 0] else length, thick, thick])
        builder.box(frame @ place, tuple(size), frame @ tilt, things.pick(rng, goods), 0.4 * distance, rng)


def _gripper(
    builder: SceneBuilder, rng: np.random.Generator, palette: Palette, camera: Trajectory, distance: float
) -> None:
    """Two fingers and a palm that move with the camera, in its optical frame (x right, y down)."""
    body = builder.body(camera)
    depth, gap = distance * rng.uniform(0.48, 0.56), distance * rng.uniform(0.08, 0.25)
    centre = distance * rng.uniform(-0.1, 0.2)
    skin, metres = things.pick(rng, palette.of("thing"), 2), distance * rng.uniform(0.3, 0.8)
    length, thick = distance * rng.uniform(0.15, 0.3), distance * rng.uniform(0.03, 0.08)
    bottom = 0.62 * depth  # below the lower edge of the image
    for side in (-1, 1):
        place = [centre + side * gap, bottom - length / 2, depth]
        builder.box(place, (thick, length, thick), np.eye(3), skin, metres, rng, gloss=0.2, body=body)
    palm = (2 * gap + 2 * thick, 0.3 * length, 1.5 * thick)
    builder.box([centre, bottom, depth], palm, np.eye(3), skin, metres, rng, body=body)
