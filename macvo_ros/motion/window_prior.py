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


"""What frames that have left a window said about the poses of those that stay, linearised once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from macvo_ros.geometry.se3 import lever_arm

Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PosePrior:
    """A quadratic cost  x^T information x + 2 gradient^T x  of the poses of the first n of N frames.

    x: [dt, dtheta] of each, odom axes, from where it was linearised: rotation (n, 3, 3), position (n, 3).
    """

    rotation: Float64
    position: Float64
    information: Float64
    gradient: Float64

    @staticmethod
    def of(rotation: Float64, position: Float64, covariance: Float64) -> PosePrior:
        """One frame whose place is known with a (6, 6) covariance: where a window begins."""
        information = np.asarray(np.linalg.inv(covariance), dtype=np.float64)
        return PosePrior(rotation[None].copy(), position[None].copy(), information, np.zeros(6))

    def __len__(self) -> int:
        return len(self.rotation)

    def padded(self, frames: int) -> PosePrior:
        """The same for a window that has grown to so many frames: of the new ones nothing is known."""
        size = 6 * len(self)
        information = np.zeros((6 * frames, 6 * frames))
        information[:size, :size] = self.information
        gradient = np.zeros(6 * frames)
        gradient[:size] = self.gradient
        return PosePrior(self.rotation, self.position, information, gradient)

    def offset(self, rotation: Float64, position: Float64) -> Float64:
        """x of a window's poses, (N, 3, 3) and (N, 3); zero for frames that the prior knows nothing of."""
        out = np.zeros((len(rotation), 6))
        known = len(self)
        out[:known, :3] = position[:known] - self.position
        turned = rotation[:known] @ self.rotation.transpose(0, 2, 1)
        # Poses move by far less than a quarter turn after they were linearised.
        axis = 0.5 * (turned[:, (2, 0, 1), (1, 2, 0)] - turned[:, (1, 2, 0), (2, 0, 1)])
        sine = np.maximum(np.linalg.norm(axis, axis=1, keepdims=True), 1e-12)
        out[:known, 3:] = axis * (np.arcsin(np.minimum(sine, 1.0)) / sine)
        return out.reshape(-1)

    def at(self, rotation: Float64, position: Float64) -> tuple[float, Float64]:
        """The prior's cost of poses, and (6 N,) half its gradient there."""
        x = self.offset(rotation, position)
        pull = self.information @ x + self.gradient
        return float(x @ (pull + self.gradient)), pull

    def with_motion(self, covariance: Float64, rotation: Float64, position: Float64) -> PosePrior:
        """This prior and a motion that was measured between the last two of N poses, by which the last was placed.

        covariance: (6, 6), axes of the former. The poses, (N, 3, 3) and (N, 3), are those when it was measured.
        """
        return self.with_shares_of_motion(covariance, rotation, position, (1.0,))[0]

    def with_shares_of_motion(
        self, covariance: Float64, rotation: Float64, position: Float64, shares: tuple[float, ...]
    ) -> tuple[PosePrior, ...]:
        """`with_motion` for each of `shares`, by which the motion's information counts."""
        total, known = self.padded(len(rotation)), len(self)
        back = np.zeros((6, 6))
        back[:3, :3] = back[3:, 3:] = rotation[-2].T
        both = back @ np.hstack((-lever_arm(position[-1] - position[-2]), np.eye(6)))
        measured = both.T @ np.linalg.solve(covariance, both)
        pull = measured @ self.offset(rotation, position)[-12:]
        rotations = np.concatenate((self.rotation, rotation[known:]))
        positions = np.concatenate((self.position, position[known:]))
        priors = []
        for share in shares:
            information, gradient = total.information.copy(), total.gradient.copy()
            information[-12:, -12:] += share * measured
            gradient[-12:] -= share * pull
            priors.append(PosePrior(rotations, positions, information, gradient))
        return tuple(priors)

    def with_frame(
        self, index: int, information: Float64, gradient: Float64, rotation: Float64, position: Float64
    ) -> PosePrior:
        """This prior and a (6 N, 6 N) quadratic cost about the poses given, with one frame marginalised."""
        total = self.padded(len(rotation))
        whole = total.information + information
        pull = total.at(rotation, position)[1] + gradient
        first = 6 * index
        goes, stays = slice(first, first + 6), np.r_[:first, first + 6 : len(whole)]
        # Scaled to a unit diagonal: metres and radians differ by decades.
        scale = 1.0 / np.sqrt(np.maximum(whole.diagonal()[goes], 1e-300))
        corner = whole[goes, goes] * scale[:, None] * scale[None]
        side = whole[goes, stays] * scale[:, None]
        solved = np.linalg.solve(corner, np.column_stack((side, pull[goes] * scale)))
        left = whole[stays[:, None], stays] - side.T @ solved[:, :-1]
        others = np.arange(len(rotation)) != index
        return PosePrior(
            rotation[others],
            position[others],
            0.5 * (left + left.T),
            pull[stays] - side.T @ solved[:, -1],
        )
