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

"""From the poses of a window to the one that is published: no step has in it what the window was corrected by since."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from macvo_ros.geometry.se3 import difference, exp_so3, inverse, lever_arm, transform
from macvo_ros.uncertainty.relative_motion import RelativeMotion
from macvo_ros.uncertainty.trajectory import block_rotation, symmetric_positive

Float64 = npt.NDArray[np.float64]

_TAKEN_IN = 0.1
"""Part of what the published pose is off from the window's by that is taken in with a frame. Between 0.02 and 0.2
errors are the same to 4 % (room 201, corridor 201, no log); chosen."""


def newest_covariance(information: Float64, size: int) -> Float64:
    """(size, size) covariance of the last unknowns of an (N, N) information, or of all where there are not as many.

    Scaled to a unit diagonal first: metres and radians differ by decades.
    """
    count = min(size, len(information))
    scale = 1.0 / np.sqrt(information.diagonal())
    asked = np.eye(len(information))[:, -count:]
    solved = np.linalg.solve(information * scale[:, None] * scale, asked)[-count:]
    return np.asarray(scale[-count:, None] * solved * scale[-count:])


def increment_covariance(joint: Float64, before: Float64, after: Float64) -> Float64:
    """(6, 6) covariance of the motion between two (4, 4) poses of the window, axes of the former.

    joint: (12, 12) of both.
    """
    both = block_rotation(before).T @ np.hstack((-lever_arm(after[:3, 3] - before[:3, 3]), np.eye(6)))
    return symmetric_positive(both @ joint @ both.T)


def taken_in(place: Float64, motion: RelativeMotion, pose: Float64) -> tuple[Float64, RelativeMotion, Float64]:
    """The pose to publish after `place` was: one motion on, and a part of the way to the window's own `pose`.

    Also returns the motion between the two that are published, and (6,) what its pose is then still off from the
    window's by. What later frames say of earlier ones so comes into the published path bit by bit, never as a jump.
    """
    next_pose = place @ motion.motion
    part = _TAKEN_IN * difference(next_pose, pose)
    published = transform(exp_so3(part[3:]) @ next_pose[:3, :3], next_pose[:3, 3] + part[:3])
    added = block_rotation(place).T @ part
    relative = RelativeMotion(inverse(place) @ published, motion.covariance + np.outer(added, added))
    return published, relative, difference(published, pose)
