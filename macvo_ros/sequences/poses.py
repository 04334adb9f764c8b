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

"""Ground truth poses: from quaternions to matrices, and from their own times to those of the images."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Float64 = npt.NDArray[np.float64]
Int64 = npt.NDArray[np.int64]

NED_FROM_OPTICAL = np.array([[0.0, 0, 1, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1]])
"""(4, 4): optical axes (x right, y down, z forward) in a body frame of x forward, y right, z down."""


def poses_from_quaternions(translations: Float64, quaternions: Float64) -> Float64:
    """(N, 3) metres and (N, 4) quaternions x y z w of any non-zero length to (N, 4, 4) poses."""
    x, y, z, w = (quaternions / np.linalg.norm(quaternions, axis=1, keepdims=True)).T
    poses = np.zeros((len(translations), 4, 4))
    poses[:, 0, :3] = np.stack([1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)], 1)
    poses[:, 1, :3] = np.stack([2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)], 1)
    poses[:, 2, :3] = np.stack([2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)], 1)
    poses[:, :3, 3] = translations
    poses[:, 3, 3] = 1
    return poses


def slerp(first: Float64, second: Float64, fraction: Float64) -> Float64:
    """(N, 4) unit quaternions between `first` and `second`, (N,) fraction 0 to 1 of the shorter way."""
    dot = np.sum(first * second, axis=1)
    second = np.where(dot[:, None] < 0, -second, second)
    angle = np.arccos(np.clip(np.abs(dot), 0, 1))
    sine = np.sin(angle)
    near = sine < 1e-6  # linear is exact to rounding there
    safe = np.where(near, 1, sine)
    a = np.where(near, 1 - fraction, np.sin((1 - fraction) * angle) / safe)
    b = np.where(near, fraction, np.sin(fraction * angle) / safe)
    mixed = a[:, None] * first + b[:, None] * second
    return np.asarray(mixed / np.linalg.norm(mixed, axis=1, keepdims=True))


def interpolate_poses(
    times: Int64, translations: Float64, quaternions: Float64, stamps: Int64, max_gap: int, tolerance: int = 1_000_000
) -> tuple[Float64, npt.NDArray[np.bool_]]:
    """Poses at the image stamps: linear in position, spherical in rotation.

    times: (M,) increasing nanoseconds of the samples, translations (M, 3) metres, quaternions (M, 4) x y z w.
    stamps: (N,) nanoseconds. Returns (N, 4, 4) poses and (N,) bool: known where the samples on both sides are at most
    max_gap nanoseconds apart, or one lies within `tolerance` of the stamp (it is taken as it is beyond the ends).
    """
    quaternions = quaternions / np.linalg.norm(quaternions, axis=1, keepdims=True)
    after = np.clip(np.searchsorted(times, stamps), 1, max(len(times) - 1, 1))
    before = after - 1
    after = np.minimum(after, len(times) - 1)
    gap = times[after] - times[before]
    fraction = np.clip((stamps - times[before]) / np.maximum(gap, 1), 0, 1)
    near = np.minimum(np.abs(stamps - times[before]), np.abs(stamps - times[after])) <= tolerance
    inside = (stamps >= times[before]) & (stamps <= times[after])
    known = near | (inside & (gap <= max_gap))
    # Across a gap only a sample at the stamp itself counts: take it, do not mix.
    fraction = np.where(near & (gap > max_gap), np.round(fraction), fraction)
    positions = translations[before] + fraction[:, None] * (translations[after] - translations[before])
    return poses_from_quaternions(positions, slerp(quaternions[before], quaternions[after], fraction)), known


def longest_run(known: npt.NDArray[np.bool_]) -> tuple[int, int]:
    """First and last index of the longest run of True; (0, -1) where there is none."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], known.astype(np.int8), [0]])))
    starts, ends = edges[::2], edges[1::2]
    if not starts.size:
        return 0, -1
    best = int(np.argmax(ends - starts))
    return int(starts[best]), int(ends[best]) - 1
