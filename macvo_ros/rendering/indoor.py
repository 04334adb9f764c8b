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

"""Indoor scenes: a furnished room, an office corridor, a hall of floating shapes."""

from __future__ import annotations

import numpy as np

from macvo_ros.rendering import things
from macvo_ros.rendering.motion import ClosedPath, Flight, Pace, Trajectory, Walk, random_rotation
from macvo_ros.rendering.palette import Palette
from macvo_ros.rendering.scene import WORLD, Light, Scene, SceneBuilder


def lamps(rng: np.random.Generator, count: int, width: float, depth: float, height: float) -> Light:
    """Ceiling lamps over a floor of width x depth metres."""
    spots = rng.uniform([-width / 2, -depth / 2, height - 0.3], [width / 2, depth / 2, height - 0.1], (count, 3))
    return Light(ambient=rng.uniform(0.5, 0.75), sun_strength=0.2, lamps=spots, lamp_strength=1.6 / count)


def room(rng: np.random.Generator, palette: Palette, people: int = 0, shake: float = 1.0) -> tuple[Scene, Trajectory]:
    """A furnished room of about 8 x 7 m, walked through with a camera in the hand."""
    width, depth, height = rng.uniform(7.5, 10), rng.uniform(6.5, 8.5), rng.uniform(2.6, 3.4)
    builder = SceneBuilder(lamps(rng, 3, width - 2, depth - 2, height))
    low, high = np.array([-width / 2, -depth / 2, 0.0]), np.array([width / 2, depth / 2, height])
    floor, ceiling = palette.one("floor"), palette.one("ceiling")
    builder.room(low, high, palette.some("wall", 4), floor, ceiling, metres=rng.uniform(2.5, 4.0))
    goods, prints = palette.of("thing"), palette.of("print")
    for _ in range(int(rng.integers(6, 12))):  # pictures on the four walls
        wall = int(rng.integers(4))
        right = np.array([(-1.0, 0, 0), (0, -1.0, 0), (1.0, 0, 0), (0, 1.0, 0)][wall])
        normal = np.cross(right, [0, 0, 1.0])
        span, away = (width, depth) if wall % 2 == 0 else (depth, width)
        centre = -normal * away / 2 + right * rng.uniform(-0.42, 0.42) * span + [0, 0, rng.uniform(1.1, height - 0.6)]
        gloss = 0.4 if rng.random() < 0.25 else 0.0
        size = (rng.uniform(0.3, 1.4), rng.uniform(0.3, 1.0))
        things.picture(builder, centre, right, size, rng.choice(prints), gloss)
    things.patch(builder, rng.uniform(-1, 1, 2), (2.6, 1.8), rng.uniform(0, 3), rng.choice(goods), 1.8)
    for _ in range(int(rng.integers(14, 22))):  # against the walls, off the path
        angle = rng.uniform(0, 2 * np.pi)
        edge = np.clip(np.array([np.cos(angle), np.sin(angle)]) * 1.3, -1, 1)
        place = edge * np.array([width / 2 - 0.6, depth / 2 - 0.6])
        kind = rng.random()
        if kind < 0.5:
            things.crate(builder, rng, place, goods)
        elif kind < 0.75:
            things.table(builder, rng, place, goods)
        elif kind < 0.85:
            things.pole(builder, rng, place, height, rng.uniform(0.03, 0.1), rng.choice(goods))
        else:
            yaw = np.round((np.arctan2(-edge[1], -edge[0])) / (np.pi / 2)) * np.pi / 2
            things.shelf(builder, rng, place, float(yaw), goods)
    for _ in range(int(rng.integers(1, 4))):
        things.crate(builder, rng, rng.uniform(-0.35, 0.35, 2), goods)
    for _ in range(people):
        start = rng.uniform([-width / 3, -depth / 3], [width / 3, depth / 3])
        motion = Pace(rng, [*start, 0.0], [*rng.normal(0, 0.9, 2), 0.0], rng.uniform(0.12, 0.25))
        things.person(builder, rng, goods, builder.body(motion))
    a, b = width / 2 - 1.9, depth / 2 - 1.9
    path = ClosedPath([(a, b), (-a, b), (-a, -b), (a, -b)], rounding=0.7)
    return builder.build(palette.atlas, palette.one("mirror")), Walk(rng, path, 1.45, shake=shake)


def corridor(rng: np.random.Generator, palette: Palette, people: int = 0) -> tuple[Scene, Trajectory]:
    """An office floor: a corridor of two metres around a core, doors, notices, pipes, things left standing."""
    length, depth, wide, height = rng.uniform(16, 24), rng.uniform(10, 14), rng.uniform(1.9, 2.6), rng.uniform(2.4, 2.9)
    builder = SceneBuilder(lamps(rng, 8, length, depth, height))
    floor, ceiling, wall = palette.one("floor"), palette.one("ceiling"), palette.one("wall")
    metres = rng.uniform(2.0, 3.5)
    low, high = np.array([-length / 2, -depth / 2, 0.0]), np.array([length / 2, depth / 2, height])
    builder.room(low, high, [wall, *palette.some("wall", 1)], floor, ceiling, metres)
    core = (length - 2 * wide, depth - 2 * wide, height)
    builder.box([0, 0, height / 2], core, np.eye(3), [wall], metres, rng)
    goods, prints, up = palette.of("thing"), palette.of("print"), np.array([0.0, 0.0, 1.0])
    for side in range(8):  # both walls of the four legs
        turn = side % 4
        outer = side < 4
        right = np.array([(-1.0, 0, 0), (0, -1.0, 0), (1.0, 0, 0), (0, 1.0, 0)][turn]) * (1 if outer else -1)
        normal = np.cross(right, [0, 0, 1.0])
        span, away = (length, depth) if turn % 2 == 0 else (depth, length)
        away = away / 2 if outer else away / 2 - wide
        if not outer:
            span -= 2 * wide
        foot = -normal * away if outer else normal * away
        at = -span / 2 + rng.uniform(0.5, 1.5)
        while at < span / 2 - 0.5:
            centre = foot + right * at
            if rng.random() < 0.5:
                door = (rng.uniform(0.8, 1.0), rng.uniform(1.95, 2.1))
                gloss = 0.3 if rng.random() < 0.3 else 0.0
                things.picture(builder, centre + up * door[1] / 2, right, door, rng.choice(goods), gloss)
            else:
                size = (rng.uniform(0.2, 1.0), rng.uniform(0.2, 0.8))
                things.picture(builder, centre + up * rng.uniform(1.2, 1.8), right, size, rng.choice(prints))
            if outer and rng.random() < 0.3:
                stand = centre + normal * 0.25
                builder.box([*stand[:2], 0.4], (0.4, 0.4, 0.8), np.eye(3), things.pick(rng, goods, 2), 0.8, rng)
            at += rng.uniform(1.0, 2.6)
    a, b = (length - wide) / 2, (depth - wide) / 2
    path = ClosedPath([(a, b), (-a, b), (-a, -b), (a, -b)], rounding=0.6)
    for _ in range(people):
        corner = rng.integers(4)
        spot = np.array([(a, 0.0), (0.0, b), (-a, 0.0), (0.0, -b)][corner])
        reach = np.array([0, b / 2, 0]) if corner % 2 == 0 else np.array([a / 2, 0, 0])
        motion = Pace(rng, [*spot, 0.0], reach, rng.uniform(0.05, 0.1))
        things.person(builder, rng, goods, builder.body(motion))
    return builder.build(palette.atlas, palette.one("mirror")), Walk(rng, path, 1.4, speed=0.75, look=0.15)


def shapes(rng: np.random.Generator, palette: Palette, movers: int = 0) -> tuple[Scene, Trajectory]:
    """A hall full of floating boxes, sheets and rods of all sizes, flown through: nothing is upright or regular."""
    half = np.array([rng.uniform(4, 12), rng.uniform(4, 12), rng.uniform(3, 6)])
    builder = SceneBuilder(lamps(rng, 4, half[0], half[1], half[2]))
    everything = [*palette.of("thing"), *palette.of("wall"), *palette.of("print")]
    walls = [int(rng.choice(everything)) for _ in range(4)]
    builder.room(-half, half, walls, int(rng.choice(everything)), int(rng.choice(everything)), rng.uniform(2, 6))
    for index in range(int(rng.integers(60, 140)) + movers):
        place = rng.uniform(-half, half) * np.exp(rng.uniform(-1.2, 0.0))  # denser where the camera is
        size = np.exp(rng.uniform(np.log(0.1), np.log(2.6), 3))
        if rng.random() < 0.25:
            size[:2] = rng.uniform(0.02, 0.06)  # rods
        clear = np.linalg.norm(place / np.array([2.2, 2.2, 1.2])) > 1.0 + 0.5 * size.max()
        if not clear:
            continue
        body = WORLD
        if index < movers:
            body = builder.body(Pace(rng, place, rng.normal(0, 0.8, 3), rng.uniform(0.1, 0.4), spin=0.8))
            place = np.zeros(3)
        gloss = 0.4 if rng.random() < 0.06 else 0.0
        textures = things.pick(rng, everything, 3)
        metres = rng.uniform(0.4, 2.0)
        builder.box(place, tuple(size), random_rotation(rng), textures, metres, rng, gloss=gloss, body=body)
    flight = Flight(rng, np.zeros(3), [0.7, 0.7, 0.35], pace=rng.uniform(0.5, 2.0))
    return builder.build(palette.atlas, palette.one("mirror")), flight
