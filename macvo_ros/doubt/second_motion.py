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

"""A second motion: do those that contradict the estimated one agree on another?

Then two motions are to be seen. One is the camera's, the other that of something large and rigid, and nothing in two
frames tells which is which. A crowd does not agree on a motion, so people walking by are not taken for one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from macvo_ros.doubt.consistency import Outliers
from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.matching.matcher import Match, look_up
from macvo_ros.motion.consensus import agreeing
from macvo_ros.motion.covariance import depth_is_linear
from macvo_ros.motion.point_pairs import PointPairs, point_pairs
from macvo_ros.motion.pose_solver import solve_pose
from macvo_ros.settings.config import Config

Float64 = npt.NDArray[np.float64]

_MAJORITY = 0.5
"""Share of those that contradict that must agree with each other for it to be a motion at all: most. Chosen."""


@dataclass(frozen=True, eq=False)
class SecondMotion:
    """motion: (4, 4), as the estimated one; agree: shares (0 to 1) of the keypoints and of the image behind it."""

    motion: Float64
    agree: tuple[float, float]

    @property
    def support(self) -> float:
        """The larger of the two shares."""
        return max(self.agree)


def find_second_motion(
    config: Config,
    camera: StereoCamera,
    matches: tuple[Match, Match],
    outliers: tuple[Outliers, Outliers],
    seed: Float64,
) -> SecondMotion | None:
    """The motion, solved from `seed` (4, 4), on which most of the rejected keypoints, or of the flow outliers, agree.

    matches: of the reference and the current frame; outliers: those two kinds. Keypoints are matched far more
    finely than the rest of the image, so they tell two motions apart that differ by a fraction of a pixel; the rest of
    the image is asked where keypoints are all on one thing.
    """
    pairs = [_with_depth(camera, matches, each) for each in outliers]
    found = []
    for kind in range(2):
        if len(pairs[kind]) < config.pose.min_points:
            continue
        motion = solve_pose(pairs[kind], seed, config.pose).motion
        # Within what was promised: the solver's own inliers may be a crowd that is merely less scattered.
        agree = [int(agreeing(each, motion).sum()) for each in pairs]
        if agree[kind] >= max(config.pose.min_points, _MAJORITY * len(outliers[kind].pixel)):
            keypoints, image = (o.share * n / max(len(o.pixel), 1) for o, n in zip(outliers, agree, strict=True))
            found.append(SecondMotion(motion, (keypoints, image)))
    return max(found, key=lambda each: each.support, default=None)


def _with_depth(camera: StereoCamera, matches: tuple[Match, Match], outliers: Outliers) -> PointPairs:
    """Those of the outliers whose depth is known, as points of both frames."""
    points = look_up(outliers.pixel, *matches)
    return point_pairs(camera, points.subset(depth_is_linear(camera, points)))
