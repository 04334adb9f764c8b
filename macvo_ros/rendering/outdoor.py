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

"""Outdoor scenes under a sky: a city block driven around, a park walked or flown through."""

from __future__ import annotations

import itertools

import numpy as np

from macvo_ros.rendering import things
from macvo_ros.rendering.motion import ClosedPath, Drive, Flight, Follow, Trajectory, Walk, random_rotation, rotation_z
from macvo_ros.rendering.palette import Palette
from macvo_ros.rendering.scene import Light, Scene, SceneBuilder


def sunlight(rng: np.random.Generator) -> Light:
    """The sun somewhere above the horizon, and the light of the sky."""
    height, azimuth = rng.uniform(0.3, 1.2), rng.uniform(0, 2 * np.pi)
    sun = np.array([np.cos(height) * np.cos(azimuth), np.cos(height) * np.sin(azimuth), np.sin(height)])
    strength = rng.uniform(0.15, 0.65)
    return Light(ambient=1.0 - strength, sun=sun, sun_strength=1.1 * strength)


def street(rng: np.random.Generator, palette: Palette, traffic: int = 2) -> tuple[Scene, Trajectory]:
    """A city block of about 110 x 80 m: houses on both sides, trees, lamps, parked and moving cars, lane marks."""
    a, b = rng.uniform(48, 60), rng.uniform(34, 44)
    corners = [(a, b), (-a, b), (-a, -b), (a, -b)]
    path = ClosedPath(corners, rounding=rng.uniform(4, 7))
    road, kerb = rng.uniform(4.2, 5.5), rng.uniform(2.0, 4.0)  # half the carriageway, and the pavement
    builder = SceneBuilder(sunlight(rng))
    asphalt, pavement, paint = palette.one("road"), palette.one("floor"), palette.one("ceiling")
    goods, glass = palette.of("thing"), palette.one("mirror")
    far = 160.0
    builder.quad([-far, -far, 0], [2 * far, 0, 0], [0, 2 * far, 0], asphalt, rng.uniform(5, 9))
    inner = (2 * (a - road), 2 * (b - road), 0.15)
    builder.box([0, 0, 0.075], inner, np.eye(3), [pavement], 3.0, rng)
    edge = 40.0
    for x, y, w, d in (
        (0, b + road + edge / 2, 2 * (a + road + edge), edge),
        (a + road + edge / 2, 0, edge, 2 * (b + road)),
    ):
        for sign in (-1, 1):
            builder.box([sign * x, sign * y, 0.075], (w, d, 0.15), np.eye(3), [pavement], 3.0, rng)
    for distance in np.arange(0, path.length, 6.0):  # lane marks
        x, y, heading = path(distance)
        things.patch(builder, (x, y), (2.5, 0.14), heading, paint, 2.0)
        if rng.random() < 0.25:
            side = rng.uniform(-0.7, 0.7) * road
            hole = (x - side * np.sin(heading), y + side * np.cos(heading))
            things.patch(builder, hole, tuple(rng.uniform(0.5, 2.5, 2)), heading, rng.choice(goods), 2.0)
    _houses(builder, rng, palette, a, b, road + kerb)
    for outer in (-1, 1):
        at = rng.uniform(0, 8)
        while at < path.length - 4:
            x, y, heading = path(at)
            away = np.array([np.sin(heading), -np.cos(heading)]) * outer
            kind, place = rng.random(), np.array([x, y]) + away * (road + 0.5)
            if kind < 0.3:
                spot = np.array([x, y]) + away * (road - 0.95)
                pose = np.eye(4)
                pose[:3, :3], pose[:2, 3] = rotation_z(heading), spot
                with builder.obstacle():
                    things.car(builder, rng, goods, glass, pose)
            elif kind < 0.5:
                things.pole(builder, rng, place, rng.uniform(4, 7), rng.uniform(0.1, 0.2), rng.choice(goods))
            elif kind < 0.75:
                leaves = palette.of("plant")
                things.tree(builder, rng, place + away * 0.5, rng.uniform(5, 9), rng.choice(goods), leaves)
            elif kind < 0.85:
                board = (rng.uniform(0.6, 1.6), 0.05, rng.uniform(0.5, 1.2))
                turn = rotation_z(heading + np.pi / 2)
                builder.box([*place, 2.4], board, turn, things.pick(rng, palette.of("print")), 1.5, rng)
                things.pole(builder, rng, place, 2.3, 0.08, rng.choice(goods))
            at += rng.uniform(5, 11)
    lane = 0.45 * road
    own = ClosedPath(lane_points(path, -lane), 2.0)
    oncoming = ClosedPath(lane_points(path, lane), 2.0)
    drive = Drive(rng, own, rng.uniform(1.3, 1.8), rng.uniform(6, 11))
    for index in range(traffic):
        start = float(rng.uniform(0, path.length))
        route, speed = (oncoming, -rng.uniform(6, 11)) if index % 2 == 0 else (own, rng.uniform(6, 11))
        body = builder.body(Follow(rng, route, speed, start))
        things.car(builder, rng, goods, glass, np.eye(4), body)
    builder.sky(palette.of("sky"))
    return builder.build(palette.atlas, palette.one("sky")), drive


def lane_points(path: ClosedPath, left: float) -> list[tuple[float, float]]:
    """Points along a path, shifted to its left by so many metres."""
    points = []
    for distance in np.linspace(0, path.length, 256, endpoint=False):
        x, y, heading = path(distance)
        points.append((x - left * np.sin(heading), y + left * np.cos(heading)))
    return points


def _houses(
    builder: SceneBuilder, rng: np.random.Generator, palette: Palette, a: float, b: float, setback: float
) -> None:
    """Houses along the inside and the outside of the block's four streets."""
    fronts, roofs = palette.of("facade"), palette.of("wall")
    for inside in (True, False):
        for leg in range(4):
            half, away = (a, b) if leg % 2 == 0 else (b, a)
            turn = rotation_z(leg * np.pi / 2)
            end = half - setback if inside else half + setback + 8
            at = -end
            while at < end - 6:
                length, depth = min(rng.uniform(8, 20), end - at), rng.uniform(8, 12)
                height = rng.uniform(5, 18)
                back = setback + rng.uniform(0, 2.5)
                offset = away - back - depth / 2 if inside else away + back + depth / 2
                if rng.random() < 0.88:
                    centre = turn @ [at + length / 2, -offset, 0.0]
                    size = (length - rng.uniform(0, 1.5), depth, height)
                    things.house(builder, centre[:2], size, leg * np.pi / 2, rng.choice(fronts), rng.choice(roofs))
                at += length


def park(rng: np.random.Generator, palette: Palette, people: int = 0, drone: bool = False) -> tuple[Scene, Trajectory]:
    """Grass, trees, rocks, a fence and a few huts under a wide sky, on foot or by drone."""
    builder = SceneBuilder(sunlight(rng))
    plants, goods = palette.of("plant"), palette.of("thing")
    far = 150.0
    builder.quad([-far, -far, 0], [2 * far, 0, 0], [0, 2 * far, 0], palette.one("plant"), rng.uniform(3, 5))
    radius = rng.uniform(7, 12)
    path = ClosedPath([(radius, 0), (0, radius), (-radius, 0), (0, -radius)], rounding=2.5)
    for distance in np.arange(0, path.length, 1.5):  # a trodden path
        x, y, heading = path(distance)
        things.patch(
            builder, (x, y), (rng.uniform(1.2, 1.7), 1.3), heading + rng.normal(0, 0.2), palette.one("road"), 2.0
        )
    for _ in range(int(rng.integers(45, 70))):
        angle, inside = rng.uniform(0, 2 * np.pi), rng.random() < 0.5 and not drone
        reach = rng.uniform(0, radius - 3) if inside else rng.uniform(radius + 2.5, 38)
        place = reach * np.array([np.cos(angle), np.sin(angle)])
        kind = rng.random()
        with builder.obstacle():
            if kind < 0.45:
                things.tree(builder, rng, place, rng.uniform(4, 11), rng.choice(goods), plants)
            elif kind < 0.75:
                size = rng.uniform(0.4, 1.8, 3)
                textures = things.pick(rng, palette.of("rock"), 2)
                builder.box([*place, 0.2 * size[2]], tuple(size), random_rotation(rng), textures, 1.5, rng)
            elif kind < 0.87:
                things.crate(builder, rng, place, goods)
            else:
                things.pole(builder, rng, place, rng.uniform(2, 5), rng.uniform(0.06, 0.2), rng.choice(goods))
    for angle in np.linspace(0, 2 * np.pi, int(rng.integers(5, 9)), endpoint=False):
        place = rng.uniform(40, 70) * np.array([np.cos(angle), np.sin(angle)])
        block = (rng.uniform(6, 20), rng.uniform(6, 12), rng.uniform(4, 12))
        front, roof = palette.one("facade"), palette.one("wall")
        things.house(builder, place, block, float(rng.uniform(0, 3)), front, roof)
    posts = np.linspace(0, rng.uniform(2, 5), 24)
    ring = np.stack([np.cos(posts), np.sin(posts)], axis=1) * (radius + 4.5)
    for start, end in itertools.pairwise(ring):
        things.pole(builder, rng, start, 1.2, 0.09, palette.one("rock"))
        middle, span = (start + end) / 2, end - start
        turn = rotation_z(float(np.arctan2(span[1], span[0])))
        for height in (0.5, 1.0):
            builder.box([*middle, height], (float(np.hypot(*span)), 0.04, 0.1), turn, [palette.one("rock")], 1.0, rng)
    for _ in range(people):
        route = ClosedPath(lane_points(path, rng.uniform(-1.5, 1.5)), 1.0)
        motion = Follow(rng, route, rng.choice([-1.2, 1.2]), float(rng.uniform(0, path.length)))
        things.person(builder, rng, goods, builder.body(motion))
    builder.sky(palette.of("sky"))
    trajectory: Trajectory = Walk(rng, path, 1.5, speed=1.1)
    if drone:
        trajectory = Flight(rng, [0, 0, rng.uniform(2.5, 5)], [2.2, 2.2, 0.6], pace=rng.uniform(0.7, 1.6))
    return builder.build(palette.atlas, palette.one("sky")), trajectory
