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

"""Smooth motions of cameras and bodies: analytic in time, exact at every instant and infinitely differentiable."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Float64 = npt.NDArray[np.float64]
Trajectory = Callable[[float], Float64]  # seconds -> (4, 4) pose of the left optical frame in the world (z up), metres

# optical axes (x right, y down, z forward) of a camera that looks along the world's x with z up
_FORWARD = np.array([[0.0, 0.0, 1.0], [-1.0, 0.0, 0.0], [0.0, -1.0, 0.0]])


def rotation_z(angle: float) -> Float64:
    """(3, 3) turn about z, radians."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def random_rotation(rng: np.random.Generator) -> Float64:
    """(3, 3) uniformly random rotation."""
    q, r = np.linalg.qr(rng.standard_normal((3, 3)))
    q = q * np.sign(np.diag(r))
    rotation: Float64 = q if np.linalg.det(q) > 0 else -q
    return rotation


def camera_pose(position: npt.ArrayLike, yaw: float, pitch: float = 0.0, roll: float = 0.0) -> Float64:
    """Pose of an optical frame: yaw left about the world's z, pitch up, roll clockwise, radians; position in metres."""
    cp, sp, cr, sr = np.cos(pitch), np.sin(pitch), np.cos(roll), np.sin(roll)
    tilt = np.array([[1.0, 0.0, 0.0], [0.0, cp, -sp], [0.0, sp, cp]])  # about the camera's x
    bank = np.array([[cr, -sr, 0.0], [sr, cr, 0.0], [0.0, 0.0, 1.0]])  # about the camera's z
    pose = np.eye(4)
    pose[:3, :3] = rotation_z(yaw) @ _FORWARD @ tilt @ bank
    pose[:3, 3] = position
    return pose


class Wobble:
    """A sum of sinusoids with random phases in each channel: x_c(t) = sum_k a_ck sin(2 pi f_ck t + phase_ck)."""

    def __init__(self, rng: np.random.Generator, amplitude: npt.ArrayLike, low: float, high: float) -> None:
        """amplitude: (C,) standard deviation of each channel; frequencies are log-uniform in low..high Hz."""
        deviation = np.asarray(amplitude, np.float64)
        shape = (len(deviation), 4)
        self._frequency = 2 * np.pi * np.exp(rng.uniform(np.log(low), np.log(high), shape))
        self._phase = rng.uniform(0, 2 * np.pi, shape)
        weight = rng.uniform(0.5, 1.0, shape) * (2 * np.pi * low / self._frequency) ** 0.5
        self._amplitude = weight * (deviation * np.sqrt(2) / np.linalg.norm(weight, axis=1))[:, None]

    def __call__(self, time: float) -> Float64:
        value: Float64 = (self._amplitude * np.sin(self._frequency * time + self._phase)).sum(axis=1)
        return value


class ClosedPath:
    """A smooth closed curve near the given corners: a Fourier series of the polygon, so it may be walked for ever."""

    def __init__(self, corners: npt.ArrayLike, rounding: float) -> None:
        """corners: (C, 2) metres, in order; rounding: metres over which corners are smoothed."""
        polygon = np.asarray(corners, np.float64)
        sides = np.roll(polygon, -1, axis=0) - polygon
        arc = np.append(0.0, np.cumsum(np.linalg.norm(sides, axis=1)))
        self.length = float(arc[-1])
        closed = np.vstack([polygon, polygon[:1]])
        at = np.linspace(0, self.length, 1024, endpoint=False)
        curve = np.interp(at, arc, closed[:, 0]) + 1j * np.interp(at, arc, closed[:, 1])
        order = np.rint(np.fft.fftfreq(1024) * 1024)
        smooth = np.exp(-0.5 * (2 * np.pi * order / self.length * rounding) ** 2)
        keep = np.abs(order) <= 48
        self._order = order[keep]
        self._coefficient = (np.fft.fft(curve) / 1024 * smooth)[keep]

    def __call__(self, distance: float) -> tuple[float, float, float]:
        """x, y and heading (radians) after `distance` metres."""
        turn = 2j * np.pi * self._order / self.length
        terms = self._coefficient * np.exp(turn * distance)
        place, tangent = terms.sum(), (turn * terms).sum()
        return float(place.real), float(place.imag), float(np.angle(tangent))


@dataclass(frozen=True)
class Still:
    """A camera on a tripod."""

    pose: Float64

    def __call__(self, time: float) -> Float64:
        return self.pose


class Walk:
    """A stereo camera in the hand of somebody who walks a closed path and looks around.

    The body bobs twice a pair of steps and sways once; the hand adds slow drift and a tremor of 1 to 5 Hz.
    """

    def __init__(
        self,
        rng: np.random.Generator,
        path: ClosedPath,
        height: float,
        speed: float = 0.7,
        look: float = 0.3,
        shake: float = 1.0,
    ) -> None:
        """height: of the eyes, metres; speed m/s; look: deviation of the gaze, radians; shake: 1 is a steady hand."""
        self._path, self._height, self._speed, self._shake = path, height, speed, shake
        self._start = rng.uniform(0, path.length)
        self._step = 2 * np.pi * rng.uniform(0.8, 1.0)
        self._surge = Wobble(rng, [0.35 * speed], 0.05, 0.2)
        self._drift = Wobble(rng, [0.08, 0.08, 0.05], 0.03, 0.15)
        self._gaze = Wobble(rng, [look, 0.3 * look, 0.12 * look], 0.05, 0.3)
        self._tremor = Wobble(rng, shake * np.array([0.003, 0.003, 0.003, 0.006, 0.006, 0.005]), 1.0, 5.0)

    def __call__(self, time: float) -> Float64:
        x, y, heading = self._path(self._start + self._speed * time + self._surge(time)[0])
        step, tremor, shake = self._step * time, self._tremor(time), self._shake
        sway = shake * 0.012 * np.sin(step)
        place = np.array([x - sway * np.sin(heading), y + sway * np.cos(heading), self._height])
        place += self._drift(time) + tremor[:3]
        place[2] += shake * 0.015 * np.sin(2 * step)
        yaw, pitch, roll = self._gaze(time) + tremor[3:]
        return camera_pose(
            place,
            heading + yaw + shake * 0.008 * np.sin(step),
            pitch - 0.08 + shake * 0.006 * np.sin(2 * step + 0.7),
            roll + shake * 0.01 * np.sin(step + 0.4),
        )


class Drive:
    """A car or a wheeled robot on a closed path: speed changes, weaving, body roll and vibration."""

    def __init__(
        self, rng: np.random.Generator, path: ClosedPath, height: float, speed: float, weave: float = 0.2
    ) -> None:
        """height: of the camera, metres; speed m/s; weave: sideways deviation, metres."""
        self._path, self._height, self._speed = path, height, speed
        self._start = rng.uniform(0, path.length)
        self._surge = Wobble(rng, [0.5 * speed], 0.02, 0.08)
        self._weave = Wobble(rng, [weave], 0.04, 0.15)
        self._shake = Wobble(rng, [0.002, 0.002, 0.008, 0.0015, 0.003, 0.002], 1.0, 6.0)

    def __call__(self, time: float) -> Float64:
        x, y, heading = self._path(self._start + self._speed * time + self._surge(time)[0])
        shake, side = self._shake(time), self._weave(time)[0]
        place = np.array([x - side * np.sin(heading), y + side * np.cos(heading), self._height]) + shake[:3]
        return camera_pose(place, heading + shake[3], shake[4], shake[5])


class Flight:
    """A drone: fast, smooth wandering in all six degrees of freedom around a centre."""

    def __init__(
        self, rng: np.random.Generator, centre: npt.ArrayLike, reach: npt.ArrayLike, pace: float = 1.0
    ) -> None:
        """centre: (3,) metres; reach: (3,) deviation from it, metres; pace scales all frequencies."""
        self._centre = np.asarray(centre, np.float64)
        self._place = Wobble(rng, reach, 0.04 * pace, 0.2 * pace)
        self._start = rng.uniform(0, 2 * np.pi)
        self._turn = rng.uniform(-0.3, 0.3) * pace
        self._attitude = Wobble(rng, [0.4, 0.12, 0.12], 0.06 * pace, 0.5 * pace)
        self._buzz = Wobble(rng, np.full(3, 0.002), 4.0, 9.0)

    def __call__(self, time: float) -> Float64:
        yaw, pitch, roll = self._attitude(time) + self._buzz(time)
        return camera_pose(self._centre + self._place(time), self._start + self._turn * time + yaw, pitch - 0.05, roll)


class Pace:
    """A body that goes to and fro along a line and turns a little: people, doors, pendulums."""

    def __init__(
        self, rng: np.random.Generator, centre: npt.ArrayLike, reach: npt.ArrayLike, frequency: float, spin: float = 0.2
    ) -> None:
        """centre, reach: (3,) metres; frequency Hz; spin: radians of turning about z, deviation."""
        self._centre, self._reach = np.asarray(centre, np.float64), np.asarray(reach, np.float64)
        self._rate, self._phase = 2 * np.pi * frequency, rng.uniform(0, 2 * np.pi)
        self._spin = Wobble(rng, [spin], 0.1, 0.5)
        self._yaw = rng.uniform(0, 2 * np.pi)

    def __call__(self, time: float) -> Float64:
        pose = np.eye(4)
        pose[:3, :3] = rotation_z(self._yaw + self._spin(time)[0])
        pose[:3, 3] = self._centre + self._reach * np.sin(self._rate * time + self._phase)
        return pose


class Follow:
    """A body that goes round a closed path, x ahead: traffic."""

    def __init__(self, rng: np.random.Generator, path: ClosedPath, speed: float, start: float) -> None:
        """speed m/s, negative for oncoming; start: metres along the path."""
        self._path, self._speed, self._start = path, speed, start
        self._surge = Wobble(rng, [0.3 * abs(speed)], 0.03, 0.1)

    def __call__(self, time: float) -> Float64:
        x, y, heading = self._path(self._start + self._speed * time + self._surge(time)[0])
        pose = np.eye(4)
        pose[:3, :3] = rotation_z(heading if self._speed >= 0 else heading + np.pi)
        pose[:3, 3] = x, y, 0.0
        return pose
