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

"""What a filter does when we fall silent, and what `config/ekf.yaml` should say of acceleration, which nobody measures.

    python -m bench.ekf_silence

Rendered walks, a flight and drives, seeds 0 and 1 (fixed beforehand); the default matcher's twists, 15 a second, until
one of four moments, then nothing. The filter has the model of robot_localization's ekf_node
(`test/acceleration_filter.py`) and the settings of `config/ekf.yaml`, but for process noise and initial variance of the
acceleration. With an IMU: rates (0.01 rad/s) and roll and pitch (0.5 degrees), 50 a second. Writes
bench/results/ekf_silence.json and .txt. Three minutes.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "test")]

from acceleration_filter import ANGLES, POSITION, RATES, VELOCITY, angles_of, shipped_filter  # noqa: E402
from test_fusion import CAMERA  # noqa: E402

from macvo_ros.atomic_write import atomic_write  # noqa: E402
from macvo_ros.evaluation.environment import machine, versions  # noqa: E402
from macvo_ros.geometry.se3 import inverse, log_so3  # noqa: E402
from macvo_ros.odometry.message_fields import is_published, odometry_fields  # noqa: E402
from macvo_ros.odometry.stereo_odometry import StereoOdometry  # noqa: E402
from macvo_ros.rendering.sensor import Sensor  # noqa: E402
from macvo_ros.rendering.sequence import RenderedSequence  # noqa: E402
from macvo_ros.rendering.worlds import build  # noqa: E402
from macvo_ros.settings.config import Config  # noqa: E402

Float64 = npt.NDArray[np.float64]

GROUPS = {"on foot": ("room", "corridor", "park"), "drone": ("drone",), "car": ("street",)}
SEEDS = (0, 1)
RATE, IMU_RATE, FRAMES = 15.0, 50.0, 52
ENDS = (15, 27, 39, 51)
"""Frames after which there is silence."""
SILENCES = {"2 s, IMU": (2.0, True), "2 s": (2.0, False), "8 s": (8.0, False)}
VARIANTS = {"0.1, 1 (was)": (0.1, 1.0)} | {f"{value:g}": (value, value) for value in (1e-2, 1e-3, 1e-6, 1e-9)}
"""Process noise and initial variance of the acceleration, (m/s^2)^2 per second and (m/s^2)^2."""
GYRO, LEVEL = 0.01, np.radians(0.5)
RESULTS = ROOT / "bench" / "results" / "ekf_silence"

BASE_FROM_CAMERA = np.array([[0.0, 0, 1, 0], [-1, 0, 0, 0], [0, -1, 0, 0], [0, 0, 0, 1]])
TWIST = np.array([False] * 6 + [True] * 6 + [False] * 3)
IMU = np.array([False] * 3 + [True, True] + [False] * 4 + [True] * 3 + [False] * 3)


@dataclass(frozen=True)
class Walk:
    """The twists we would publish, by frame (None: lost), and where the robot truly is."""

    name: str
    twists: list[tuple[Float64, Float64] | None]
    world: Any

    def pose(self, seconds: float) -> Float64:
        """(4, 4) true pose of the base in odom."""
        moved = inverse(self.world.trajectory(0.0)) @ self.world.trajectory(seconds)
        return np.asarray(BASE_FROM_CAMERA @ moved @ inverse(BASE_FROM_CAMERA))

    def velocity(self, seconds: float) -> Float64:
        """(6,) true velocity and rates of the base in its axes, over a hundredth of a second."""
        half = 0.005
        moved = inverse(self.pose(seconds - half)) @ self.pose(seconds + half)
        turned = log_so3(moved[:3, :3])
        middle = inverse(self.pose(seconds))[:3, :3] @ self.pose(seconds - half)[:3, :3]
        return np.concatenate([middle @ moved[:3, 3], turned]) / (2 * half)


def record(name: str, seed: int) -> Walk:
    """Track a rendered sequence and keep its twists."""
    world = build(name, seed, 512)
    sequence = RenderedSequence(world, FRAMES, seed, camera=CAMERA, rate=RATE, sensor=Sensor())
    odometry = StereoOdometry(Config(), base_from_camera=BASE_FROM_CAMERA)
    twists: list[tuple[Float64, Float64] | None] = []
    for index in range(FRAMES):
        estimate = odometry.track(sequence[index])
        fields = odometry_fields(estimate)
        measured = np.concatenate([fields.linear, fields.angular]), fields.twist_covariance.reshape(6, 6)
        twists.append(measured if is_published(estimate.status) else None)
    return Walk(f"{name}:{seed}", twists, world)


def run(walk: Walk, end: int, variant: tuple[float, float], silence: tuple[float, bool]) -> dict[str, float]:
    """Errors of the filter when our last twist is that of frame `end`."""
    seconds, with_imu = silence
    rng = np.random.default_rng(end)
    state = shipped_filter(variant)
    stop = end / RATE + seconds
    images = {round(index / RATE, 6): walk.twists[index] for index in range(end + 1)}
    ticks = {round(tick / IMU_RATE, 6) for tick in range(1, int(stop * IMU_RATE) + 1)}
    now, lit, last = 0.0, [], np.zeros(3)
    for moment in sorted({*images, *ticks, round(stop, 6)}):
        if moment > now:
            state.predict(moment - now)
            now = moment
        if with_imu and moment in ticks:
            state.correct(IMU, *_imu(walk, moment, rng))
        if images.get(moment) is not None:
            measured, covariance = np.zeros(15), np.eye(15)
            measured[6:12], covariance[6:12, 6:12] = images[moment]  # type: ignore[misc]
            state.correct(TWIST, measured, covariance)
            last = state.state[VELOCITY]
            if moment > 0.5:
                lit.append(np.sum((state.state[VELOCITY] - walk.velocity(moment)[:3]) ** 2))
    off = state.state[POSITION] - walk.pose(stop)[:3, 3]
    return {
        "lit": float(np.mean(lit)),
        "position": float(off @ off),
        "nees": float(off @ np.linalg.solve(state.covariance[POSITION, POSITION], off)),
        "gained": float(np.linalg.norm(state.state[VELOCITY] - last)),
    }


def _imu(walk: Walk, moment: float, rng: np.random.Generator) -> tuple[Float64, Float64]:
    measured, covariance = np.zeros(15), np.eye(15)
    measured[ANGLES] = angles_of(walk.pose(moment)[:3, :3]) + LEVEL * rng.normal(size=3)
    measured[RATES] = walk.velocity(moment)[3:] + GYRO * rng.normal(size=3)
    covariance[ANGLES, ANGLES], covariance[RATES, RATES] = LEVEL**2 * np.eye(3), GYRO**2 * np.eye(3)
    return measured, covariance


def summary(rows: dict[str, list[dict[str, float]]]) -> dict[str, float]:
    """The figures of one setting and one kind of silence; rows: by group."""
    everything = [row for group in rows.values() for row in group]

    def rms(part: list[dict[str, float]], name: str) -> float:
        return float(np.sqrt(np.mean([row[name] for row in part])))

    return {
        "tracked": rms(everything, "lit"),
        "nees": float(np.median([row["nees"] for row in everything])),
        "gained": max(row["gained"] for row in everything),
        **{f"position, {group}": rms(part, "position") for group, part in rows.items()},
    }


def main() -> None:
    """Record, filter, print and log."""
    walks = {group: [record(name, seed) for name in names for seed in SEEDS] for group, names in GROUPS.items()}
    count = sum(map(len, walks.values()))
    lost = sum(twist is None for group in walks.values() for walk in group for twist in walk.twists)
    lines = [f"{count} walks, {count * len(ENDS)} silences; {lost} of {count * FRAMES} frames lost before"]
    lines.append(
        "acceleration: process noise and initial variance; tracked: rms of the velocity before the silence [m/s]"
    )
    lines.append(
        "at its end: rms of the position [m], median NEES of it (2.4 is perfect), largest change of speed [m/s]"
    )
    document: dict[str, Any] = {"versions": versions(), "machine": machine(), "variants": {}}
    for name, variant in VARIANTS.items():
        document["variants"][name] = found = {}
        for label, silence in SILENCES.items():
            rows = {
                group: [run(walk, end, variant, silence) for walk in walks[group] for end in ENDS] for group in walks
            }
            found[label] = row = summary(rows)
            errors = "  ".join(f"{group} {row[f'position, {group}']:6.3f}" for group in walks)
            lines.append(
                f"  {name:13} {label:9} tracked {row['tracked']:.4f}   position: {errors}   NEES {row['nees']:.1f}   "
                f"gained {row['gained']:.2f}"
            )
    lines += [f"{key}: {value}" for part in (versions(), machine()) for key, value in part.items()]
    print("\n".join(lines))
    atomic_write(RESULTS.with_suffix(".json"), json.dumps(document, indent=1) + "\n")
    atomic_write(RESULTS.with_suffix(".txt"), "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
