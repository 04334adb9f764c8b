"""Named worlds: scene, camera motion and sensor, all from a seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from macvo_ros.camera import StereoCamera
from macvo_ros.errors import SequenceError
from macvo_ros.rendering import indoor, outdoor
from macvo_ros.rendering.motion import Trajectory
from macvo_ros.rendering.palette import BARE, OUTSIDE, Palette
from macvo_ros.rendering.scene import Scene
from macvo_ros.rendering.sensor import Sensor

# ZED X with the 2.2 mm lens at SVGA; TartanAir's virtual camera; a car's long lens as in KITTI
ZED_X = StereoCamera(fx=367.0, fy=367.0, cx=479.5, cy=299.5, baseline=0.12, width=960, height=600)
TARTANAIR = StereoCamera(fx=320.0, fy=320.0, cx=319.5, cy=319.5, baseline=0.25, width=640, height=640)
CAR = StereoCamera(fx=707.0, fy=707.0, cx=601.9, cy=183.1, baseline=0.54, width=1226, height=370)


@dataclass(frozen=True, eq=False)
class World:
    """What a sequence is rendered from."""

    scene: Scene
    trajectory: Trajectory
    sensor: Sensor = Sensor()
    camera: StereoCamera = ZED_X


def room(rng: np.random.Generator) -> World:
    """A furnished room and a ZED X in the hand: what `macvo demo` runs on."""
    return World(*indoor.room(rng, Palette(rng)))


def corridor(rng: np.random.Generator) -> World:
    """An office corridor around a core."""
    return World(*indoor.corridor(rng, Palette(rng)))


def shapes(rng: np.random.Generator) -> World:
    """A hall of floating shapes, flown through fast."""
    return World(*indoor.shapes(rng, Palette(rng)), camera=TARTANAIR)


def street(rng: np.random.Generator) -> World:
    """A city block by car."""
    return World(*outdoor.street(rng, Palette(rng, OUTSIDE)), camera=CAR)


def park(rng: np.random.Generator) -> World:
    """A park on foot."""
    return World(*outdoor.park(rng, Palette(rng, OUTSIDE)))


def drone(rng: np.random.Generator) -> World:
    """The park from a drone."""
    return World(*outdoor.park(rng, Palette(rng, OUTSIDE), drone=True), camera=TARTANAIR)


def dark(rng: np.random.Generator) -> World:
    """A room or a corridor with hardly any light: amplified noise and few grey levels."""
    place = indoor.room if rng.random() < 0.5 else indoor.corridor
    scene, trajectory = place(rng, Palette(rng))
    return World(scene, trajectory, Sensor(vignette=0.3, imbalance=0.05).in_light(float(rng.uniform(0.025, 0.06))))


def textureless(rng: np.random.Generator) -> World:
    """A room or a corridor of plain and glossy walls."""
    place = indoor.room if rng.random() < 0.5 else indoor.corridor
    return World(*place(rng, Palette(rng, BARE)))


def dynamic(rng: np.random.Generator) -> World:
    """A room full of people, a busy street or a hall of moving shapes."""
    kind = rng.random()
    if kind < 0.5:
        return World(*indoor.room(rng, Palette(rng), people=6))
    if kind < 0.75:
        return World(*outdoor.street(rng, Palette(rng, OUTSIDE), traffic=24), camera=CAR)
    return World(*indoor.shapes(rng, Palette(rng), movers=25), camera=TARTANAIR)


def blurred(rng: np.random.Generator) -> World:
    """A shaky hand and a long exposure in a dim room."""
    scene, trajectory = indoor.room(rng, Palette(rng), shake=float(rng.uniform(1.5, 2.5)))
    return World(scene, trajectory, Sensor(blur=float(rng.uniform(0.02, 0.035)), read_noise=1.5, shot_noise=4.0))


WORLDS: dict[str, Callable[[np.random.Generator], World]] = {
    function.__name__: function
    for function in (room, corridor, shapes, street, park, drone, dark, textureless, dynamic, blurred)
}
HARD = ("dark", "textureless", "dynamic", "blurred")  # the families that break matchers


def build(name: str, seed: int) -> World:
    """The world of that name and seed."""
    if name not in WORLDS:
        raise SequenceError(f"no world is called {name!r}; choose one of {', '.join(WORLDS)}")
    return WORLDS[name](np.random.default_rng([seed, *name.encode()]))
