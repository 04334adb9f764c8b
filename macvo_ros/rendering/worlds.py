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

"""Named worlds: scene, camera motion and sensor, all from a seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from macvo_ros.errors import SequenceError
from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.rendering import indoor, near_field, outdoor
from macvo_ros.rendering import landing as low_flight
from macvo_ros.rendering import motorway as fast_road
from macvo_ros.rendering.motion import Trajectory
from macvo_ros.rendering.palette import BARE, OUTSIDE, RICH, WORKSHOP, Palette
from macvo_ros.rendering.scene import Scene
from macvo_ros.rendering.sensor import Sensor, random_sensor

# ZED X with the 2.2 mm lens at SVGA; TartanAir's virtual camera; a car's long lens as in KITTI; a drone's camera as in
# EuRoC; a small one for a hand or an arm
ZED_X = StereoCamera(fx=367.0, fy=367.0, cx=479.5, cy=299.5, baseline=0.12, width=960, height=600)
TARTANAIR = StereoCamera(fx=320.0, fy=320.0, cx=319.5, cy=319.5, baseline=0.25, width=640, height=640)
CAR = StereoCamera(fx=707.0, fy=707.0, cx=601.9, cy=183.1, baseline=0.54, width=1226, height=370)
EUROC = StereoCamera(fx=458.0, fy=458.0, cx=367.0, cy=248.0, baseline=0.11, width=752, height=480)
HAND = StereoCamera(fx=460.0, fy=460.0, cx=319.5, cy=239.5, baseline=0.065, width=640, height=480)


@dataclass(frozen=True, eq=False)
class World:
    """What a sequence is rendered from."""

    scene: Scene
    trajectory: Trajectory
    sensor: Sensor = Sensor()
    camera: StereoCamera = ZED_X


Painter = Callable[..., Palette]  # rng and optionally roles -> palette


def room(rng: np.random.Generator, paint: Painter) -> World:
    """A furnished room and a ZED X in the hand: what `macvo demo` runs on."""
    return World(*indoor.room(rng, paint(rng)))


def corridor(rng: np.random.Generator, paint: Painter) -> World:
    """An office corridor around a core."""
    return World(*indoor.corridor(rng, paint(rng)))


def shapes(rng: np.random.Generator, paint: Painter) -> World:
    """A hall of floating shapes, flown through fast."""
    return World(*indoor.shapes(rng, paint(rng)), camera=TARTANAIR)


def street(rng: np.random.Generator, paint: Painter) -> World:
    """A city block by car."""
    return World(*outdoor.street(rng, paint(rng, OUTSIDE)), camera=CAR)


def park(rng: np.random.Generator, paint: Painter) -> World:
    """A park on foot."""
    return World(*outdoor.park(rng, paint(rng, OUTSIDE)))


def drone(rng: np.random.Generator, paint: Painter) -> World:
    """The park from a drone."""
    return World(*outdoor.park(rng, paint(rng, OUTSIDE), drone=True), camera=TARTANAIR)


def dark(rng: np.random.Generator, paint: Painter) -> World:
    """A room or a corridor with hardly any light: amplified noise and few grey levels."""
    place = indoor.room if rng.random() < 0.5 else indoor.corridor
    scene, trajectory = place(rng, paint(rng))
    return World(scene, trajectory, Sensor(vignette=0.3, imbalance=0.05).in_light(float(rng.uniform(0.025, 0.06))))


def textureless(rng: np.random.Generator, paint: Painter) -> World:
    """A room or a corridor of plain and glossy walls."""
    place = indoor.room if rng.random() < 0.5 else indoor.corridor
    return World(*place(rng, paint(rng, BARE)))


def dynamic(rng: np.random.Generator, paint: Painter) -> World:
    """A room full of people, a busy street or a hall of moving shapes."""
    kind = rng.random()
    if kind < 0.5:
        return World(*indoor.room(rng, paint(rng), people=6))
    if kind < 0.75:
        return World(*outdoor.street(rng, paint(rng, OUTSIDE), traffic=24), camera=CAR)
    return World(*indoor.shapes(rng, paint(rng), movers=25), camera=TARTANAIR)


def blurred(rng: np.random.Generator, paint: Painter) -> World:
    """A shaky hand and a long exposure in a dim room."""
    scene, trajectory = indoor.room(rng, paint(rng), shake=float(rng.uniform(1.5, 2.5)))
    return World(scene, trajectory, Sensor(blur=float(rng.uniform(0.02, 0.035)), read_noise=1.5, shot_noise=4.0))


def near(rng: np.random.Generator, paint: Painter) -> World:
    """A bench or a wall so near that disparities are 60 to 250 pixels."""
    camera = EUROC if rng.random() < 0.5 else HAND
    palette = paint(rng, (WORKSHOP, RICH, BARE)[rng.choice(3, p=[0.4, 0.35, 0.25])])
    distance = camera.fx * camera.baseline / float(rng.uniform(75, 140))
    return World(*near_field.bench(rng, palette, distance), sensor=_any_sensor(rng), camera=camera)


def landing(rng: np.random.Generator, paint: Painter) -> World:
    """A drone's grey camera that stands a hand above the ground, takes off, flies low and lands."""
    parts = low_flight.hall(rng, paint(rng, WORKSHOP), EUROC)
    sensor = replace(_any_sensor(rng), mono=True)
    return World(*parts, sensor=sensor, camera=EUROC)


def motorway(rng: np.random.Generator, paint: Painter) -> World:
    """A car at 20 to 30 m/s between guard rails."""
    return World(*fast_road.motorway(rng, paint(rng, OUTSIDE)), sensor=_any_sensor(rng), camera=CAR)


def _any_sensor(rng: np.random.Generator) -> Sensor:
    """As often a random sensor as a good one with an ordinary lens."""
    if rng.random() < 0.5:
        return random_sensor(rng)
    return Sensor(exposure=float(rng.uniform(0.8, 1.3)), softness=float(rng.uniform(0.3, 0.9)), vignette=0.2)


def mixture(rng: np.random.Generator, paint: Painter) -> World:
    """Anything: a random place, painted richly or barely, with moving things, a random sensor and camera."""
    rich = rng.random() < 0.75
    kind = rng.choice(["room", "corridor", "shapes", "street", "park", "drone"], p=[0.2, 0.1, 0.3, 0.2, 0.1, 0.1])
    movers = 0 if rng.random() < 0.5 else int(rng.integers(1, 9))
    outside = paint(rng, OUTSIDE) if kind in ("street", "park", "drone") else None
    if outside is None:
        palette = paint(rng, RICH if rich else BARE)
        if kind == "room":
            parts = indoor.room(rng, palette, people=min(movers, 5), shake=float(rng.uniform(0.5, 2.5)))
        elif kind == "corridor":
            parts = indoor.corridor(rng, palette, people=min(movers, 5))
        else:
            parts = indoor.shapes(rng, palette, movers=3 * movers)
    elif kind == "street":
        parts = outdoor.street(rng, outside, traffic=2 * movers)
    else:
        parts = outdoor.park(rng, outside, people=movers, drone=kind == "drone")
    return World(*parts, sensor=random_sensor(rng), camera=random_camera(rng))


WORLDS: dict[str, Callable[[np.random.Generator, Painter], World]] = {
    function.__name__: function
    for function in (
        room,
        corridor,
        shapes,
        street,
        park,
        drone,
        dark,
        textureless,
        dynamic,
        blurred,
        mixture,
        near,
        landing,
        motorway,
    )
}
HARD = ("dark", "textureless", "dynamic", "blurred")  # the families that break matchers


def random_camera(rng: np.random.Generator) -> StereoCamera:
    """A stereo camera of 640 x 480 between wide angle and tele, with a baseline to match."""
    focal = float(640 * np.exp(rng.uniform(np.log(0.38), np.log(1.1))))
    baseline = float(np.exp(rng.uniform(np.log(0.07), np.log(0.5))))
    cx, cy = 319.5 + rng.normal(0, 8), 239.5 + rng.normal(0, 8)
    return StereoCamera(focal, focal, cx, cy, baseline, 640, 480)


def build(name: str, seed: int, texels: int = 1024, photographs: Sequence[Path] = ()) -> World:
    """The world of that name and seed; textures of texels x texels, some from photographs where given."""
    if name not in WORLDS:
        raise SequenceError(f"no world is called {name!r}; choose one of {', '.join(WORLDS)}")
    rng = np.random.default_rng([seed, *name.encode()])
    return WORLDS[name](rng, partial(Palette, size=texels, photographs=photographs))
