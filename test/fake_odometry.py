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

"""An odometry that knows the truth and errs by exactly what it says, and a sequence to run it on."""

from __future__ import annotations

import numpy as np
import torch

from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.geometry.se3 import exp_so3, skew, transform
from macvo_ros.images.frame import StereoFrame
from macvo_ros.matching.matcher import FlowMatch, Match, StereoMatch
from macvo_ros.motion.landmarks import Landmarks
from macvo_ros.odometry.estimate import Estimate
from macvo_ros.odometry.status import Status
from macvo_ros.uncertainty.path_step import PathStep
from macvo_ros.uncertainty.relative_motion import RelativeMotion

SMALL = StereoCamera(fx=40.0, fy=40.0, cx=23.5, cy=15.5, baseline=0.1, width=48, height=32)


def winding_path(count: int) -> np.ndarray:
    """(count, 4, 4) poses of a camera that wanders forward, starting away from the origin."""
    time = np.arange(count) * 0.1
    return np.array(
        [
            transform(
                exp_so3(np.array([0.2 * np.sin(t), 0.1 * t, 0.1 * np.cos(t)])),
                np.array([3 + np.sin(t), 0.1 * t, 2 * t]),
            )
            for t in time
        ]
    )


class NoisyTruth:
    """A sequence of noise images whose truth `NoisyOdometry` looks up."""

    def __init__(self, ground_truth: np.ndarray | None, name: str = "fake", count: int | None = None) -> None:
        self.name = name
        self.camera = SMALL
        self.ground_truth = ground_truth
        self.stamps = np.arange(len(ground_truth) if ground_truth is not None else count or 0) * 100_000_000
        self._image = np.random.default_rng(0).integers(0, 255, (32, 48), dtype=np.uint8)

    def __len__(self) -> int:
        return len(self.stamps)

    def __getitem__(self, index: int) -> StereoFrame:
        return StereoFrame(self._image, self._image, int(self.stamps[index]), self.camera)


class NoisyOdometry:
    """Truth plus noise of a stated covariance, propagated as facts of rigid motion demand.

    claimed: factor on the sigma it admits to; 0.5 is an odometry that is twice as bad as it says.
    """

    def __init__(
        self, truth: np.ndarray, seed: int = 0, claimed: float = 1.0, lost: tuple[int, ...] = (), maps: bool = False
    ) -> None:
        self._truth, self._rng, self._claimed = truth, np.random.default_rng(seed), claimed
        self._lost, self._maps = lost, maps
        factor = self._rng.normal(size=(6, 6)) * np.array([3e-3] * 3 + [1e-3] * 3)[:, None] / 3
        self._covariance = factor @ factor.T
        self._index = -1
        self._pose, self._pose_covariance = np.eye(4), np.zeros((6, 6))

    def flush(self) -> None:
        """Nothing waits."""

    def track(self, frame: StereoFrame) -> Estimate:
        self._index += 1
        if self._index == 0:
            return Estimate(frame, Status.INITIALIZING, self._pose, self._pose_covariance)
        true = np.linalg.inv(self._truth[self._index - 1]) @ self._truth[self._index]
        error = self._rng.multivariate_normal(np.zeros(6), self._covariance)
        motion = transform(exp_so3(-error[3:]) @ true[:3, :3], true[:3, 3] - error[:3])
        stated = self._covariance * self._claimed**2
        F, G = np.eye(6), np.zeros((6, 6))
        F[:3, 3:] = -skew(self._pose[:3, :3] @ motion[:3, 3])
        G[:3, :3] = G[3:, 3:] = self._pose[:3, :3]
        self._pose_covariance = F @ self._pose_covariance @ F.T + G @ stated @ G.T
        self._pose = self._pose @ motion
        lost = self._index in self._lost
        return Estimate(
            frame,
            Status.LOST if lost else Status.TRACKING,
            self._pose,
            self._pose_covariance,
            reason="nothing to see" if lost else "",
            relative=RelativeMotion(motion, stated),
            elapsed=0.1,
            step=PathStep(frame.stamp - 100_000_000, RelativeMotion(motion, stated)),
            landmarks=self._landmarks() if self._maps else None,
            match=self._match() if self._maps else None,
            timings={"match": 1e-3, "pose": 1e-4},
        )

    def _landmarks(self) -> Landmarks:
        point = np.column_stack([self._rng.uniform(-1, 1, (30, 2)), self._rng.uniform(2, 9, 30)])
        return Landmarks(
            pixel=self._rng.uniform((0, 0), (47, 31), (30, 2)),
            point=point,
            covariance=np.eye(3) * point[:, 2:, None] ** 2 * 1e-3,
            match_sigma=np.full(30, 0.1),
            weight=np.ones(30),
            inlier=self._rng.random(30) > 0.1,
        )

    def _match(self) -> Match:
        positive = torch.from_numpy(self._rng.uniform(0.1, 4.0, (2, 32, 48)).astype(np.float32))
        return Match(StereoMatch(positive[0], positive[1]), FlowMatch(positive, positive))
