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

"""Is the covariance honest over a frame, a second, twenty? The path's error since an earlier frame, by horizon.

Over one frame the truths of real data sets are noisier than the estimate; over seconds they are not. And what the
calibration does only shows over seconds. For a start anywhere on the path, the pose there is taken as exact and the
covariance is propagated from there by the same steps as the odometry's own (`uncertainty/path_step.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from macvo_ros.evaluation.nees import nees, sigmas
from macvo_ros.evaluation.runner import Run
from macvo_ros.evaluation.truth_noise import TruthNoise
from macvo_ros.geometry.se3 import difference, inverse
from macvo_ros.uncertainty.path_step import PathStep
from macvo_ros.uncertainty.trajectory import PoseWithCovariance

Float64 = npt.NDArray[np.float64]

SECONDS = (0.0, 1.0, 5.0, 20.0)
"""Horizons; 0 is one frame."""
_STEPS = 40_000
"""Steps to propagate at most, about 8 s of computing: from every frame if that is enough, else from every n-th."""


@dataclass(frozen=True)
class Horizon:
    """Honesty over one horizon.

    seconds: 0 for one frame. starts: how many motions were looked at; they overlap, so fewer are independent.
    nees_mean, nees_median: of the six-vector of each; 6 and 5.35 are honest.
    frames_within_3sigma: share of motions all six components of whose errors are within 3 sigma; Gaussian: .984.
    within_3sigma: share of all components; Gaussian: .997.
    t_error, r_error: root mean square of the error, metres and degrees; t_sigma, r_sigma: what was expected.
    """

    seconds: float
    starts: int
    nees_mean: float
    nees_median: float
    frames_within_3sigma: float
    within_3sigma: float
    t_error: float
    r_error: float
    t_sigma: float
    r_sigma: float

    @property
    def name(self) -> str:
        """ "1 frame" or "5 s"."""
        return f"{self.seconds:g} s" if self.seconds else "1 frame"


class _Motion(NamedTuple):
    """Since a start: (6,) error, (6, 6) covariance, (3,) true translation, all in odom axes, and seconds."""

    error: Float64
    covariance: Float64
    moved: Float64
    elapsed: float


def honesty_by_horizon(run: Run, truth: Float64, noise: TruthNoise | None = None) -> tuple[Horizon, ...]:
    """NEES and share within 3 sigma of a run for each horizon that its length allows; truth: (N, 4, 4) poses.

    noise: of the truth itself, added to what the odometry says; None: the truth is exact.
    """
    steps = {int(stamp): step for stamp, step in zip(run.stamps, run.steps, strict=True)} if run.steps else {}
    if not any(steps.values()):
        return ()
    index = {int(stamp): i for i, stamp in enumerate(run.stamps)}
    interval = float(np.median(np.diff(run.stamps))) * 1e-9
    longest = min(SECONDS[-1], (run.stamps[-1] - run.stamps[0]) * 1e-9)
    reach = max(round(longest / interval), 1)
    every = -(-len(run.stamps) * reach // _STEPS)
    ends = {seconds: max(round(seconds / interval), 1) for seconds in SECONDS}
    found: dict[float, list[_Motion]] = {seconds: [] for seconds in SECONDS}
    for first in range(0, len(run.stamps) - 1, every):
        places = _places(run, steps, index, first, reach)
        for seconds, count in ends.items():
            last = first + count
            if last not in places:
                continue
            true = run.poses[first] @ inverse(truth[first]) @ truth[last]
            step = steps[int(run.stamps[last])]
            assert step is not None
            moved = true[:3, 3] - run.poses[first, :3, 3]
            elapsed = (run.stamps[last] - run.stamps[first]) * 1e-9
            error = difference(run.poses[last], true)
            found[seconds].append(_Motion(error, step.total(places[last]), moved, elapsed))
    return tuple(_figures(seconds, motions, noise) for seconds, motions in found.items() if motions)


def _places(
    run: Run, steps: dict[int, PathStep | None], index: dict[int, int], first: int, reach: int
) -> dict[int, PoseWithCovariance]:
    """Places of the frames after `first`, as far as they hang on it; the start itself is exact."""
    places = {first: PoseWithCovariance(run.poses[first], np.zeros((6, 6)))}
    for i in range(first + 1, min(first + reach, len(run.stamps) - 1) + 1):
        step = steps[int(run.stamps[i])]
        if step is None or index.get(step.origin, -1) not in places:
            continue
        led_to = -1 if step.before is None else index.get(step.before, -1)
        places[i] = step.appended_to(places[index[step.origin]], first=led_to not in places)
    return places


def _figures(seconds: float, motions: list[_Motion], noise: TruthNoise | None) -> Horizon:
    error, covariance, moved, elapsed = (np.array(part) for part in zip(*motions, strict=True))
    if noise is not None:
        covariance = covariance + noise.covariance(moved, elapsed)
    sigma = sigmas(covariance)
    values = nees(error, covariance)
    inside = np.abs(error) <= 3 * sigma
    size = np.sqrt([(part**2).sum(axis=1).mean() for part in (error[:, :3], error[:, 3:], sigma[:, :3], sigma[:, 3:])])
    return Horizon(
        seconds=seconds,
        starts=len(error),
        nees_mean=float(values.mean()),
        nees_median=float(np.median(values)),
        frames_within_3sigma=float(inside.all(axis=1).mean()),
        within_3sigma=float(inside.mean()),
        t_error=float(size[0]),
        r_error=float(np.degrees(size[1])),
        t_sigma=float(size[2]),
        r_sigma=float(np.degrees(size[3])),
    )
