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

"""Which textures a world is painted with, by role."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt

from macvo_ros.errors import SequenceError
from macvo_ros.rendering.atlas import TextureAtlas
from macvo_ros.rendering.texture import TEXTURES

Image = npt.NDArray[np.uint8]

RICH: Mapping[str, Sequence[str]] = {
    "wall": ("bricks", "clouds", "plaster", "leaves", "tiles"),
    "floor": ("planks", "tiles", "gravel", "checker"),
    "ceiling": ("plaster", "tiles", "plain"),
    "thing": ("leaves", "marks", "planks", "clouds", "checker", "gravel", "stripes"),
    "print": ("marks", "leaves", "facade"),
    "mirror": ("glare",),
}
BARE: Mapping[str, Sequence[str]] = {
    "wall": ("plain", "plain", "plaster"),
    "floor": ("plain", "plaster", "tiles"),
    "ceiling": ("plain",),
    "thing": ("plain", "plaster", "stripes", "marks", "planks"),
    "print": ("marks", "plain", "leaves"),
    "mirror": ("glare",),
}
OUTSIDE: Mapping[str, Sequence[str]] = {
    **RICH,
    "floor": ("tiles", "gravel", "bricks"),
    "road": ("gravel", "gravel", "clouds"),
    "facade": ("facade", "facade", "bricks", "plaster", "facade"),
    "plant": ("grass", "grass", "leaves", "clouds"),
    "rock": ("clouds", "gravel", "planks"),
    "sky": ("sky",),
}
WORKSHOP: Mapping[str, Sequence[str]] = {
    **RICH,
    "wall": ("clouds", "plaster", "bricks", "stripes", "plain"),
    "floor": ("timber", "gravel", "clouds", "tiles", "plaster"),
    "board": ("timber", "timber", "timber", "planks", "gravel"),
    "metal": ("clouds", "stripes", "plaster", "gravel"),
}


class Palette:
    """An atlas of freshly painted textures that scenes ask for by role."""

    def __init__(
        self,
        rng: np.random.Generator,
        roles: Mapping[str, Sequence[str]] = RICH,
        size: int = 1024,
        most: int = 4,
        photographs: Sequence[Path] = (),
    ) -> None:
        """roles: kinds of texture for each role; most: how many of a role are painted; size: texels.

        photographs: image files of which half of the textures (but not glare and sky) are made instead.
        """
        self._rng = rng
        seed = int(rng.integers(1 << 62))  # a generator per texture: how one is painted changes nothing else
        self._indices: dict[str, list[int]] = {}
        painted: list[Image] = []
        for role, kinds in roles.items():
            chosen = [kinds[i] for i in rng.permutation(len(kinds))[:most]]
            self._indices[role] = list(range(len(painted), len(painted) + len(chosen)))
            for kind in chosen:
                brush = np.random.default_rng([seed, len(painted)])
                if photographs and role not in ("mirror", "sky") and brush.random() < 0.5:
                    painted.append(photograph(photographs[int(brush.integers(len(photographs)))], brush, size))
                else:
                    painted.append(TEXTURES[kind](brush, size))
        self.atlas = TextureAtlas(painted)

    def of(self, role: str) -> list[int]:
        """All texture indices of a role."""
        return self._indices[role]

    def one(self, role: str) -> int:
        """A random texture of a role."""
        return self.some(role, 1)[0]

    def some(self, role: str, count: int) -> list[int]:
        """Random textures of a role, different ones first."""
        indices = self._indices[role]
        order = [indices[i] for i in self._rng.permutation(len(indices))]
        return [order[i % len(order)] for i in range(count)]


def photograph(path: Path, rng: np.random.Generator, size: int) -> Image:
    """A random square of an image file as a tileable texture (T, T, 3) RGB; opposite borders are cross-faded."""
    image = cv2.imread(str(path), cv2.IMREAD_COLOR)
    if image is None:
        raise SequenceError(f"{path} is not an image OpenCV can read; leave it out of the folder of photographs")
    border = size // 8
    whole = size + border
    side = int(min(image.shape[:2]) * rng.uniform(0.5, 1.0))
    top, left = (int(rng.integers(0, extent - side + 1)) for extent in image.shape[:2])
    square = image[top : top + side, left : left + side, ::-1].astype(np.float32)
    interpolation = cv2.INTER_AREA if side > whole else cv2.INTER_LINEAR
    square = cv2.resize(square, (whole, whole), interpolation=interpolation)
    fade = np.linspace(0, 1, border, dtype=np.float32)
    tile = square[:size].copy()
    tile[:border] = square[:border] * fade[:, None, None] + square[size:] * (1 - fade[:, None, None])
    tiled = tile[:, :size].copy()
    tiled[:, :border] = tile[:, :border] * fade[None, :, None] + tile[:, size:] * (1 - fade[None, :, None])
    texture: Image = np.clip(tiled, 0, 255).astype(np.uint8)
    return texture
