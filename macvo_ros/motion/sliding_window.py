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


"""A window of frames that slides along the path: keyframes, the newest frame, and the points between them.

Keyframes are frames that the view has changed by since the one before; only they are first views of points, and they
stay until the window is full. Other frames stay for one more frame, so that the motion between two successive ones is
known, and are then left out with what was seen in them: while the camera stands still, the window does too, and nothing
drifts. The oldest keyframe leaves by marginalisation: points first seen there, and its pose, become a prior on the
other poses (`window_prior.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.motion.window_points import Bool, WindowPoints, WindowState
from macvo_ros.motion.window_prior import PosePrior
from macvo_ros.motion.window_solver import WindowSolution, solve_window
from macvo_ros.motion.window_system import linearise
from macvo_ros.settings.config import PoseConfig

Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class NewPoints:
    """P points of a first view. pixel: (2, P); disparity, disparity_var: (P,); shared_var: (3, P), see WindowPoints."""

    pixel: Float64
    disparity: Float64
    disparity_var: Float64
    shared_var: Float64


@dataclass(frozen=True, eq=False)
class Sightings:
    """P points in a frame. seen: (3, P) u, v, disparity, pixels; variance: (3, P) of their errors that are not shared;

    found: (P,) whether it was found.
    """

    seen: Float64
    variance: Float64
    found: Bool


class SlidingWindow:
    """Poses and points; begins at one frame whose place is known."""

    def __init__(self, camera: StereoCamera, frames: int, pose: Float64, covariance: Float64) -> None:
        """frames: of the window, the newest included. pose: (4, 4) of the first left camera, covariance: (6, 6)."""
        self.camera = camera
        self.limit = frames
        self.prior = PosePrior.of(pose[:3, :3], pose[:3, 3], covariance)
        self.state = WindowState(pose[None, :3, :3].copy(), pose[None, :3, 3].copy(), np.empty((4, 0)))
        self._with_newest = self.prior
        self.keyframe = np.array([True])
        none = np.empty(0)
        self.points = WindowPoints(
            none.astype(np.int64), np.empty((2, 0)), none, none, np.empty((3, 0)), np.empty((1, 3, 0)),
            np.empty((1, 3, 0)), none,
        )  # fmt: skip
        self.alive = none.astype(bool)

    def __len__(self) -> int:
        return len(self.state.rotation)

    def drop_temporary(self) -> Bool:
        """Leave out every frame that is no keyframe but the newest; returns which of all stay.

        What was seen in it is forgotten; motions that were measured to and from it become one.
        """
        keep = self.keyframe.copy()
        keep[-1] = True
        for index in np.flatnonzero(~keep)[::-1].tolist():
            if index < len(self.prior):
                nothing = np.zeros((6 * len(self), 6 * len(self)))
                self.prior = self.prior.with_frame(index, nothing, nothing[0], self.state.rotation, self.state.position)
            self._keep_frames(np.arange(len(self)) != index)
        return np.asarray(keep)

    def promote(self, new: NewPoints, crowding: Float64) -> None:
        """Make the newest frame a keyframe, the first view of `new`; crowding: (P,) of all points after that."""
        self.keyframe[-1] = True
        count, frames = len(new.disparity), len(self)
        first = np.full(count, frames - 1)
        self.points = WindowPoints(
            anchor=np.concatenate((self.points.anchor, first)),
            pixel=np.hstack((self.points.pixel, new.pixel)),
            disparity=np.concatenate((self.points.disparity, new.disparity)),
            disparity_var=np.concatenate((self.points.disparity_var, new.disparity_var)),
            shared_var=np.hstack((self.points.shared_var, new.shared_var)),
            seen=np.concatenate((self.points.seen, np.zeros((frames, 3, count))), axis=2),
            inverse_sigma=np.concatenate((self.points.inverse_sigma, np.zeros((frames, 3, count))), axis=2),
            crowding=crowding,
        )
        start = np.vstack((np.zeros((2, count)), new.disparity, np.zeros(count)))
        self.state = replace(self.state, points=np.hstack((self.state.points, start)))
        self.alive = np.concatenate((self.alive, np.ones(count, bool)))

    def make_room(self, config: PoseConfig) -> int:
        """Marginalise the oldest keyframes until one frame more fits; returns how many left."""
        gone = 0
        while int(self.keyframe.sum()) >= self.limit:
            self._marginalise_oldest(config)
            gone += 1
        return gone

    def add(
        self, pose: Float64, sightings: Sightings, covariance: Float64 | None = None, long_run: float = 1.0
    ) -> None:
        """The next frame, thought to be at (4, 4) `pose`, and what of all points was seen there.

        covariance: (6, 6) of the motion from the frame before by which it was placed there, axes of that frame, if the
        motion was measured otherwise than by these points; None: it is a guess.
        long_run: at least 1; by how much the variance of a sum of such motions is larger than the sum of theirs, for
        successive ones err alike. The newest motion counts as it is, for it is all there is to say of the last step;
        once another has followed it counts by as much less, for it is the way that is asked for then.
        """
        state = self.state
        self.state = WindowState(
            np.concatenate((state.rotation, pose[None, :3, :3])),
            np.concatenate((state.position, pose[None, :3, 3])),
            state.points,
        )
        inverse = np.where(sightings.found, 1.0 / np.sqrt(np.where(sightings.found, sightings.variance, 1.0)), 0.0)
        self.points = replace(
            self.points,
            seen=np.concatenate((self.points.seen, np.where(sightings.found, sightings.seen, 0.0)[None])),
            inverse_sigma=np.concatenate((self.points.inverse_sigma, inverse[None])),
        )
        self._with_newest = self.prior
        if covariance is not None:
            poses, shares = (self.state.rotation, self.state.position), (1.0 / long_run, 1.0)
            self.prior, self._with_newest = self.prior.with_shares_of_motion(covariance, *poses, shares)
        self.keyframe = np.append(self.keyframe, False)
        self.alive = self.alive & sightings.found

    def solve(self, config: PoseConfig) -> WindowSolution:
        """Find poses and points anew; which points proved wrong is for the caller to look at, and to `expel`."""
        solution = solve_window(self.camera, self.points, self.state, self._with_newest, config)
        self.state = solution.state
        return solution

    def expel(self, keep: Bool) -> None:
        """Forget the points where (P,) `keep` is false, and everything seen of them."""
        self.points = self.points.subset(keep)
        self.state = replace(self.state, points=self.state.points[:, keep])
        self.alive = self.alive[keep]

    def _marginalise_oldest(self, config: PoseConfig) -> None:
        leaving = self.points.anchor == 0
        points, state = self.points.subset(leaving), replace(self.state, points=self.state.points[:, leaving])
        system = linearise(self.camera, points, state, config, np.ones(len(points)))
        self.prior = self.prior.with_frame(0, system.information, system.gradient, state.rotation, state.position)
        self.expel(~leaving)
        self._keep_frames(np.arange(len(self)) > 0)

    def _keep_frames(self, keep: Bool) -> None:
        place = np.cumsum(keep) - 1
        self.state = replace(self.state, rotation=self.state.rotation[keep], position=self.state.position[keep])
        self.points = replace(
            self.points,
            anchor=place[self.points.anchor],
            seen=self.points.seen[keep],
            inverse_sigma=self.points.inverse_sigma[keep],
        )
        self.keyframe = self.keyframe[keep]
