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

"""A second motion: do the keypoints that contradict the estimated one agree on another?

Then two motions are to be seen. One is the camera's, the other that of something large and rigid, and nothing in two
frames tells which is which. A crowd does not agree on a motion, so people walking by are not taken for one.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from macvo_ros.motion.consensus import agreeing
from macvo_ros.motion.point_pairs import PointPairs
from macvo_ros.motion.pose_solver import solve_pose
from macvo_ros.settings.config import PoseConfig

Float64 = npt.NDArray[np.float64]

_MAJORITY = 0.5
"""Share of those that contradict that must agree with each other for it to be a motion at all: most. Chosen."""


def find_second_motion(config: PoseConfig, rejected: PointPairs, seed: Float64) -> tuple[Float64 | None, int]:
    """The (4, 4) motion, solved from `seed`, on which most of the rejected points agree, and how many these are."""
    if len(rejected) < config.min_points:
        return None, 0
    motion = solve_pose(rejected, seed, config).motion
    # Within what was promised: the solver's own inliers may be a crowd that is merely less scattered.
    agree = int(agreeing(rejected, motion).sum())
    return (motion, agree) if agree >= max(config.min_points, _MAJORITY * len(rejected)) else (None, 0)
