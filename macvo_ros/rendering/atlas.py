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

"""All textures of a scene and their mip levels in one image, so that a whole view is sampled by few remaps."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np
import numpy.typing as npt

Image = npt.NDArray[np.uint8]
Float32 = npt.NDArray[np.float32]

PAD = 3  # texels of wrapped border around every level, so that bilinear look-ups never see a neighbour


class TextureAtlas:
    """Square tileable textures of one power-of-two size, each with its mip levels.

    A texture coordinate runs from 0 to 1 over the texture's extent (edges, not texel centres): texel i of a level with
    n texels has its centre at (i + 0.5) / n. Box-filtered levels keep that relation, so no level is shifted.
    """

    def __init__(self, textures: Sequence[Image]) -> None:
        """textures: (T, T, 3) uint8 RGB each, T a power of two, tileable in both directions."""
        self.size = int(textures[0].shape[0])
        self.levels = self.size.bit_length()
        self.count = len(textures)
        columns = max(1, int(np.ceil(np.sqrt(self.count / 1.5))))
        width = self.size + self.size // 2 + 4 * PAD
        height = self.size + 2 * PAD * self.levels
        rows = -(-self.count // columns)
        self.image: Image = np.zeros((rows * height, columns * width, 3), np.uint8)
        self._x = np.zeros((self.count, self.levels), np.float32)
        self._y = np.zeros((self.count, self.levels), np.float32)
        self._texels = (self.size / 2.0 ** np.arange(self.levels)).astype(np.float32)
        for index, texture in enumerate(textures):
            self._insert(index, texture, (index % columns) * width, (index // columns) * height)

    def _insert(self, index: int, texture: Image, left: int, top: int) -> None:
        level_image = texture[::-1].astype(np.float32)  # rows from the bottom up, as t runs
        x, y = left, top
        for level in range(self.levels):
            padded = np.pad(level_image, ((PAD, PAD), (PAD, PAD), (0, 0)), mode="wrap")
            self.image[y : y + padded.shape[0], x : x + padded.shape[1]] = np.rint(padded)
            self._x[index, level], self._y[index, level] = x + PAD - 0.5, y + PAD - 0.5
            if level == 0:
                x = left + padded.shape[1]
            else:
                y += padded.shape[0]
            if level_image.shape[0] > 1:
                level_image = cv2.resize(
                    level_image, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA
                )  # exact 2x2 box mean

    def sample(
        self,
        texture: npt.NDArray[np.intp],
        places: Sequence[tuple[Float32, Float32]],
        level: npt.NDArray[np.intp],
        share: Float32,
    ) -> Float32:
        """Sum of trilinear look-ups: bilinear in `level` and the coarser one after it, mixed by the latter's `share`.

        texture, level: (H, W) indices; places: coordinates s, t in tiles, (H, W) each; share: (H, W) in 0..1.
        Returns (H, W, 3) float32, 0..255 times the number of places.
        """
        within = [(s - np.floor(s), t - np.floor(t)) for s, t in places]
        slot = texture * self.levels + level
        addresses = ((self._texels, level), (self._x, slot), (self._y, slot))  # np.take looks into flattened tables
        fine, coarse = (
            self._bilinear(within, *(np.take(table, at + step) for table, at in addresses)) for step in (0, 1)
        )
        mixed: Float32 = cv2.blendLinear(fine, coarse, 1 - share, share)
        return mixed

    def _bilinear(
        self, within: Sequence[tuple[Float32, Float32]], texels: Float32, left: Float32, top: Float32
    ) -> Float32:
        looks = [cv2.remap(self.image, s * texels + left, t * texels + top, cv2.INTER_LINEAR) for s, t in within]
        if len(looks) == 2:
            both: Float32 = cv2.add(looks[0], looks[1], dtype=cv2.CV_32F)
            return both
        total: Float32 = np.sum(looks, axis=0, dtype=np.float32)
        return total
