"""Smooth camera trajectories: analytic in time, hence exact at every instant and infinitely differentiable."""

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
    """A sum of sinusoids with random phases, one per channel: x_c(t) = sum_k a_ck sin(2 pi f_ck t + phase_ck)."""

    def __init__(self, rng: np.random.Generator, amplitude: npt.ArrayLike, low: float, high: float, waves: int = 4):
        """amplitude: (C,) standard deviation of each channel; frequencies are log-uniform in low..high Hz."""
        deviation = np.asarray(amplitude, np.float64)
        shape = (len(deviation), waves)
        self._frequency = 2 * np.pi * np.exp(rng.uniform(np.log(low), np.log(high), shape))
        self._phase = rng.uniform(0, 2 * np.pi, shape)
        weight = rng.uniform(0.5, 1.0, shape) * (2 * np.pi * low / self._frequency) ** 0.5
        self._amplitude = weight * (deviation * np.sqrt(2) / np.linalg.norm(weight, axis=1))[:, None]

    def __call__(self, time: float) -> Float64:
        value: Float64 = (self._amplitude * np.sin(self._frequency * time + self._phase)).sum(axis=1)
        return value


@dataclass(frozen=True)
class Still:
    """A camera on a tripod."""

    pose: Float64

    def __call__(self, time: float) -> Float64:
        return self.pose


class Walk:
    """A stereo camera in the hand of somebody who walks an oval and looks around.

    The body bobs twice a step pair and sways once; the hand adds slow and fast tremor. Speeds about 0.7 m/s.
    """

    def __init__(
        self,
        rng: np.random.Generator,
        centre: npt.ArrayLike,
        radii: tuple[float, float],
        speed: float = 0.7,
        look: float = 0.35,
        shake: float = 1.0,
    ) -> None:
        """centre: (3,) of the oval at eye height, metres; radii along x and y; look: deviation of the gaze, radians."""
        self._centre = np.asarray(centre, np.float64)
        self._radii = np.asarray(radii, np.float64)
        self._direction = 1.0 if rng.random() < 0.5 else -1.0
        self._rate = self._direction * speed / float(np.mean(radii))
        self._start = rng.uniform(0, 2 * np.pi)
        self._step = rng.uniform(0.8, 1.0)  # step pairs a second
        self._drift = Wobble(rng, np.array([0.12, 0.12, 0.05]), 0.03, 0.15)
        self._gaze = Wobble(rng, np.array([look, 0.3 * look, 0.12 * look]), 0.05, 0.3)
        self._tremor = Wobble(rng, shake * np.array([0.003, 0.003, 0.003, 0.006, 0.006, 0.005]), 1.0, 5.0)
        self._shake = shake

    def __call__(self, time: float) -> Float64:
        angle = self._start + self._rate * time
        position = self._centre + np.array([self._radii[0] * np.cos(angle), self._radii[1] * np.sin(angle), 0.0])
        heading = angle + self._direction * np.pi / 2
        step = 2 * np.pi * self._step * time
        sway = self._shake * 0.012 * np.sin(step)
        side = np.array([-np.sin(heading), np.cos(heading), 0.0])
        tremor = self._tremor(time)
        position = position + self._drift(time) + sway * side + tremor[:3]
        position[2] += self._shake * 0.015 * np.sin(2 * step)
        yaw, pitch, roll = self._gaze(time) + tremor[3:]
        return camera_pose(
            position,
            heading + yaw + self._shake * 0.008 * np.sin(step),
            pitch - 0.08 + self._shake * 0.006 * np.sin(2 * step + 0.7),
            roll + self._shake * 0.01 * np.sin(step + 0.4),
        )


class Straight:
    """Forward along x: a car, a robot or a person in a corridor, with speed changes, weaving and vibration."""

    def __init__(
        self,
        rng: np.random.Generator,
        start: npt.ArrayLike,
        speed: float,
        weave: float = 0.3,
        shake: float = 0.3,
        look: float = 0.02,
    ) -> None:
        """start: (3,) metres; speed m/s; weave: lateral deviation, metres; look: deviation of yaw, radians."""
        self._start = np.asarray(start, np.float64)
        self._speed = speed
        self._surge = Wobble(rng, [0.25 * speed], 0.03, 0.1, 2)  # metres: speed varies by about a tenth
        self._weave = Wobble(rng, [weave], 0.04, 0.15, 3)
        self._gaze = Wobble(rng, np.array([look, 0.3 * look, 0.3 * look]), 0.1, 0.5)
        self._vibration = Wobble(rng, shake * np.array([0.002, 0.002, 0.006, 0.002, 0.003, 0.002]), 1.0, 6.0)

    def __call__(self, time: float) -> Float64:
        shake = self._vibration(time)
        x = self._speed * time + self._surge(time)[0]
        y = self._weave(time)[0]
        ahead = self._weave(time + 0.05)[0] - self._weave(time - 0.05)[0]
        yaw, pitch, roll = self._gaze(time) + shake[3:]
        position = self._start + np.array([x, y, 0.0]) + shake[:3]
        return camera_pose(position, yaw + ahead / (0.1 * max(self._speed, 0.5)), pitch, roll)


class Flight:
    """A drone: fast, smooth wandering in all six degrees of freedom around a centre."""

    def __init__(
        self, rng: np.random.Generator, centre: npt.ArrayLike, reach: npt.ArrayLike, pace: float = 1.0
    ) -> None:
        """centre: (3,) metres; reach: (3,) deviation from it, metres; pace scales all frequencies."""
        self._centre = np.asarray(centre, np.float64)
        self._place = Wobble(rng, reach, 0.04 * pace, 0.25 * pace)
        self._yaw0 = rng.uniform(0, 2 * np.pi)
        self._turn = rng.uniform(-0.35, 0.35) * pace
        self._attitude = Wobble(rng, np.array([0.5, 0.12, 0.15]), 0.08 * pace, 0.6 * pace)
        self._buzz = Wobble(rng, np.full(3, 0.002), 4.0, 9.0)

    def __call__(self, time: float) -> Float64:
        yaw, pitch, roll = self._attitude(time) + self._buzz(time)
        return camera_pose(self._centre + self._place(time), self._yaw0 + self._turn * time + yaw, pitch - 0.05, roll)
