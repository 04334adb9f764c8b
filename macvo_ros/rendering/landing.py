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

"""A workshop hall seen by a small drone that stands on a floor or on boards, takes off, flies low and lands."""

from __future__ import annotations

import itertools

import numpy as np

from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.rendering import things
from macvo_ros.rendering.close_motion import Hop
from macvo_ros.rendering.motion import Float64, Trajectory, rotation_z
from macvo_ros.rendering.palette import Palette
from macvo_ros.rendering.scene import Light, Scene, SceneBuilder


def standing_height(camera: StereoCamera, pitch: float, disparity: float) -> float:
    """Metres of a camera with that pitch (radians, up) over a floor of that disparity at the image's lower edge."""
    below = np.arctan((camera.height - 1 - camera.cy) / camera.fy)  # the lowest ray, under the optical axis
    depth = camera.fx * camera.baseline / disparity
    return float(depth * np.sin(below - pitch) / np.cos(below))


def hall(rng: np.random.Generator, palette: Palette, camera: StereoCamera) -> tuple[Scene, Trajectory]:
    """Pallets, crates, pipes and rails around the spot that the drone stands on."""
    pitch = -float(rng.uniform(0.05, 0.3))
    eye = standing_height(camera, pitch, float(rng.uniform(130, 250)))
    ground = 0.0 if rng.random() < 0.4 else float(rng.uniform(0.12, 0.9))
    hop = Hop(rng, [0.0, 0.0, ground + eye], pitch, lift=float(rng.uniform(0.3, 1.0)))
    half = np.array([rng.uniform(5, 8), rng.uniform(4, 7), 0.0])
    height = rng.uniform(3, 5)
    sun = np.array([*rng.normal(0, 0.3, 2), 1.0])
    light = Light(rng.uniform(0.25, 0.5), sun / np.linalg.norm(sun), rng.uniform(0.35, 0.7))  # from above: dark walls
    builder = SceneBuilder(light)
    walls, metres = palette.some("wall", 4), rng.uniform(1.5, 3.5)
    builder.room(-half, half + np.array([0, 0, height]), walls, None, palette.one("ceiling"), metres)
    builder.quad(-half, [2 * half[0], 0, 0], [0, 2 * half[1], 0], palette.one("floor"), rng.uniform(0.4, 1.2))
    if ground:
        length, width = rng.uniform(1.3, 3.0), rng.uniform(1.2, 2.2)
        ahead = rotation_z(hop.heading)[:2, 0] * (length / 2 - 0.45)
        _pallet(
            builder, rng, palette, ahead, (length, width), ground, hop.heading + rng.choice([0, 0.5, 1]) * np.pi / 2
        )
    _low_things(builder, rng, palette, 0.0 if not ground else 0.9)
    _tall_things(builder, rng, palette, half[:2], height)
    return builder.build(palette.atlas, palette.one("mirror")), hop


def _pallet(
    builder: SceneBuilder,
    rng: np.random.Generator,
    palette: Palette,
    place: Float64,
    size: tuple[float, float],
    top: float,
    yaw: float,
) -> None:
    """Boards side by side with gaps, on blocks; centred at place (2,), their upper side at `top` metres."""
    turn = rotation_z(float(yaw))
    length, width = size
    wide, gap, thick = rng.uniform(0.09, 0.24), rng.uniform(0.004, 0.08), rng.uniform(0.018, 0.03)
    metres = rng.uniform(0.25, 0.7)
    woods = things.pick(rng, palette.of("board"), 1 if rng.random() < 0.7 else 3)
    x, y = place
    for side in np.arange(-width / 2, width / 2 - wide, wide + gap):
        shift = turn @ [rng.normal(0, 0.02), side + wide / 2, 0.0]
        skew = turn @ rotation_z(rng.normal(0, 0.006))
        board = (length, wide, thick)
        centre = [x + shift[0], y + shift[1], top - thick / 2 - abs(rng.normal(0, 0.002))]
        builder.box(centre, board, skew, things.pick(rng, woods), metres, rng)
    under = max(top - thick - 0.004, 0.02)
    for along, across in itertools.product((-0.45, 0.0, 0.45), repeat=2):
        shift = turn @ [along * length, across * width, 0.0]
        builder.box([x + shift[0], y + shift[1], under / 2], (0.12, 0.1, under), turn, woods, metres, rng)


def _low_things(builder: SceneBuilder, rng: np.random.Generator, palette: Palette, clear: float) -> None:
    """Pallets, boxes, cables and tape on the floor; nothing nearer than 0.55 m or higher than 0.2 m before 1.3 m."""
    goods = [*palette.of("thing"), *palette.of("board")]
    for _ in range(int(rng.integers(10, 26))):
        angle, reach = rng.uniform(0, 2 * np.pi), rng.uniform(max(0.75, clear), 3.0)
        place = reach * np.array([np.cos(angle), np.sin(angle)])
        tallest = 0.2 if reach < 1.5 else 0.5
        size = np.append(rng.uniform(0.03, 0.3, 2), rng.uniform(0.03, tallest))
        turn, metres = rotation_z(rng.uniform(0, np.pi)), rng.uniform(0.25, 0.8)
        builder.box([*place, size[2] / 2], tuple(size), turn, things.pick(rng, goods, 2), metres, rng)
    for _ in range(int(rng.integers(2, 7))):
        angle, reach = rng.uniform(0, 2 * np.pi), rng.uniform(2.2, 4.0)
        place = reach * np.array([np.cos(angle), np.sin(angle)])
        sides = (rng.uniform(0.8, 1.2), rng.uniform(0.8, 1.2))
        _pallet(builder, rng, palette, place, sides, rng.choice([0.14, 0.28, 0.7]), rng.uniform(0, np.pi))
    for _ in range(int(rng.integers(3, 10))):  # tape, stains, mats
        spot, sheet = rng.uniform(-2.5, 2.5, 2), (rng.uniform(0.05, 1.2), rng.uniform(0.03, 0.3))
        things.patch(builder, spot, sheet, rng.uniform(0, np.pi), rng.choice(goods), rng.uniform(0.3, 0.8))


def _tall_things(
    builder: SceneBuilder,
    rng: np.random.Generator,
    palette: Palette,
    half: Float64,
    height: float,
) -> None:
    """Shelves, tables, machines, pipes and rails, farther than 2.5 m and mostly along the walls."""
    goods, metal, prints = palette.of("thing"), palette.of("metal"), palette.of("print")
    for _ in range(int(rng.integers(24, 45))):
        angle = rng.uniform(0, 2 * np.pi)
        way = np.array([np.cos(angle), np.sin(angle)])
        place = way * max(2.6, rng.uniform(0.5, 0.95) * float(np.min((half - 0.4) / np.maximum(np.abs(way), 0.1))))
        kind = rng.random()
        if kind < 0.3:
            things.crate(builder, rng, place, [*goods, *prints])
        elif kind < 0.45:
            things.table(builder, rng, place, goods)
        elif kind < 0.6:
            things.shelf(builder, rng, place, float(angle + np.pi), [*goods, *prints])
        elif kind < 0.75:
            things.pole(builder, rng, place, height, rng.uniform(0.04, 0.3), rng.choice(metal))
        else:  # a rail, or a pipe under the ceiling
            pipe = rng.random() < 0.5
            thick, level = (rng.uniform(0.2, 0.6), height * rng.uniform(0.3, 0.9)) if pipe else (0.04, 1.0)
            turn = rotation_z(angle + np.pi / 2)
            size = (rng.uniform(1.5, 5), thick, thick)
            builder.box([*place, level], size, turn, [rng.choice(metal)], 1.0, rng, gloss=0.5)
            for end in () if pipe else (-0.5, 0.0, 0.5):
                foot = place + turn[:2, 0] * end * size[0]
                things.pole(builder, rng, foot, 1.0, 0.04, rng.choice(metal))
