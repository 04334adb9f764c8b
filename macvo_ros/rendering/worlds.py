"""Named worlds: scene, camera motion and sensor, all from a seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from macvo_ros.camera import StereoCamera
from macvo_ros.errors import SequenceError
from macvo_ros.rendering.atlas import TextureAtlas
from macvo_ros.rendering.motion import Trajectory, Walk, rotation_z
from macvo_ros.rendering.scene import Light, Scene, SceneBuilder
from macvo_ros.rendering.sensor import Sensor
from macvo_ros.rendering.texture import TEXTURES

# ZED X with the 2.2 mm lens, SVGA
ZED_X = StereoCamera(fx=367.0, fy=367.0, cx=479.5, cy=299.5, baseline=0.12, width=960, height=600)


@dataclass(frozen=True, eq=False)
class World:
    """What a sequence is rendered from."""

    scene: Scene
    trajectory: Trajectory
    sensor: Sensor
    camera: StereoCamera = ZED_X


def paint(rng: np.random.Generator, names: list[str], size: int = 1024) -> TextureAtlas:
    """One texture per name, in order."""
    return TextureAtlas([TEXTURES[name](rng, size) for name in names])


def room(seed: int) -> World:
    """A furnished room of about 8 x 6 m, walked through with a camera in the hand."""
    rng = np.random.default_rng((seed, 1))
    walls = ["bricks", "clouds", "leaves", "plaster"]
    things = ["leaves", "marks", "planks", "clouds", "tiles", "checker", "gravel", "marks"]
    atlas = paint(rng, [*walls, "planks", "plaster", *things])
    width, depth, height = rng.uniform(7, 9), rng.uniform(6, 7.5), rng.uniform(2.6, 3.2)
    lamps = rng.uniform([-3, -2, 0], [3, 2, 0], (2, 3)) + np.array([0, 0, height - 0.2])
    builder = SceneBuilder(Light(0.5, np.array([0.3, 0.2, 0.93]), 0.15, lamps, 0.7))
    low, high = np.array([-width / 2, -depth / 2, 0.0]), np.array([width / 2, depth / 2, height])
    builder.room(low, high, [0, 1, 2, 3], 4, 5, metres=3.0)
    radii = (width / 2 - 2.4, depth / 2 - 2.2)
    first = len(walls) + 2
    for _ in range(26):  # boxes against the walls and in the middle, off the path
        angle = rng.uniform(0, 2 * np.pi)
        edge = np.array([np.cos(angle) * (width / 2 - 0.55), np.sin(angle) * (depth / 2 - 0.55)])
        place = edge * (1.0 if rng.random() < 0.8 else rng.uniform(0.0, 0.12))
        size = rng.uniform([0.2, 0.2, 0.2], [0.9, 0.7, 1.9])
        stack = [first + int(i) for i in rng.integers(0, len(things), 2)]
        centre = [*place, size[2] / 2]
        builder.box(centre, tuple(size), rotation_z(rng.uniform(0, np.pi)), stack, rng.uniform(0.6, 1.5), rng)
    for _ in range(5):  # thin poles
        angle = rng.uniform(0, 2 * np.pi)
        place = np.array([np.cos(angle) * (width / 2 - 0.8), np.sin(angle) * (depth / 2 - 0.8)])
        thickness = rng.uniform(0.03, 0.08)
        builder.box([*place, height / 2], (thickness, thickness, height), rotation_z(angle), [first + 2], 0.5, rng)
    trajectory = Walk(rng, [0, 0, 1.45], radii)
    return World(builder.build(atlas), trajectory, Sensor())


WORLDS: dict[str, Callable[[int], World]] = {"room": room}


def build(name: str, seed: int) -> World:
    """The world of that name."""
    if name not in WORLDS:
        raise SequenceError(f"no world is called {name!r}; choose one of {', '.join(sorted(WORLDS))}")
    return WORLDS[name](seed)
