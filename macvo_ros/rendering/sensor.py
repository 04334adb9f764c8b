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

"""From radiance to the bytes a camera delivers: exposure, lens shading, noise, response curve, quantisation."""

from __future__ import annotations

from dataclasses import dataclass, replace

import cv2
import numpy as np
import numpy.typing as npt

Float32 = npt.NDArray[np.float32]
Image = npt.NDArray[np.uint8]

_SHEET = 1 << 21


@dataclass(frozen=True)
class Sensor:
    """One stereo camera's imperfections; the defaults are a good camera in good light.

    exposure: factor on the radiance before anything else; below 0.1 it is night.
    flicker: relative deviation of the exposure over time. imbalance: right/left exposure ratio minus 1.
    read_noise: deviation in grey levels at zero light. shot_noise: grey levels of deviation at radiance 255.
    gain: amplification after the noise has entered (auto-gain in the dark amplifies the noise too).
    bits: steps of the converter before the gain. gamma: response exponent, 1 is linear.
    softness: deviation of the lens's point spread, pixels.
    vignette: share of light lost in the corners.
    blur: seconds of exposure; sub-frames are rendered and averaged. 0 is instantaneous.
    mono: one grey channel, repeated three times; its noise is the same in all.
    tilt: (2,) error of the right camera's rectification: vertical shift in pixels and roll in radians.
    """

    exposure: float = 1.0
    flicker: float = 0.0
    imbalance: float = 0.0
    read_noise: float = 1.0
    shot_noise: float = 2.5
    gain: float = 1.0
    bits: int = 8
    gamma: float = 1.0
    softness: float = 0.0
    vignette: float = 0.0
    blur: float = 0.0
    tilt: tuple[float, float] = (0.0, 0.0)
    mono: bool = False

    def in_light(self, share: float) -> Sensor:
        """The same camera in `share` of full light: it opens up as far as it can, then amplifies, noise and all."""
        gain = float(np.clip(0.5 / share, 1.0, 16.0))
        return replace(self, exposure=self.exposure * share, gain=gain)

    def exposure_at(self, time: float, phase: float) -> float:
        """The exposure factor at `time` seconds: slow breathing and a faster ripple."""
        ripple = 0.8 * np.sin(2 * np.pi * 0.21 * time + phase) + 0.6 * np.sin(2 * np.pi * 1.3 * time + 2.1 * phase)
        return float(self.exposure * (1 + self.flicker * ripple))


def random_sensor(rng: np.random.Generator) -> Sensor:
    """A camera as they come: often good, sometimes dark, flickering, blurred, unequal or badly rectified."""

    def sometimes(chance: float, low: float, high: float) -> float:
        return float(rng.uniform(low, high)) if rng.random() < chance else 0.0

    sensor = Sensor(
        exposure=float(rng.uniform(0.7, 1.2)),
        flicker=sometimes(0.4, 0.02, 0.2),
        imbalance=sometimes(0.4, -0.15, 0.15),
        read_noise=float(rng.uniform(0.3, 2.0)),
        shot_noise=float(rng.uniform(0.5, 5.0)),
        gamma=float(rng.uniform(0.6, 1.1)),
        softness=sometimes(0.6, 0.3, 1.0),
        vignette=sometimes(0.4, 0.05, 0.4),
        blur=sometimes(0.2, 0.005, 0.03),
        tilt=(sometimes(0.3, -0.4, 0.4), sometimes(0.3, -0.001, 0.001)),
    )
    return sensor.in_light(float(np.exp(rng.uniform(np.log(0.025), np.log(0.5))))) if rng.random() < 0.25 else sensor


class Digitizer:
    """Applies a sensor to images. The noise is cut from a fixed sheet at random places: fast, and white in practice."""

    def __init__(self, sensor: Sensor, seed: int) -> None:
        self.sensor = sensor
        self._seed = seed
        rng = np.random.default_rng((seed, 77))
        self._phase = float(rng.uniform(0, 2 * np.pi))
        self._sheet: Float32 = rng.standard_normal(_SHEET, dtype=np.float32)
        self._shading: Float32 | None = None

    def digitize(self, radiance: Float32, time: float, index: int, right: bool) -> Image:
        """radiance (H, W, 3), 0..255 in full light; returns (H, W, 3) uint8. Same arguments, same bytes."""
        sensor = self.sensor
        rng = np.random.default_rng((self._seed, index, int(right)))
        factor = sensor.exposure_at(time, self._phase) * (1 + sensor.imbalance * right)
        signal = radiance * np.float32(factor)
        if sensor.mono:
            signal = signal.mean(axis=2, keepdims=True)
        if sensor.softness:
            blurred = cv2.GaussianBlur(signal, (0, 0), sensor.softness, borderType=cv2.BORDER_REPLICATE)
            signal = blurred.reshape(signal.shape)
        if sensor.vignette:
            signal *= self._vignetting(signal.shape[0], signal.shape[1])
        np.clip(signal, 0, 255 / sensor.gain, out=signal)
        deviation = np.sqrt(signal * np.float32(sensor.shot_noise**2 / 255) + np.float32(sensor.read_noise**2))
        deviation *= self._noise(rng, signal.size).reshape(signal.shape)
        signal += deviation
        steps = 2 ** (8 - sensor.bits)
        if steps > 1:
            signal = np.rint(signal / steps) * np.float32(steps)
        if sensor.gain != 1:
            signal *= np.float32(sensor.gain)
        if sensor.gamma != 1:
            np.clip(signal, 0, 255, out=signal)
            signal = 255 * (signal / 255) ** np.float32(sensor.gamma)
        signal += 0.5
        np.clip(signal, 0, 255, out=signal)
        digital: Image = np.broadcast_to(signal, radiance.shape).astype(np.uint8)
        return digital

    def _noise(self, rng: np.random.Generator, count: int) -> Float32:
        pieces = []
        while count > 0:
            length = min(count, _SHEET // 4)
            start = int(rng.integers(0, _SHEET - length))
            pieces.append(self._sheet[start : start + length] * np.float32(rng.choice([-1.0, 1.0])))
            count -= length
        return np.concatenate(pieces)

    def _vignetting(self, height: int, width: int) -> Float32:
        if self._shading is None or self._shading.shape[:2] != (height, width):
            v = (np.arange(height) - (height - 1) / 2)[:, None] / (height / 2)
            u = (np.arange(width) - (width - 1) / 2)[None] / (width / 2)
            radius2 = (u**2 + v**2) / 2
            self._shading = (1 - self.sensor.vignette * radius2)[..., None].astype(np.float32)
        return self._shading
