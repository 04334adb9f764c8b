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

"""The KITTI benchmark's own measure: drift over stretches of 100 to 800 m of the way."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Float64 = npt.NDArray[np.float64]

LENGTHS = (100, 200, 300, 400, 500, 600, 700, 800)
"""Of the stretches, metres of the true way."""
EVERY = 10
"""Frames between the starts of stretches, as in the benchmark's development kit."""


@dataclass(frozen=True)
class StretchDrift:
    """Mean drift over all stretches of one length: t_err in percent of it, r_err in degrees per 100 m."""

    length: int
    stretches: int
    t_err: float
    r_err: float


@dataclass(frozen=True)
class KittiMeasure:
    """t_err: percent, r_err: degrees per 100 m, means over the stretches of all lengths; by_length: of each."""

    t_err: float
    r_err: float
    by_length: tuple[StretchDrift, ...]


def kitti_measure(estimated: Float64, true: Float64) -> KittiMeasure | None:
    """Drift of (N, 4, 4) poses against the true ones, each in any world; None where the way is shorter than 100 m.

    A stretch begins at every tenth frame and ends at the first frame that is farther than its length along the true
    way. Its error is that of the motion over it, divided by the length.
    """
    way = np.concatenate(([0.0], np.cumsum(np.linalg.norm(np.diff(true[:, :3, 3], axis=0), axis=1))))
    starts = np.arange(0, len(true), EVERY)
    drifts = []
    for length in LENGTHS:
        ends = np.searchsorted(way, way[starts] + length, side="right")
        first, last = starts[ends < len(way)], ends[ends < len(way)]
        if len(first):
            error = np.linalg.inv(_between(estimated, first, last)) @ _between(true, first, last)
            cosine = 0.5 * (np.trace(error[:, :3, :3], axis1=1, axis2=2) - 1.0)
            translation = np.linalg.norm(error[:, :3, 3], axis=1) / length
            rotation = np.arccos(np.clip(cosine, -1.0, 1.0)) / length
            drifts.append(
                StretchDrift(
                    length, len(first), 100 * float(translation.mean()), 100 * float(np.degrees(rotation).mean())
                )
            )
    if not drifts:
        return None
    count = np.array([drift.stretches for drift in drifts])
    return KittiMeasure(
        t_err=float(np.average([drift.t_err for drift in drifts], weights=count)),
        r_err=float(np.average([drift.r_err for drift in drifts], weights=count)),
        by_length=tuple(drifts),
    )


def _between(poses: Float64, first: npt.NDArray[np.int64], last: npt.NDArray[np.int64]) -> Float64:
    return np.asarray(np.linalg.inv(poses[first]) @ poses[last])
