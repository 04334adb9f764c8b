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

"""Procedural tileable textures: seeded, colourful, with detail from the whole tile down to single texels."""

from __future__ import annotations

from collections.abc import Callable

import cv2
import numpy as np
import numpy.typing as npt

from macvo_ros.rendering.paint import Float32, Image, blend, colour, finish, noise
from macvo_ros.rendering.timber import timber

Texture = Callable[[np.random.Generator, int], Image]


def clouds(rng: np.random.Generator, size: int) -> Image:
    """Stained plaster, rock or rusty metal: two colours mixed by fractal noise."""
    mix = 0.5 + 0.5 * np.tanh(noise(rng, size, rng.uniform(0.9, 1.6), rng.uniform(1, 6)) * rng.uniform(0.6, 2.5))
    base = blend(colour(rng), colour(rng), mix)
    return finish(base + 12 * noise(rng, size, 0.8)[..., None], rng, rng.uniform(3, 9))


def leaves(rng: np.random.Generator, size: int) -> Image:
    """Overlapping discs, ellipses and polygons with power-law sizes: the statistics of natural images."""
    image = np.full((size, size, 3), colour(rng), np.float32)
    palette = [colour(rng, 20, 235, 0.5) for _ in range(rng.integers(4, 12))]
    count = int(rng.integers(300, 2500))
    radii = np.sort(size * rng.uniform(0.003, 0.02) * rng.uniform(0.0005, 1, count) ** -0.5)[::-1].clip(1.5, size / 6)
    order = rng.permutation(count) if rng.random() < 0.3 else np.arange(count)
    for radius in radii[order]:
        centre = rng.uniform(0, size, 2)
        fill = (palette[rng.integers(len(palette))] * rng.uniform(0.7, 1.3)).tolist()
        corners = int(rng.integers(0, 6))
        angles = np.sort(rng.uniform(0, 2 * np.pi, max(corners, 3)))
        stretch, turn = rng.uniform(0.4, 1.0), float(rng.uniform(0, 180))
        for shift in _wrapped(centre, radius, size):
            x, y = centre + shift
            if corners < 3:
                axes = (round(16 * radius), round(16 * radius * stretch))
                cv2.ellipse(image, (round(16 * x), round(16 * y)), axes, turn, 0, 360, fill, -1, cv2.LINE_8, 4)
            else:
                outline = np.stack([x + radius * np.cos(angles), y + radius * np.sin(angles)], axis=1)
                cv2.fillPoly(image, [np.rint(16 * outline).astype(np.int32)], fill, cv2.LINE_8, 4)
    return finish(image + 8 * noise(rng, size, 1.0)[..., None], rng)


def _wrapped(centre: npt.NDArray[np.float64], radius: float, size: int) -> list[npt.NDArray[np.float64]]:
    """The shifts at which a disc must be drawn so that it continues on the other side of the tile."""
    shifts = [np.zeros(2)]
    for axis in range(2):
        if centre[axis] < radius:
            shifts += [s + np.eye(2)[axis] * size for s in shifts]
        elif centre[axis] > size - radius:
            shifts += [s - np.eye(2)[axis] * size for s in shifts]
    return shifts


def _cells(
    rng: np.random.Generator, size: int, across: int, down: int, offset: float
) -> tuple[Float32, Float32, Float32]:
    """Rows of rectangles (bricks, tiles, planks): a random value per cell, texels to the joint along x and y."""
    y, x = np.mgrid[0:size, 0:size].astype(np.float32)
    row = np.floor(y / size * down).astype(np.intp)
    shift = (offset * np.arange(down))[row]
    position = (x / size * across + shift) % across
    column = np.floor(position).astype(np.intp)
    value = rng.uniform(-1, 1, (down, across)).astype(np.float32)[row, column]
    along = position - column
    dx = np.minimum(along, 1 - along) * size / across
    local = y / size * down - row
    dy = np.minimum(local, 1 - local) * size / down
    return value, dx.astype(np.float32), dy.astype(np.float32)


def bricks(rng: np.random.Generator, size: int) -> Image:
    """Bricks with mortar, each its own shade, weathered."""
    across, down = int(rng.integers(4, 10)), 2 * int(rng.integers(4, 12))
    value, dx, dy = _cells(rng, size, across, down, 0.5)
    joint = rng.uniform(1.5, 5)
    share = np.clip(np.minimum(dx, dy) - joint, 0, 1).astype(np.float32)
    brick = colour(rng, 60, 190) + value[..., None] * rng.uniform(8, 35)
    brick = brick + rng.uniform(5, 18) * noise(rng, size, 0.7)[..., None]
    return finish(blend(np.broadcast_to(colour(rng, 90, 210, 0.1), brick.shape), brick, share), rng, 5)


def tiles(rng: np.random.Generator, size: int) -> Image:
    """Square floor tiles with marbling and thin joints."""
    count = int(rng.integers(2, 9))
    value, dx, dy = _cells(rng, size, count, count, 0.0)
    share = np.clip(np.minimum(dx, dy) - rng.uniform(1, 3), 0, 1).astype(np.float32)
    face = colour(rng, 80, 220, 0.15) + value[..., None] * rng.uniform(2, 25)
    face = face + rng.uniform(4, 22) * np.abs(noise(rng, size, 1.1, 3))[..., None]
    return finish(blend(np.broadcast_to(colour(rng, 30, 150, 0.1), face.shape), face, share), rng, 3)


def planks(rng: np.random.Generator, size: int) -> Image:
    """Wooden boards: grain along x, one shade a board."""
    value, dx, dy = _cells(rng, size, int(rng.integers(1, 4)), int(rng.integers(3, 12)), rng.uniform(0.2, 0.8))
    share = np.clip(np.minimum(dx, dy) - 1.0, 0, 1).astype(np.float32)
    grain = cv2.resize(noise(rng, size, 0.6)[:, : size // 16].copy(), (size, size), interpolation=cv2.INTER_CUBIC)
    grain = 0.5 * (grain + grain[:, ::-1])  # mirrored, hence tileable
    wave = noise(rng, size, 1.5, 2)
    rings = np.sin(18 * wave + 3 * grain)
    wood = colour(rng, 60, 190, 0.3) + 18 * value[..., None] + (9 * rings + 12 * grain)[..., None]
    return finish(blend(np.full_like(wood, 30), wood, share), rng, 3)


def checker(rng: np.random.Generator, size: int) -> Image:
    """A chessboard, worn."""
    count = 2 * int(rng.integers(2, 9))
    y, x = np.mgrid[0:size, 0:size] * count // size
    odd = ((x + y) % 2).astype(np.float32)
    return finish(blend(colour(rng, 20, 110), colour(rng, 140, 240), odd) + 6 * noise(rng, size)[..., None], rng)


def marks(rng: np.random.Generator, size: int) -> Image:
    """Lines of text, numbers and boxes on paper: posters, notices, labels."""
    image = np.full((size, size, 3), colour(rng, 170, 240, 0.1), np.uint8)
    letters = np.array(list("ABCDEFGHKLMNPRSTUXYZabcdefghkmnprstuvxyz0123456789#&%+="))
    y = 0.02 * size
    while y < 0.94 * size:
        scale = float(rng.choice([0.4, 0.5, 0.7, 1.0, 1.6, 2.6])) * size / 512
        height = 24 * scale
        text = "".join(rng.choice(letters, int(rng.integers(3, 40))))
        ink = colour(rng, 5, 120, 0.6).tolist()
        x = int(rng.uniform(0.01, 0.2) * size)
        cv2.putText(image, text, (x, int(y + height)), 0, scale, ink, max(1, round(2 * scale)), cv2.LINE_AA)
        y += height * rng.uniform(1.2, 2.0)
    for _ in range(int(rng.integers(1, 6))):
        x0, y0 = (rng.uniform(0.05, 0.7, 2) * size).astype(int).tolist()
        x1, y1 = x0 + int(rng.uniform(0.05, 0.28) * size), y0 + int(rng.uniform(0.05, 0.28) * size)
        thickness = int(rng.choice([-1, 2, 4, 8]))
        cv2.rectangle(image, (x0, y0), (x1, y1), colour(rng, 10, 230, 0.7).tolist(), thickness)
    return finish(image + 4 * noise(rng, size)[..., None], rng, 3)


def plaster(rng: np.random.Generator, size: int) -> Image:
    """A painted wall: low contrast everywhere, but never none."""
    base = colour(rng, 90, 225, 0.12) + (5 * noise(rng, size, 1.3, 2) + 2.5 * noise(rng, size, 0.5))[..., None]
    return finish(base, rng, 1.5)


def plain(rng: np.random.Generator, size: int) -> Image:
    """Almost nothing to see: what texture-less walls are made of."""
    base = colour(rng, 110, 225, 0.08) + 1.2 * noise(rng, size, 1.6, 1)[..., None]
    return finish(base, rng, 0.5)


def stripes(rng: np.random.Generator, size: int) -> Image:
    """A strictly periodic pattern: blinds, fences, corrugated iron, ventilation grids."""
    count = int(rng.integers(8, 40))
    y, x = np.mgrid[0:size, 0:size].astype(np.float32) / size
    wave = np.sin(2 * np.pi * count * x)
    if rng.random() < 0.5:
        wave = np.minimum(wave, np.sin(2 * np.pi * count * y))
    share = 1 / (1 + np.exp(-wave * rng.uniform(2, 8)))
    return finish(blend(colour(rng, 15, 120), colour(rng, 120, 230), share.astype(np.float32)), rng, 2)


def gravel(rng: np.random.Generator, size: int) -> Image:
    """Asphalt, gravel, sand, carpet: energy at every scale up to the finest."""
    fine = noise(rng, size, rng.uniform(0.1, 0.6)) * rng.uniform(10, 28)
    coarse = noise(rng, size, 1.4, 2) * rng.uniform(4, 16)
    base = colour(rng, 60, 170, 0.15) + (fine + coarse)[..., None]
    speckle = (noise(rng, size, 0.2, 8) > rng.uniform(1.8, 2.8)).astype(np.float32)
    return finish(blend(base, np.broadcast_to(colour(rng, 20, 230, 0.2), base.shape), speckle), rng, 2)


def grass(rng: np.random.Generator, size: int) -> Image:
    """Vegetation: thousands of short strokes in greens and browns."""
    image = np.full((size, size, 3), (50, 70, 35), np.uint8)
    count = size * size // 90
    start = rng.uniform(-8, size + 8, (count, 2))
    angle, length = rng.normal(np.pi / 2, 0.7, count), rng.uniform(4, 16, count) * size / 512
    end = start + np.stack([np.cos(angle), -np.sin(angle)], axis=1) * length[:, None]
    green = np.array([70, 105, 45]) * rng.uniform(0.35, 1.7, (count, 1)) + rng.uniform(-18, 18, (count, 3))
    for p, q, c in zip(np.rint(16 * start).astype(int), np.rint(16 * end).astype(int), green, strict=True):
        cv2.line(image, p.tolist(), q.tolist(), c.tolist(), 1, cv2.LINE_AA, 4)
    return finish(image * (1 + 0.15 * noise(rng, size, 1.4, 2)[..., None]), rng, 3)


def facade(rng: np.random.Generator, size: int) -> Image:
    """A house front: rows of windows with frames, some lit, some with curtains."""
    wall = plaster(rng, size) if rng.random() < 0.5 else np.tile(bricks(rng, size // 4), (4, 4, 1))
    image = wall.astype(np.float32)
    across, down = int(rng.integers(2, 6)), int(rng.integers(2, 5))
    w, h = rng.uniform(0.35, 0.65) * size / across, rng.uniform(0.45, 0.7) * size / down
    frame = colour(rng, 120, 240, 0.1).tolist()
    for i in range(across):
        for j in range(down):
            x, y = (i + 0.5) * size / across - w / 2, (j + 0.5) * size / down - h / 2
            x0, y0, x1, y1 = int(x), int(y), int(x + w), int(y + h)
            glass = colour(rng, 20, 130, 0.3)
            slope = np.linspace(0.6, 1.5, y1 - y0, dtype=np.float32)[:, None, None]
            image[y0:y1, x0:x1] = glass * slope
            if rng.random() < 0.4:
                image[y0 : y0 + int(h * rng.uniform(0.2, 0.9)), x0:x1] = colour(rng, 120, 230, 0.3)
            bar = max(2, int(0.05 * w))
            cv2.rectangle(image, (x0, y0), (x1, y1), frame, bar)
            cv2.line(image, ((x0 + x1) // 2, y0), ((x0 + x1) // 2, y1), frame, bar)
    return finish(image + 6 * noise(rng, size, 1.2)[..., None], rng, 3)


def glare(rng: np.random.Generator, size: int) -> Image:
    """What glossy surfaces mirror: a dim surrounding with bright windows and lamps."""
    image = 60 + 25 * noise(rng, size, 1.6, 2)
    for _ in range(int(rng.integers(3, 9))):
        x, y = rng.uniform(0.05, 0.75, 2) * size
        w, h = rng.uniform(0.03, 0.2, 2) * size
        image[int(y) : int(y + h), int(x) : int(x + w)] = rng.uniform(150, 255)
    image = cv2.GaussianBlur(image, (0, 0), size / 200, borderType=cv2.BORDER_REPLICATE)
    return finish(image[..., None] * np.array([1.0, 1.0, 1.0], np.float32), rng, 0.5)


def sky(rng: np.random.Generator, size: int) -> Image:
    """Blue or grey with soft clouds."""
    blue = np.array([120, 165, 225], np.float32) * rng.uniform(0.7, 1.05)
    edge = (
        np.abs(np.sin(np.linspace(0, np.pi, size, dtype=np.float32))) ** 0.5
    )  # cloudless at the border, where faces meet
    cloud = np.clip(0.4 + 0.6 * noise(rng, size, 1.6, 3) * rng.uniform(0.2, 1.0), 0, 1) * np.outer(edge, edge)
    return finish(blend(blue, np.full(3, rng.uniform(190, 240), np.float32), cloud), rng, 0.4)


_PAINTERS = (clouds, leaves, bricks, tiles, planks, checker, marks, plaster, plain, stripes, gravel, grass, facade)
TEXTURES: dict[str, Texture] = {painter.__name__: painter for painter in (*_PAINTERS, glare, sky, timber)}
