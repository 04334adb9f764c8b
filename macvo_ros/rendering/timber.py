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

"""Sawn timber as it looks from near: fibres along x, year rings, knots and the marks of the saw."""

from __future__ import annotations

import cv2
import numpy as np

from macvo_ros.rendering.paint import Float32, Image, colour, finish

_STRETCH = 24.0  # how much longer than wide the fibres are


def timber(rng: np.random.Generator, size: int) -> Image:
    """One board, (size, size, 3) RGB, tileable; fine enough to fill an image at 0.2 m."""
    y, x = np.mgrid[0:size, 0:size].astype(np.float32) / size
    warp = 0.02 * _fibres(rng, size, 1.4, 4.0)
    shade = np.zeros((size, size), np.float32)
    for _ in range(int(rng.integers(1, 6))):
        dx, dy = ((axis - np.float32(rng.uniform()) + 0.5) % 1.0 - 0.5 for axis in (x, y))
        radius, slant = rng.uniform(0.008, 0.035), rng.uniform(1.0, 2.0)
        distance2 = (dx / slant) ** 2 + dy**2
        warp += np.float32(2.5 * radius) * np.tanh(dy / radius) * np.exp(-distance2 / (4 * radius) ** 2)
        shade += np.float32(rng.uniform(0.3, 0.9)) * np.exp(-((distance2 / radius**2) ** 2))
    rings = np.sin(2 * np.pi * int(rng.integers(6, 25)) * (y - warp))
    saw = np.sin(2 * np.pi * (int(rng.integers(60, 120)) * x + 2 * np.sin(2 * np.pi * y)))
    light = rng.uniform(3, 12) * rings + rng.uniform(6, 16) * _fibres(rng, size, 0.5, _STRETCH)
    light += rng.uniform(0, 3) * saw + rng.uniform(3, 10) * _fibres(rng, size, 1.3, 2.0)
    wood = colour(rng, 130, 215, 0.25) + light[..., None]
    return finish(wood * (1 - 0.8 * np.minimum(shade, 1.0))[..., None], rng, rng.uniform(2, 6))


def _fibres(rng: np.random.Generator, size: int, slope: float, stretch: float) -> Float32:
    """(size, size) tileable noise, mean 0, deviation 1, drawn out along x by `stretch`."""
    frequency = np.fft.fftfreq(size).astype(np.float32) * size
    radius = np.maximum(np.hypot(frequency[:, None], stretch * frequency[None]), 1)
    spectrum = cv2.dft(rng.standard_normal((size, size), dtype=np.float32), flags=cv2.DFT_COMPLEX_OUTPUT)
    weight = radius ** np.float32(-slope)
    weight[0, 0] = 0
    field: Float32 = cv2.dft(spectrum * weight[..., None], flags=cv2.DFT_INVERSE | cv2.DFT_REAL_OUTPUT)
    return np.asarray(field / max(float(field.std()), 1e-30))
