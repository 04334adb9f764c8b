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

"""A motorway: fast, far, and full of things that repeat."""

from __future__ import annotations

import numpy as np

from macvo_ros.rendering import things
from macvo_ros.rendering.motion import ClosedPath, Drive, Float64, Follow, Trajectory, random_rotation, rotation_z
from macvo_ros.rendering.outdoor import lane_points, sunlight
from macvo_ros.rendering.palette import Palette
from macvo_ros.rendering.scene import Scene, SceneBuilder

_LANE = 3.7  # metres
_MIDDLE = 1.5  # half the reservation between the carriageways
_EDGE = _MIDDLE + 3 * _LANE  # where the hard shoulder ends


def motorway(rng: np.random.Generator, palette: Palette, traffic: int = 20) -> tuple[Scene, Trajectory]:
    """A ring of about 1.6 km with guard rails, posts, lamps, noise walls, bridges and traffic; 20 to 30 m/s."""
    angle = np.linspace(0, 2 * np.pi, 128, endpoint=False)
    radius = rng.uniform(230, 280) * (1 + 0.04 * np.cos(2 * angle + rng.uniform(0, 6)))
    path = ClosedPath(np.stack([np.cos(angle), np.sin(angle)], axis=1) * radius[:, None], rounding=10.0)
    builder = SceneBuilder(sunlight(rng))
    far = 900.0
    builder.quad([-far, -far, 0], [2 * far, 0, 0], [0, 2 * far, 0], palette.one("plant"), rng.uniform(4, 8))
    _surface(builder, rng, palette, path)
    rail, thing = palette.one("wall"), palette.of("thing")
    _rail(builder, rng, path, 0.0, rail, concrete=rng.random() < 0.4)
    for side in (-1, 1):
        if rng.random() < 0.75:
            _rail(builder, rng, path, side * (_EDGE + 0.6), rail)
        _row(builder, rng, path, side * (_EDGE + 0.9), rng.uniform(25, 50), 1.0, 0.12, palette.one("print"))
        if rng.random() < 0.5:
            _row(builder, rng, path, side * (_EDGE + 2.0), rng.uniform(30, 45), 9.0, 0.2, rng.choice(thing))
        _roadside(builder, rng, palette, path, side)
    own = ClosedPath(lane_points(path, -_MIDDLE - 1.5 * _LANE), 2.0)
    drive = Drive(rng, own, rng.uniform(1.3, 1.8), rng.uniform(19, 26))
    for index in range(traffic):
        oncoming = index % 2 == 0
        left = rng.choice([0.5, 1.5]) * _LANE + _MIDDLE if oncoming else -_MIDDLE - rng.choice([0.5, 2.5]) * _LANE
        speed, start = rng.uniform(20, 32), float(rng.uniform(0, path.length))
        motion = Follow(rng, ClosedPath(lane_points(path, float(left)), 2.0), -speed if oncoming else speed, start)
        things.car(builder, rng, thing, palette.one("mirror"), np.eye(4), builder.body(motion))
    builder.sky(palette.of("sky"))
    return builder.build(palette.atlas, palette.one("sky")), drive


def _strip(
    builder: SceneBuilder,
    path: ClosedPath,
    at: float,
    length: float,
    across: tuple[float, float],
    look: tuple[float, int, float],
) -> None:
    """A flat piece of road centred `at` metres along the path, from across[0] to across[1] metres to its left.

    look: height in metres, texture and metres of a tile.
    """
    x, y, heading = path(at)
    turn = rotation_z(heading)
    along, left = turn[:, 0] * length, turn[:, 1]
    height, texture, metres = look
    origin = np.array([x, y, height]) - along / 2 + left * across[0]
    builder.quad(origin, along, left * (across[1] - across[0]), texture, metres, phase=(at / metres, 0.0))


def _surface(builder: SceneBuilder, rng: np.random.Generator, palette: Palette, path: ClosedPath) -> None:
    """Both carriageways, their edge lines and the broken lines between the lanes."""
    asphalt, paint, metres = palette.one("road"), palette.one("ceiling"), rng.uniform(3, 7)
    for index, at in enumerate(np.arange(0, path.length, 12.0)):
        for side in (-1, 1):
            inner, outer = sorted((side * (_MIDDLE - 0.5), side * (_EDGE + 0.4)))
            _strip(builder, path, at, 13.0, (inner, outer), (0.02 + 0.004 * (index % 2), asphalt, metres))
            for edge in (_MIDDLE, _MIDDLE + 2 * _LANE):
                line = (side * edge - 0.08, side * edge + 0.08)
                _strip(builder, path, at, 12.1, line, (0.04, paint, 2.0))
    for at in np.arange(0, path.length, 18.0):
        for side in (-1, 1):
            middle = side * (_MIDDLE + _LANE)
            _strip(builder, path, at, 6.0, (middle - 0.08, middle + 0.08), (0.04, paint, 2.0))


def _rail(
    builder: SceneBuilder, rng: np.random.Generator, path: ClosedPath, left: float, texture: int, concrete: bool = False
) -> None:
    """A guard rail on posts every four metres, or a wall of concrete pieces, `left` of the path."""
    up = np.array([0.0, 0.0, 1.0])
    for at in np.arange(0, path.length, 4.0):
        x, y, heading = path(at)
        turn = rotation_z(heading)
        spot = np.array([x, y, 0.0]) + turn[:, 1] * left
        if concrete:
            builder.box(spot + 0.45 * up, (4.1, 0.35, 0.9), turn, [texture], 2.0, rng)
        else:
            builder.box(spot + 0.6 * up, (4.1, 0.08, 0.31), turn, [texture], 1.0, rng, gloss=0.2)
            builder.box(spot + 0.36 * up, (0.1, 0.16, 0.72), turn, [texture], 1.0, rng)


def _row(
    builder: SceneBuilder,
    rng: np.random.Generator,
    path: ClosedPath,
    left: float,
    spacing: float,
    height: float,
    thickness: float,
    texture: int,
) -> None:
    """Poles at equal distances: delineators or lamps."""
    for at in np.arange(0, path.length, spacing):
        x, y, heading = path(at)
        place = np.array([x - left * np.sin(heading), y + left * np.cos(heading)])
        things.pole(builder, rng, place, height, thickness, texture)


def _roadside(builder: SceneBuilder, rng: np.random.Generator, palette: Palette, path: ClosedPath, side: int) -> None:
    """Trees, bushes, signs, stretches of noise wall and bridges beyond the rail; side: 1 left, -1 right."""
    at, wall_until = rng.uniform(0, 20), 0.0
    plants, thing, wall = palette.of("plant"), palette.of("thing"), palette.one("wall")
    while at < path.length:
        x, y, heading = path(at)
        turn = rotation_z(heading)
        away = turn[:, 1] * side
        if at < wall_until:
            spot = np.array([x, y, 2.0]) + away * (_EDGE + 5)
            builder.box(spot, (4.2, 0.2, 4.0), turn, [wall], 3.0, rng)
            at += 4.0
            continue
        kind, spot = rng.random(), np.array([x, y, 0.0]) + away * (_EDGE + rng.uniform(4, 14))
        if kind < 0.35:
            _bush(builder, rng, spot, rng.uniform(1.5, 4.0), plants)
        elif kind < 0.8:
            things.tree(builder, rng, spot[:2], rng.uniform(6, 14), rng.choice(thing), plants)
        elif kind < 0.9:
            board = (0.06, rng.uniform(1.0, 4.0), rng.uniform(0.8, 2.5))
            spot = np.array([x, y, 3.0]) + away * (_EDGE + 3)
            builder.box(spot, board, turn, things.pick(rng, palette.of("print")), 3.0, rng)
            things.pole(builder, rng, spot[:2] + away[:2] * 0.1, 2.6, 0.15, rng.choice(thing))
        elif kind < 0.94:
            wall_until = at + rng.uniform(60, 160)
        elif kind < 0.96 and side == 1:
            builder.box([x, y, 6.0], (rng.uniform(3, 9), 2 * _EDGE + 8, 1.0), turn, [wall], 3.0, rng)
        at += rng.uniform(6, 16)


def _bush(
    builder: SceneBuilder,
    rng: np.random.Generator,
    place: Float64,
    size: float,
    leaves: list[int],
) -> None:
    """A heap of leafy sheets on the ground at place (3,)."""
    for _ in range(10):
        turn = random_rotation(rng)
        a, b = turn[:, 0] * size * rng.uniform(0.4, 0.9), turn[:, 1] * size * rng.uniform(0.4, 0.9)
        centre = place + rng.normal(0, 0.35, 3) * size * [1, 1, 0.4] + [0, 0, 0.4 * size]
        phase = (float(rng.uniform()), float(rng.uniform()))
        builder.quad(centre - a / 2 - b / 2, a, b, things.pick(rng, leaves)[0], 1.6, phase=phase, two_sided=True)
