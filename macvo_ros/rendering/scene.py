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

"""Scenes of textured parallelograms, some of which move as rigid bodies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from macvo_ros.rendering.atlas import TextureAtlas

Float64 = npt.NDArray[np.float64]
BodyMotion = Callable[[float], Float64]  # seconds -> (4, 4) pose of the body in the world

WORLD = 0  # the body that never moves
SKY = -1  # a cube at infinity that follows the camera


@dataclass(frozen=True, eq=False)
class Quads:
    """Q parallelograms, float64, metres in the frame of their body; X = origin + s side_s + t side_t, s, t in [0, 1].

    The front is where side_s x side_t points; the back is invisible unless two_sided.
    texture: (Q,) index in the atlas. tiles: (Q, 2) how often the texture repeats along s and t; phase: (Q, 2) tiles.
    light: (Q, 4) brightness factor at (s, t) = (0,0), (1,0), (0,1), (1,1). gloss: (Q,) share of mirrored surroundings.
    body: (Q,) index of the rigid body (WORLD, SKY or a moving one). obstacle: (Q,) which of the things that stand in a
    camera's way and may be left out (`clearance.py`); 0: none.
    """

    origin: Float64
    side_s: Float64
    side_t: Float64
    texture: npt.NDArray[np.intp]
    tiles: Float64
    phase: Float64
    light: Float64
    gloss: Float64
    two_sided: npt.NDArray[np.bool_]
    body: npt.NDArray[np.intp]
    obstacle: npt.NDArray[np.intp]

    def __len__(self) -> int:
        return len(self.origin)


@dataclass(frozen=True, eq=False)
class Scene:
    """Quads, the atlas their textures live in, and the motions of bodies 1, 2, ... (body 0 is the still world).

    mirrored: the texture that glossy surfaces show the surroundings with.
    """

    quads: Quads
    atlas: TextureAtlas
    motions: tuple[BodyMotion, ...] = ()
    mirrored: int = 0

    def body_poses(self, time: float) -> Float64:
        """(B, 4, 4) poses in the world of all bodies at `time` seconds, body 0 first."""
        return np.stack([np.eye(4), *(motion(time) for motion in self.motions)])

    def normals(self, time: float) -> Float64:
        """(Q, 3) unit normals in the world at `time` seconds."""
        turn = self.body_poses(time)[np.maximum(self.quads.body, WORLD), :3, :3]
        normal = np.einsum("qij,qj->qi", turn, np.cross(self.quads.side_s, self.quads.side_t))
        unit: Float64 = normal / np.linalg.norm(normal, axis=1, keepdims=True)
        return unit

    @property
    def moving(self) -> npt.NDArray[np.bool_]:
        """(Q,) which quads belong to a moving body."""
        moving: npt.NDArray[np.bool_] = self.quads.body > WORLD
        return moving


@dataclass
class Light:
    """Where brightness comes from: ambient, one direction (sun) and lamps that fade with distance.

    ambient: factor everywhere. sun: (3,) unit vector towards the sun, sun_strength its factor.
    lamps: (L, 3) positions, metres; lamp_strength at one metre and normal incidence.
    """

    ambient: float = 0.55
    sun: Float64 = field(default_factory=lambda: np.array([0.3, 0.2, 0.93]))
    sun_strength: float = 0.45
    lamps: Float64 = field(default_factory=lambda: np.zeros((0, 3)))
    lamp_strength: float = 0.0

    def at(self, points: Float64, normal: Float64) -> Float64:
        """points (N, 3) metres, unit normal (3,): brightness factors (N,)."""
        brightness = np.full(len(points), self.ambient + self.sun_strength * max(0.0, float(normal @ self.sun)))
        for lamp in self.lamps:
            ray = lamp - points
            distance = np.linalg.norm(ray, axis=1)
            cosine = np.maximum(ray @ normal, 0) / np.maximum(distance, 1e-3)
            brightness += self.lamp_strength * (0.3 + 0.7 * cosine) / (1.0 + distance**2 / 4.0)
        return brightness


class SceneBuilder:
    """Collects quads one by one. `metres` below is the physical size of one texture tile."""

    def __init__(self, light: Light | None = None) -> None:
        self.light = light or Light()
        self.motions: list[BodyMotion] = []
        self._rows: list[tuple[Float64, Float64, Float64, int, Float64, Float64, Float64, float, bool, int, int]] = []
        self._obstacles = self._obstacle = 0

    def body(self, motion: BodyMotion) -> int:
        """Add a moving rigid body; returns the index to pass as `body`."""
        self.motions.append(motion)
        return len(self.motions)

    @contextmanager
    def obstacle(self) -> Iterator[None]:
        """What is added in this context is one thing that may be in a camera's way."""
        self._obstacles += 1
        self._obstacle = self._obstacles
        yield
        self._obstacle = 0

    def quad(
        self,
        origin: npt.ArrayLike,
        side_s: npt.ArrayLike,
        side_t: npt.ArrayLike,
        texture: int,
        metres: float,
        *,
        phase: tuple[float, float] = (0.0, 0.0),
        gloss: float = 0.0,
        two_sided: bool = False,
        body: int = WORLD,
    ) -> None:
        """One parallelogram from `origin` along side_s and side_t, metres."""
        o, a, b = (np.asarray(x, np.float64) for x in (origin, side_s, side_t))
        tiles = np.array([np.linalg.norm(a), np.linalg.norm(b)]) / metres
        if body == SKY:
            light = np.ones(4)
        else:
            normal = np.cross(a, b)
            pose = np.eye(4) if body == WORLD else self.motions[body - 1](0.0)
            corners = np.stack([o, o + a, o + b, o + a + b]) @ pose[:3, :3].T + pose[:3, 3]
            light = self.light.at(corners, pose[:3, :3] @ (normal / np.linalg.norm(normal)))
        self._rows.append((o, a, b, texture, tiles, np.asarray(phase), light, gloss, two_sided, body, self._obstacle))

    def box(
        self,
        centre: npt.ArrayLike,
        size: tuple[float, float, float],
        rotation: Float64,
        textures: list[int],
        metres: float,
        rng: np.random.Generator,
        *,
        gloss: float = 0.0,
        body: int = WORLD,
    ) -> None:
        """Six outward faces; size along the box's own x, y, z in metres, rotation (3, 3) of the box in its body."""
        c = np.asarray(centre, np.float64)
        x, y, z = (rotation[:, i] * size[i] for i in range(3))
        faces = ((x, y, z), (y, z, x), (-x, z, y), (y, x, -z), (-y, z, -x), (x, z, -y))
        for index, (a, b, outward) in enumerate(faces):
            origin = c + outward / 2 - a / 2 - b / 2
            phase = (float(rng.uniform()), float(rng.uniform()))
            texture = textures[index % len(textures)]
            self.quad(origin, a, b, texture, metres, phase=phase, gloss=gloss, body=body)

    def room(
        self, low: Float64, high: Float64, wall: list[int], floor: int | None, ceiling: int | None, metres: float
    ) -> None:
        """Inward faces of the axis-aligned box low..high (3,), metres; `wall` textures in turn, None leaves it open."""
        (x0, y0, z0), (x1, y1, z1) = low, high
        dx, dy, dz = x1 - x0, y1 - y0, z1 - z0
        up = (0.0, 0.0, dz)
        sides = (
            ((x0, y0, z0), (dx, 0, 0), (0.0, 1.0, 0.0)),
            ((x1, y0, z0), (0, dy, 0), (-1.0, 0.0, 0.0)),
            ((x1, y1, z0), (-dx, 0, 0), (0.0, -1.0, 0.0)),
            ((x0, y1, z0), (0, -dy, 0), (1.0, 0.0, 0.0)),
        )
        for index, (origin, along, _) in enumerate(sides):
            # seen from inside, the wall runs left to right against `along`
            start = np.asarray(origin) + np.asarray(along, np.float64)
            self.quad(
                start, -np.asarray(along, np.float64), up, wall[index % len(wall)], metres, phase=(0.37 * index, 0)
            )
        if floor is not None:
            self.quad((x0, y0, z0), (dx, 0, 0), (0, dy, 0), floor, metres)
        if ceiling is not None:
            self.quad((x0, y1, z1), (dx, 0, 0), (0, -dy, 0), ceiling, metres)

    def sky(self, textures: list[int], rotation: Float64 | None = None) -> None:
        """A cube at infinity; one texture tile covers one face."""
        turn = np.eye(3) if rotation is None else rotation
        axes = [turn[:, i] for i in range(3)]
        for index in range(6):
            sign = 1.0 if index < 3 else -1.0
            n, a, b = axes[index % 3] * sign, axes[(index + 1) % 3], axes[(index + 2) % 3]
            origin = n - a - b
            self.quad(origin, 2 * a, 2 * b, textures[index % len(textures)], 2.0, two_sided=True, body=SKY)

    def build(self, atlas: TextureAtlas, mirrored: int = 0) -> Scene:
        """The finished scene; mirrored: texture index of what glossy surfaces reflect."""
        origin, side_s, side_t, texture, tiles, phase, light, gloss, two_sided, body, obstacle = zip(
            *self._rows, strict=True
        )
        quads = Quads(
            origin=np.stack(origin),
            side_s=np.stack(side_s),
            side_t=np.stack(side_t),
            texture=np.array(texture, np.intp),
            tiles=np.stack(tiles),
            phase=np.stack(phase),
            light=np.stack(light),
            gloss=np.array(gloss, np.float64),
            two_sided=np.array(two_sided, np.bool_),
            body=np.array(body, np.intp),
            obstacle=np.array(obstacle, np.intp),
        )
        return Scene(quads, atlas, tuple(self.motions), mirrored)
