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

"""What the procedural textures are made of: colours, tileable noise and the grain that no surface is without."""

from __future__ import annotations

from functools import lru_cache

import cv2
import numpy as np
import numpy.typing as npt

Image = npt.NDArray[np.uint8]
Float32 = npt.NDArray[np.float32]


def colour(rng: np.random.Generator, low: float = 40, high: float = 215, saturation: float = 0.35) -> Float32:
    """(3,) RGB, 0..255, brightness low..high: mostly greys, browns and other pale colours, as things are."""
    warm = rng.random() < 0.65
    hue = rng.normal(0.09, 0.05) if warm else rng.uniform()
    strength = np.clip(saturation * rng.gamma(1.5, 0.7 if warm else 0.4), 0, 0.9 if warm else 0.6)
    pure = np.clip(np.abs(6 * ((hue + np.array([0.0, 2 / 3, 1 / 3])) % 1.0) - 3) - 1, 0, 1)
    rgb: Float32 = np.clip(rng.uniform(low, high) * (1 - strength * (1 - pure) * 0.8), 4, 250).astype(np.float32)
    return rgb


@lru_cache(maxsize=4)
def _log_frequency(size: int) -> Float32:
    """(size, size) log of the spatial frequency in cycles a tile, 0 for the mean."""
    f = np.fft.fftfreq(size).astype(np.float32) * size
    return np.log(np.maximum(np.hypot(f[:, None], f[None]), 1)).astype(np.float32)


def noise(rng: np.random.Generator, size: int, slope: float = 1.2, low: float = 1.0) -> Float32:
    """(size, size) tileable noise, mean 0, deviation 1, amplitude falling as frequency^-slope above `low` cycles.

    Steep spectra have nothing to lose in the last octave: they are made at half the size.
    """
    if slope >= 0.9:
        half = np.pad(_spectral(rng, size // 2, slope, low), 4, mode="wrap")
        double: Float32 = cv2.resize(half, None, fx=2, fy=2, interpolation=cv2.INTER_CUBIC)[8:-8, 8:-8].copy()
        return double
    return _spectral(rng, size, slope, low)


def _spectral(rng: np.random.Generator, size: int, slope: float, low: float) -> Float32:
    spectrum = cv2.dft(rng.standard_normal((size, size), dtype=np.float32), flags=cv2.DFT_COMPLEX_OUTPUT)
    weight = np.exp(np.float32(-slope) * np.maximum(_log_frequency(size), np.float32(np.log(low))))
    weight[0, 0] = 0
    spectrum *= weight[..., None]
    field: Float32 = cv2.dft(spectrum, flags=cv2.DFT_INVERSE | cv2.DFT_REAL_OUTPUT)
    field /= max(float(field.std()), 1e-30)
    return field


@lru_cache(maxsize=4)
def _grain(size: int) -> Float32:
    return noise(np.random.default_rng(0), size, slope=0.3)


def finish(image: Float32, rng: np.random.Generator, grain: float = 4.0) -> Image:
    """(H, W, 3) float to uint8 with fine grain, so that no real surface is perfectly flat."""
    field = np.roll(_grain(image.shape[0]), rng.integers(0, image.shape[0], 2), (0, 1))
    texture: Image = np.clip(image + field[..., None] * np.float32(grain), 0, 255).astype(np.uint8)
    return texture


def blend(first: Float32, second: Float32, share: Float32) -> Float32:
    """From `first` to `second`, colours (..., 3), by `share` (size, size), 0..1."""
    return first + share[..., None] * (second - first)
