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

"""The motion that most points agree on, however far the rest is from it: triples of points, tried in turn (RANSAC).

A robust kernel bends towards everything it sees. Where two things move, and neither has nearly all of the points, it
ends between the two; a triple of points is on one of them or on none.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from macvo_ros.geometry.se3 import transform
from macvo_ros.motion.point_pairs import PointPairs, whitened
from macvo_ros.motion.pose_solver import REJECT_CHI2_3, solve_pose
from macvo_ros.settings.config import PoseConfig

Float64 = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

_TRIES = 200
"""Triples: if half of the points are on one thing, all are missed once in 10^11 times."""
_BEST, _POLISHED = 5, 3
"""So many of the best are solved so often from those that agree with them, and these are counted again; chosen."""


def agreeing(pairs: PointPairs, motion: Float64) -> Mask:
    """(N,) points that keep to a (4, 4) motion within the covariance they were promised."""
    return np.asarray(whitened(pairs, motion[:3, :3], motion[:3, 3])[2] <= REJECT_CHI2_3)


def consensus(pairs: PointPairs, config: PoseConfig, seed: int = 0) -> Float64:
    """(4, 4) motion that most points agree on; needs at least three. Deterministic."""
    rng = np.random.default_rng(seed)
    # Points that are known well make good triples.
    size = np.sqrt(np.trace(pairs.reference_cov + pairs.current_cov, axis1=1, axis2=2))
    chance = (1 / size) / (1 / size).sum()
    tried = [rng.choice(len(pairs), 3, replace=False, p=chance) for _ in range(_TRIES)]
    motions = [_through(pairs.reference[three], pairs.current[three]) for three in tried]
    best = sorted(motions, key=lambda motion: -int(agreeing(pairs, motion).sum()))[:_BEST]
    polished = [_polished(pairs, motion, config) for motion in best]
    return max(polished, key=lambda motion: int(agreeing(pairs, motion).sum()))


def _polished(pairs: PointPairs, motion: Float64, config: PoseConfig) -> Float64:
    """The (4, 4) motion solved from the points that agree with it, some times over."""
    for _ in range(_POLISHED):
        agree = agreeing(pairs, motion)
        if agree.sum() >= 3:
            motion = solve_pose(pairs.subset(agree), motion, config).motion
    return motion


def _through(reference: Float64, current: Float64) -> Float64:
    """(4, 4) motion that takes three points of the current frame nearest to those of the reference (Kabsch)."""
    middle, middle_now = reference.mean(axis=0), current.mean(axis=0)
    u, _, vt = np.linalg.svd((reference - middle).T @ (current - middle_now))
    rotation = u @ np.diag([1.0, 1.0, np.linalg.det(u @ vt)]) @ vt
    return transform(rotation, middle - rotation @ middle_now)
