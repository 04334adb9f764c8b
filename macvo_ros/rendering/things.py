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

"""Things to put into scenes: furniture, pictures, poles, people, cars, trees, houses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from macvo_ros.rendering.motion import random_rotation, rotation_z
from macvo_ros.rendering.scene import WORLD, SceneBuilder

Float64 = npt.NDArray[np.float64]
Textures = Sequence[int]


def pick(rng: np.random.Generator, textures: Textures, count: int = 1) -> list[int]:
    """Some of the textures, with repetition."""
    return [textures[i] for i in rng.integers(0, len(textures), count)]


def crate(builder: SceneBuilder, rng: np.random.Generator, place: npt.ArrayLike, textures: Textures) -> None:
    """A box on the ground at place (2,), sometimes with another on top."""
    x, y = np.asarray(place, np.float64)
    size = rng.uniform([0.2, 0.2, 0.2], [0.9, 0.7, 1.8])
    bottom = 0.0
    for _ in range(1 + int(rng.random() < 0.3)):
        turn, metres = rotation_z(rng.uniform(0, np.pi)), rng.uniform(0.5, 1.6)
        builder.box([x, y, bottom + size[2] / 2], tuple(size), turn, pick(rng, textures, 2), metres, rng)
        bottom += size[2]
        size = size * rng.uniform(0.3, 0.9, 3)


def table(builder: SceneBuilder, rng: np.random.Generator, place: npt.ArrayLike, textures: Textures) -> None:
    """A top on four thin legs, with small things on it."""
    x, y = np.asarray(place, np.float64)
    turn, height = rotation_z(rng.uniform(0, np.pi)), rng.uniform(0.5, 0.95)
    width, depth, leg = rng.uniform(0.6, 1.3), rng.uniform(0.5, 0.8), rng.uniform(0.03, 0.07)
    wood = pick(rng, textures)
    builder.box([x, y, height], (width, depth, 0.04), turn, wood, 1.2, rng)
    for i in (-0.45, 0.45):
        for j in (-0.45, 0.45):
            foot = turn @ [i * width, j * depth, 0.0]
            builder.box([x + foot[0], y + foot[1], height / 2], (leg, leg, height), turn, wood, 0.6, rng)
    for _ in range(int(rng.integers(1, 5))):
        spot = turn @ [rng.uniform(-0.4, 0.4) * width, rng.uniform(-0.4, 0.4) * depth, 0.0]
        size = rng.uniform(0.05, 0.35, 3)
        centre = [x + spot[0], y + spot[1], height + 0.02 + size[2] / 2]
        builder.box(centre, tuple(size), rotation_z(rng.uniform(0, 6)), pick(rng, textures, 2), 0.5, rng)


def shelf(
    builder: SceneBuilder, rng: np.random.Generator, place: npt.ArrayLike, yaw: float, textures: Textures
) -> None:
    """Boards between two uprights, full of books; its back at place (2,), its front along yaw."""
    turn = rotation_z(yaw)
    base = np.append(np.asarray(place, np.float64), 0.0)
    width, depth, boards = rng.uniform(0.8, 1.4), 0.3, int(rng.integers(3, 6))
    gap, wood = rng.uniform(0.32, 0.42), pick(rng, textures)
    for side in (-0.5, 0.5):
        centre = base + turn @ [depth / 2, side * width, gap * boards / 2]
        builder.box(centre, (depth, 0.03, gap * boards), turn, wood, 1.0, rng)
    for board in range(boards + 1):
        centre = base + turn @ [depth / 2, 0.0, board * gap]
        builder.box(centre, (depth, width, 0.025), turn, wood, 1.0, rng)
        along = -0.48 * width
        while board < boards and along < 0.42 * width:
            thick, tall, deep = rng.uniform(0.03, 0.22), rng.uniform(0.5, 0.9) * gap, rng.uniform(0.5, 0.95) * depth
            if rng.random() < 0.85:
                centre = base + turn @ [deep / 2, along + thick / 2, board * gap + tall / 2 + 0.0125]
                builder.box(centre, (deep, thick, tall), turn, pick(rng, textures, 2), rng.uniform(0.3, 0.8), rng)
            along += thick + 0.005


def picture(
    builder: SceneBuilder,
    centre: npt.ArrayLike,
    right: Float64,
    size: tuple[float, float],
    texture: int,
    gloss: float = 0,
) -> None:
    """A sheet one centimetre in front of a wall, its texture once across; right: (3,) unit vector along the wall."""
    along, up = np.asarray(right) * size[0], np.array([0.0, 0.0, size[1]])
    normal = np.cross(right, [0.0, 0.0, 1.0])
    origin = np.asarray(centre) + 0.01 * normal - along / 2 - up / 2
    builder.quad(origin, along, up, texture, max(size), gloss=gloss)


def patch(
    builder: SceneBuilder, place: npt.ArrayLike, size: tuple[float, float], yaw: float, texture: int, metres: float
) -> None:
    """A rug, road marking or manhole one centimetre above the ground, centred at place (2,)."""
    turn = rotation_z(yaw)
    along, across = turn[:, 0] * size[0], turn[:, 1] * size[1]
    builder.quad(np.append(place, 0.01) - along / 2 - across / 2, along, across, texture, metres)


def pole(
    builder: SceneBuilder, rng: np.random.Generator, place: npt.ArrayLike, height: float, thickness: float, texture: int
) -> None:
    """Something thin and upright at place (2,)."""
    x, y = np.asarray(place, np.float64)
    turn = rotation_z(rng.uniform(0, np.pi))
    builder.box([x, y, height / 2], (thickness, thickness, height), turn, [texture], 10 * thickness, rng)


def person(builder: SceneBuilder, rng: np.random.Generator, textures: Textures, body: int = WORLD) -> None:
    """Legs, trunk, arms and head of boxes, standing at the body's origin, facing x."""
    height = rng.uniform(1.55, 1.9)
    cloth, trousers = pick(rng, textures), pick(rng, textures)
    parts = (
        ((0.06, 0.11, 0.24), (0.16, 0.15, 0.48), trousers),
        ((-0.06, -0.11, 0.24), (0.16, 0.15, 0.48), trousers),
        ((0.0, 0.0, 0.66), (0.24, 0.42, 0.36), cloth),
        ((0.05, 0.27, 0.62), (0.12, 0.11, 0.36), cloth),
        ((-0.05, -0.27, 0.62), (0.12, 0.11, 0.36), cloth),
        ((0.0, 0.0, 0.93), (0.2, 0.17, 0.14), pick(rng, textures)),
    )
    for (x, y, z), (dx, dy, dz), skin in parts:
        builder.box([x, y, z * height], (dx, dy, dz * height), np.eye(3), skin, 0.6, rng, body=body)


def car(
    builder: SceneBuilder, rng: np.random.Generator, textures: Textures, glass: int, pose: Float64, body: int = WORLD
) -> None:
    """Chassis, cabin and wheels; pose (4, 4) in the frame of the body, x ahead."""
    length, width, scale = rng.uniform(3.6, 4.8), rng.uniform(1.65, 1.85), rng.uniform(0.9, 1.3)
    turn, paint = pose[:3, :3], pick(rng, textures)
    parts = [
        ((0.0, 0.0, 0.55 * scale), (length, width, 0.6 * scale), paint, 0.35),
        ((-0.3, 0.0, 1.1 * scale), (0.55 * length, 0.88 * width, 0.5 * scale), [glass], 0.5),
        ((-0.3, 0.0, 1.37 * scale), (0.5 * length, 0.86 * width, 0.05 * scale), paint, 0.35),
    ]
    for i in (-0.32, 0.32):
        for j in (-0.46, 0.46):
            parts.append(((i * length, j * width, 0.3), (0.6, 0.2, 0.6), [glass], 0.0))
    for offset, size, texture, gloss in parts:
        centre = pose[:3, 3] + turn @ np.array(offset)
        builder.box(centre, size, turn, texture, 2.0, rng, gloss=gloss, body=body)


def tree(
    builder: SceneBuilder, rng: np.random.Generator, place: npt.ArrayLike, height: float, bark: int, leaves: Textures
) -> None:
    """A trunk and a crown of many leafy sheets."""
    x, y = np.asarray(place, np.float64)
    thickness = 0.035 * height
    trunk = (thickness, thickness, 0.6 * height)
    builder.box([x, y, 0.3 * height], trunk, rotation_z(rng.uniform(0, 3)), [bark], 1.5, rng)
    spread = height * rng.uniform(0.18, 0.32)
    for _ in range(int(rng.integers(30, 60))):
        direction = rng.standard_normal(3)
        direction /= np.linalg.norm(direction)
        centre = np.array([x, y, 0.68 * height]) + direction * spread * rng.uniform(0.3, 1.0) * [1, 1, 1.2]
        turn = random_rotation(rng)
        a, b = turn[:, 0] * spread * rng.uniform(0.3, 0.7), turn[:, 1] * spread * rng.uniform(0.3, 0.7)
        phase = (float(rng.uniform()), float(rng.uniform()))
        builder.quad(centre - a / 2 - b / 2, a, b, pick(rng, leaves)[0], 1.6, phase=phase, two_sided=True)


def house(
    builder: SceneBuilder, centre: npt.ArrayLike, size: tuple[float, float, float], yaw: float, front: int, roof: int
) -> None:
    """A block with the facade texture once per about eight metres on its walls."""
    x, y = np.asarray(centre, np.float64)
    turn = rotation_z(yaw)
    a, b, up = turn[:, 0] * size[0], turn[:, 1] * size[1], np.array([0.0, 0.0, size[2]])
    middle = np.array([x, y, 0.0])
    for along, outward in ((b, a), (-a, b), (-b, -a), (a, -b)):
        builder.quad(middle + outward / 2 - along / 2, along, up, front, 9.0)
    builder.quad(middle - a / 2 - b / 2 + up, a, b, roof, 6.0)
