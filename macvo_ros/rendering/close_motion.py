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

"""Motions of a camera close to things: looking at a bench, and standing, taking off and landing."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from macvo_ros.rendering.motion import Float64, Wobble, camera_pose


class Inspect:
    """A camera in the hand or on an arm that looks at one spot and moves slowly about."""

    def __init__(
        self,
        rng: np.random.Generator,
        distance: float,
        yaw: float,
        pitch: float,
        *,
        roll: float = 0.0,
        pace: float = 1.0,
        shake: float = 1.0,
    ) -> None:
        """distance: metres from the spot (the world's origin), of which the camera wanders sideways by a tenth.

        yaw, pitch, roll: radians, as of `camera_pose`; pace scales all frequencies; shake: 1 a steady hand, 0 an arm.
        """
        self._gaze = np.array([yaw, pitch, roll])
        self._axes = camera_pose(np.zeros(3), yaw, pitch)[:3, :3]
        self._centre = -distance * self._axes[:, 2]
        self._place = Wobble(rng, distance * np.array([0.1, 0.1, 0.04]), 0.05 * pace, 0.25 * pace)
        self._look = Wobble(rng, [0.05, 0.05, 0.04], 0.05 * pace, 0.3 * pace)
        self._tremor = Wobble(rng, shake * np.array([0.0015, 0.0015, 0.001, 0.004, 0.004, 0.004]), 1.0, 6.0)

    def __call__(self, time: float) -> Float64:
        tremor = self._tremor(time)
        place = self._centre + self._axes @ (self._place(time) + tremor[:3])
        yaw, pitch, roll = self._gaze + self._look(time) + tremor[3:]
        return camera_pose(place, yaw, pitch, roll)


class Hop:
    """A drone that stands, takes off, wanders low about and lands on the same spot, again and again.

    How much it flies is s(t) = 1 / (1 + exp(-k (sin(2 pi t / T + phase) - c))): below 1 % for a third of the period.
    """

    _SHARPNESS, _SHARE = 9.0, 0.2  # k and c

    def __init__(
        self, rng: np.random.Generator, stand: npt.ArrayLike, pitch: float, lift: float, reach: float = 0.35
    ) -> None:
        """stand: (3,) metres, the camera when landed; pitch: then, radians; lift, reach: metres up and sideways."""
        self._stand, self._up = np.asarray(stand, np.float64), np.array([0.0, 0.0, lift])
        self._rest = np.array([rng.uniform(0, 2 * np.pi), pitch, rng.normal(0, 0.03)])
        self._rate = 2 * np.pi / rng.uniform(8, 14)
        self._phase = -np.pi / 2 + rng.normal(0, 0.8)
        self._place = Wobble(rng, [reach, reach, 0.1 * lift], 0.08, 0.35)
        self._attitude = Wobble(rng, [0.3, 0.07, 0.07], 0.1, 0.7)
        self._buzz = Wobble(rng, np.full(3, 0.003), 4.0, 9.0)

    @property
    def heading(self) -> float:
        """The yaw of the standing camera, radians."""
        return float(self._rest[0])

    def flying(self, time: float) -> float:
        """s(t): 0 landed, 1 in flight."""
        wave = np.sin(self._rate * time + self._phase)
        return float(1 / (1 + np.exp(-self._SHARPNESS * (wave - self._SHARE))))

    def __call__(self, time: float) -> Float64:
        share = self.flying(time)
        place = self._stand + share * (self._place(time) + self._up)
        yaw, pitch, roll = self._rest + share * (self._attitude(time) + self._buzz(time))
        return camera_pose(place, yaw, pitch, roll)
