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

"""The little of SO(3) and SE(3) that the odometry needs, in float64."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Float64 = npt.NDArray[np.float64]


def skew(v: Float64) -> Float64:
    """(..., 3) vectors to (..., 3, 3) matrices with skew(a) @ b = a x b."""
    out = np.zeros((*v.shape[:-1], 3, 3))
    out[..., 0, 1], out[..., 0, 2], out[..., 1, 2] = -v[..., 2], v[..., 1], -v[..., 0]
    out[..., 1, 0], out[..., 2, 0], out[..., 2, 1] = v[..., 2], -v[..., 1], v[..., 0]
    return out


def exp_so3(w: Float64) -> Float64:
    """Rotation vector (3,), radians, to (3, 3) rotation (Rodrigues)."""
    angle = math.sqrt(float(w @ w))
    k = skew(w)
    if angle < 1e-6:
        return np.eye(3) + k + 0.5 * (k @ k)
    return np.eye(3) + (math.sin(angle) / angle) * k + ((1.0 - math.cos(angle)) / angle**2) * (k @ k)


def exp_each_so3(w: Float64) -> Float64:
    """(N, 3) rotation vectors, radians, to (N, 3, 3) rotations: many at once cost little more than one."""
    angle, k = np.linalg.norm(w, axis=1)[:, None, None] / np.pi, skew(w)
    return np.asarray(np.eye(3) + np.sinc(angle) * k + 0.5 * np.sinc(0.5 * angle) ** 2 * (k @ k))


def log_so3(rotation: Float64) -> Float64:
    """(3, 3) rotation to its rotation vector (3,), radians, of length at most pi. Goes through the quaternion."""
    x, y, z, w = quaternion(rotation).tolist()
    length = math.sqrt(x * x + y * y + z * z)
    scale = 2.0 if length < 1e-12 else 2.0 * math.atan2(length, w) / length
    return np.array([x * scale, y * scale, z * scale])


def quaternion(rotation: Float64) -> Float64:
    """(3, 3) rotation to the unit quaternion (x, y, z, w) with w >= 0."""
    (a, b, c), (d, e, f), (g, h, i) = rotation.tolist()
    # Four times each component times the largest one: that is divided by, so there is no cancellation.
    rows = (
        (1 + a - e - i, b + d, c + g, h - f),
        (b + d, 1 - a + e - i, f + h, c - g),
        (c + g, f + h, 1 - a - e + i, d - b),
        (h - f, c - g, d - b, 1 + a + e + i),
    )
    row = max(range(4), key=lambda k: rows[k][k])
    length = math.copysign(math.sqrt(sum(each * each for each in rows[row])), rows[row][3])
    return np.array([each / length for each in rows[row]])


def rotation_from_quaternion(q: Float64) -> Float64:
    """Quaternion (x, y, z, w), any non-zero length, to its (3, 3) rotation."""
    x, y, z, w = q / np.linalg.norm(q)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


def nearest_rotation(matrix: Float64) -> Float64:
    """The rotation nearest to a (3, 3) matrix that has drifted from one by rounding."""
    u, _, vt = np.linalg.svd(matrix)
    return np.asarray(u @ np.diag([1.0, 1.0, np.linalg.det(u @ vt)]) @ vt)


def renormalised(rotation: Float64) -> Float64:
    """(N, 3, 3) rotations that some products have changed by rounding, made rotations again: one step of Newton's."""
    return np.asarray(rotation @ (1.5 * np.eye(3) - 0.5 * rotation.swapaxes(-1, -2) @ rotation))


def transform(rotation: Float64, translation: Float64) -> Float64:
    """(4, 4) pose from a (3, 3) rotation and a (3,) translation."""
    out = np.eye(4)
    out[:3, :3], out[:3, 3] = rotation, translation
    return out


def inverse(pose: Float64) -> Float64:
    """Inverse of a (4, 4) pose."""
    rotation = pose[:3, :3].T
    return transform(rotation, -rotation @ pose[:3, 3])


def difference(motion: Float64, other: Float64) -> Float64:
    """(6,) [dt, dtheta], t_other = t + dt and R_other = Exp(dtheta) R, that carries one (4, 4) motion to another."""
    return np.concatenate((other[:3, 3] - motion[:3, 3], log_so3(other[:3, :3] @ motion[:3, :3].T)))


def lever_arm(offset: Float64) -> Float64:
    """(6, 6) [[I, -[d]x], [0, I]]: the error [dt, dtheta] of a pose, taken to a point (3,) d further, same axes."""
    out = np.eye(6)
    out[:3, 3:] = -skew(offset)
    return out
