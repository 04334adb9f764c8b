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

"""Trajectories as text: TUM (stamp, position, quaternion), the same with covariance, and KITTI (3x4 matrices)."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import numpy as np
import numpy.typing as npt

from macvo_ros.atomic_write import atomic_write
from macvo_ros.errors import SequenceError
from macvo_ros.geometry.se3 import nearest_rotation, quaternion
from macvo_ros.sequences.poses import poses_from_quaternions
from macvo_ros.sequences.text_rows import check_quaternions, number_rows, text_rows

Float64 = npt.NDArray[np.float64]
Int64 = npt.NDArray[np.int64]

MAX_SECONDS = 4_000_000_000
"""Times beyond the year 2096 are not seconds."""
TUM_HEADER = "# timestamp tx ty tz qx qy qz qw"
COVARIANCE_HEADER = (
    TUM_HEADER + " then the 21 upper-triangle entries c00 c01 .. c05 c11 .. c55, row by row, of the 6x6 covariance of "
    "[dx dy dz drx dry drz], metres and radians, fixed axes of the trajectory's frame"
)


@dataclass(frozen=True, eq=False)
class StampedPoses:
    """A trajectory: stamps (N,) int64 nanoseconds, poses (N, 4, 4) metres, covariance (N, 6, 6) or None."""

    stamps: Int64
    poses: Float64
    covariance: Float64 | None = None

    def __len__(self) -> int:
        return len(self.stamps)


def read_tum(path: str | Path) -> StampedPoses:
    """Read a TUM file of 8 columns (seconds, metres, quaternion x y z w), or ours with 21 more of covariance."""
    rows = text_rows(path)
    columns = {len(row) for _, row in rows}
    if not columns <= {8} and not columns <= {29}:
        line, row = next((line, row) for line, row in rows if len(row) not in (8, 29) or len(row) != len(rows[0][1]))
        raise SequenceError(
            f"{path}, line {line}: expected 8 columns (timestamp tx ty tz qx qy qz qw) or 29 (with covariance) "
            f"throughout, got {len(row)}"
        )
    stamps = np.array([seconds_to_ns(row[0], f"{path}, line {line}") for line, row in rows], dtype=np.int64)
    values = number_rows(path, [(line, row[1:]) for line, row in rows], max(columns, default=8) - 1)
    check_quaternions(path, rows, values[:, 3:7])
    covariance = None
    if values.shape[1] == 28:
        row_of, column_of = np.triu_indices(6)
        covariance = np.zeros((len(rows), 6, 6))
        covariance[:, row_of, column_of] = covariance[:, column_of, row_of] = values[:, 7:]
    return StampedPoses(stamps, poses_from_quaternions(values[:, :3], values[:, 3:7]), covariance)


def write_tum(
    path: str | Path, stamps: npt.ArrayLike, poses: npt.ArrayLike, covariance: npt.ArrayLike | None = None
) -> None:
    """Write a TUM file atomically; with `covariance` (N, 6, 6) its upper triangle follows each pose.

    stamps: (N,) int64 nanoseconds. poses: (N, 4, 4) metres.
    """
    stamps, poses = np.asarray(stamps, dtype=np.int64), np.asarray(poses, dtype=np.float64)
    extra = np.empty((len(poses), 0))
    if covariance is not None:
        row_of, column_of = np.triu_indices(6)
        extra = np.asarray(covariance, dtype=np.float64)[:, row_of, column_of]
    lines = [TUM_HEADER if covariance is None else COVARIANCE_HEADER]
    for stamp, pose, more in zip(stamps, poses, extra, strict=True):
        numbers = [*pose[:3, 3], *quaternion(pose[:3, :3])]
        text = [ns_to_seconds(int(stamp)), *(f"{n:.9f}" for n in numbers), *(f"{n:.9e}" for n in more)]
        lines.append(" ".join(text))
    atomic_write(path, "\n".join(lines) + "\n")


def read_kitti_poses(path: str | Path) -> Float64:
    """(N, 4, 4) poses of a KITTI file: 12 row-major numbers (3x4) a line, no times."""
    rows = text_rows(path)
    values = number_rows(path, rows, 12).reshape(-1, 3, 4)
    poses = np.tile(np.eye(4), (len(values), 1, 1))
    for (line, _), pose, value in zip(rows, poses, values, strict=True):
        R = value[:, :3]
        if np.abs(R @ R.T - np.eye(3)).max() > 1e-2 or np.linalg.det(R) < 0:
            raise SequenceError(f"{path}, line {line}: the numbers are not a pose (3x4 with a rotation)")
        pose[:3, :3], pose[:3, 3] = nearest_rotation(R), value[:, 3]
    return poses


def write_kitti_poses(path: str | Path, poses: npt.ArrayLike) -> None:
    """Write (N, 4, 4) poses as KITTI text, atomically."""
    rows = np.asarray(poses, dtype=np.float64)[:, :3, :].reshape(-1, 12)
    atomic_write(path, "".join(" ".join(f"{n:.9e}" for n in row) + "\n" for row in rows))


def read_times(path: str | Path) -> Int64:
    """(N,) int64 nanoseconds of a file with one time in seconds a line (KITTI's times.txt and ours)."""
    rows = text_rows(path)
    return np.array([seconds_to_ns(row[0], f"{path}, line {line}") for line, row in rows], dtype=np.int64)


def write_times(path: str | Path, stamps: npt.ArrayLike) -> None:
    """Write (N,) nanoseconds as seconds, one a line, to the nanosecond, atomically."""
    atomic_write(path, "".join(ns_to_seconds(int(n)) + "\n" for n in np.asarray(stamps, dtype=np.int64)))


def seconds_to_ns(text: str, where: str) -> int:
    """Exact nanoseconds of a decimal number of seconds: a float would lose up to 120 ns of today's time."""
    try:
        seconds = Decimal(text)
        if not abs(seconds) < MAX_SECONDS:
            raise SequenceError(f"{where}: the time {text[:40]} is out of range; expected seconds")
        return int((seconds * 1_000_000_000).to_integral_value())
    except (ArithmeticError, ValueError):
        raise SequenceError(f"{where}: expected a time in seconds, got {text[:40]!r}") from None


def ns_to_seconds(ns: int) -> str:
    """Seconds to the nanosecond as text."""
    return f"{'-' if ns < 0 else ''}{abs(ns) // 1_000_000_000}.{abs(ns) % 1_000_000_000:09d}"
