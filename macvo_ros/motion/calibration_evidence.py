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

"""What the residuals of one motion say of the calibration, and what the calibration's errors do to the motion."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from macvo_ros.geometry.camera import pixels
from macvo_ros.geometry.se3 import skew
from macvo_ros.motion.pose_solver import PoseSolution
from macvo_ros.uncertainty.block_scatter import Evidence
from macvo_ros.uncertainty.calibration_model import ROTATIONS, CalibrationModel, Keypoints

Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CalibrationEvidence:
    """What one motion has to do with the calibration.

    told: what its residuals say of it. sensitivity: (6, C) error of the motion per unit of each error, negative.
    turned: the share of the squared residuals, 0 to 1, that a right camera which stands turned explains.
    """

    told: Evidence
    sensitivity: Float64
    turned: float


def calibration_evidence(
    model: CalibrationModel, reference: Float64, current: Float64, solution: PoseSolution, used: Float64
) -> CalibrationEvidence:
    """What the residuals say of the errors of the calibration.

    reference, current: (N, 3) the points in both frames, metres, the (C,) errors `used` corrected: where both frames
    together see them. What an error does must not depend on the noise that is in the residual (`common_points.py`): a
    camera that is off by nothing would look turned by many sigmas.
    An error e adds B e to the residuals. The motion answers by -X e with X = sum_i gain_i B_i, which leaves
    B' e = (B - J X) e: what is seen of it.
    """
    rotation = solution.motion[:3, :3]
    camera = model.camera
    at = Keypoints(
        pixels(camera, reference),
        camera.disparity(reference[:, 2]),
        pixels(camera, current),
        camera.disparity(current[:, 2]),
    )
    effect = model.jacobian(at, reference, current, rotation)
    sensitivity = np.asarray(np.tensordot(solution.gain, effect, axes=([0, 2], [0, 1])))
    answer = skew(current @ rotation.T) @ sensitivity[3:] - sensitivity[:3]
    seen = (solution.whitener @ (effect - answer)).reshape(-1, effect.shape[2])
    # Frames count alike: where all residuals are large, as after a knock, robust weights are small throughout.
    weight = solution.weight * (solution.inlier.sum() / max(solution.weight.sum(), 1e-9))
    root = np.repeat(np.sqrt(weight), 3)
    seen *= root[:, None]
    # Of a matrix with itself: BLAS then takes one thread, where two would wait for each other.
    information = seen.T @ seen
    residual = root * solution.residual.reshape(-1)
    score = residual @ seen
    scaling = solution.motion[:3, 3] @ sensitivity[:3]
    told = Evidence(information, score + information @ used, scaling)
    turned = _explained(information, score, ROTATIONS) / max(float(residual @ residual), 1e-12)
    return CalibrationEvidence(told, sensitivity, turned)


def _explained(information: Float64, score: Float64, errors: list[int]) -> float:
    """By how much the best values of some of the errors lower the sum of squared residuals: s^T J^-1 s."""
    own = score[errors]
    best = np.linalg.lstsq(information[np.ix_(errors, errors)], own, rcond=None)[0]
    return float(own @ best)
