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

"""What is asserted of every run, whatever was done to it: nothing died, nothing lied."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from faulty_sequence import Shot, Worth
from simulated_matches import motion_error

from macvo_ros.geometry.se3 import inverse
from macvo_ros.odometry.estimate import Estimate
from macvo_ros.odometry.status import Status
from macvo_ros.odometry.stereo_odometry import StereoOdometry

CHI2_6 = 20.06
"""99.73 % point (three sigma) of a chi-square variable with six degrees of freedom."""

PUBLISHED = (Status.INITIALIZING, Status.TRACKING, Status.DEGRADED)


def is_covariance(matrix: np.ndarray) -> bool:
    return bool(
        matrix.shape == (6, 6)
        and np.isfinite(matrix).all()
        and np.array_equal(matrix, matrix.T)
        and np.linalg.eigvalsh(matrix)[0] > 0
    )


def nees(error: np.ndarray, covariance: np.ndarray) -> float:
    """Squared error in sigmas: chi-square with six degrees of freedom when the covariance is true."""
    return float(error @ np.linalg.solve(covariance, error))


def inside(values: list[float]) -> float:
    """The share of NEES values within three sigma."""
    return float(np.mean(np.array(values) <= CHI2_6)) if values else 1.0


@dataclass
class Verdict:
    """The figures of a run.

    pose_nees, motion_nees: of the published frames, of the whole path and of the motion since the frame before (over
    the gap after lost frames). pose_nees_after, motion_nees_after: of those after the fault. states: of every frame.
    lies: frames that show nothing but for which a motion is said to be measured. recovery: good frames in a row until
    TRACKING after each bad stretch.
    """

    pose_nees: list[float] = field(default_factory=list)
    motion_nees: list[float] = field(default_factory=list)
    states: list[Status] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    improper: list[int] = field(default_factory=list)
    lies: list[int] = field(default_factory=list)
    recovery: list[int] = field(default_factory=list)
    end_error: float = np.nan
    end_sigma: float = np.nan
    pose_nees_after: list[float] = field(default_factory=list)
    motion_nees_after: list[float] = field(default_factory=list)

    @property
    def pose_inside(self) -> float:
        return inside(self.pose_nees)

    @property
    def motion_inside(self) -> float:
        return inside(self.motion_nees)

    def count(self, status: Status) -> int:
        return self.states.count(status)

    def complaints(self) -> list[str]:
        """Everything that is wrong with the run; empty when it passes."""
        found = []
        if self.improper:
            found.append(f"covariances of frames {self.improper} are not symmetric positive definite")
        for what, values in (
            ("poses", self.pose_nees),
            ("motions", self.motion_nees),
            ("poses after the fault", self.pose_nees_after),
            ("motions after the fault", self.motion_nees_after),
        ):
            if inside(values) < 0.95:
                found.append(f"only {inside(values):.0%} of the published {what} are within three sigma")
        if self.lies:
            found.append(f"frames {self.lies} show nothing but a motion is said to be measured")
        if max(self.recovery, default=0) > 5:
            found.append(f"it took {max(self.recovery)} good frames until tracking")
        told = zip(self.states, self.reasons, strict=True)
        if any(state is not Status.TRACKING and not reason for state, reason in told):
            found.append("a frame was not tracked and nobody said why")
        return found


def run(shots: list[Shot], odometry: StereoOdometry) -> tuple[Verdict, list[Estimate]]:
    """Track everything; an exception is the caller's failure."""
    verdict, estimates = Verdict(), []
    end = max((i for i, shot in enumerate(shots) if shot.worth is not Worth.GOOD), default=len(shots))
    waiting = 0
    for i, shot in enumerate(shots):
        estimate = odometry.track(shot.frame)
        estimates.append(estimate)
        verdict.states.append(estimate.status)
        verdict.reasons.append(estimate.reason)
        covariances = [estimate.covariance]
        covariances += [m.covariance for m in (estimate.relative, estimate.relative_base) if m is not None]
        if not all(map(is_covariance, covariances)) or not np.isfinite(estimate.pose).all():
            verdict.improper.append(i)
        if estimate.status in PUBLISHED and i > 0:
            error = motion_error(inverse(shots[0].pose) @ shot.pose, estimate.pose)
            verdict.pose_nees.append(nees(error, estimate.covariance))
            if estimate.relative is not None:
                # After lost frames a motion is that over the gap.
                since = shot.frame.stamp - round(1e9 * estimate.elapsed)
                start = min(range(i), key=lambda k: abs(shots[k].frame.stamp - since))
                error = motion_error(inverse(shots[start].pose) @ shot.pose, estimate.relative.motion)
                verdict.motion_nees.append(nees(error, estimate.relative.covariance))
            if i > end:
                verdict.pose_nees_after.append(verdict.pose_nees[-1])
                verdict.motion_nees_after += verdict.motion_nees[-1:] if estimate.relative is not None else []
        if shot.worth is Worth.BLIND and (estimate.status is Status.TRACKING or estimate.landmarks is not None):
            verdict.lies.append(i)
        waiting = 0 if shot.worth is not Worth.GOOD or i == 0 else waiting + 1
        if waiting and (estimate.status is Status.TRACKING or i == len(shots) - 1):
            verdict.recovery.append(waiting)
            waiting = 0
    error = motion_error(inverse(shots[0].pose) @ shots[-1].pose, estimates[-1].pose)
    verdict.end_error = float(np.linalg.norm(error[:3]))
    verdict.end_sigma = float(np.sqrt(np.trace(estimates[-1].covariance[:3, :3])))
    return verdict, estimates
