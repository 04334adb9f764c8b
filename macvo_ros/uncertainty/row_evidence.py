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

"""What rows say of the right camera's rotation: how far stereo matches leave them.

A pitch moves all matches off their row alike, a roll in proportion to the column. What else bends the image moves them
too, by a smooth field of which only its constant and its slope along the rows look like these; so that field is fitted
beside them and counts for nothing.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from macvo_ros.uncertainty.block_scatter import Evidence
from macvo_ros.uncertainty.calibration_model import FIELD_DEGREES, PITCH, ROLL, SIZE, CalibrationModel, polynomials

Float64 = npt.NDArray[np.float64]

_ENOUGH = 40
"""Matches for twelve unknowns to mean something."""
_ROUNDS, _KERNEL = 3, 1.5
"""Rounds of robust fitting, and sigmas beyond which a match counts less."""
_NOISE = 0.05
"""Pixels, at least: what tracking a corner is good to (`matching/epipolar_error.py`)."""
_FIELD = ((0, 1), *FIELD_DEGREES)
_FIELD_SIGMA = 0.4
"""Pixels of an image 1000 pixels wide: what each shape of the field may be, the default of `calibration.prior.field`.
Where corners are in one part of the image only, a field that may be anything turns cameras by half a degree."""


def row_evidence(model: CalibrationModel, pixel: Float64, disparity: Float64, vertical: Float64) -> Evidence:
    """Evidence of (N,) vertical parts, pixels, of the stereo matches of (N, 2) pixels; none where they are few."""
    information, score = np.zeros((SIZE, SIZE)), np.zeros(SIZE)
    if len(pixel) < _ENOUGH:
        return Evidence(information, score)
    camera = model.camera
    u, v = (pixel - (camera.cx, camera.cy)).T
    wanted = model.row_jacobian(pixel, disparity)[:, [0, 2]] / camera.fy  # pixels, so that columns are alike
    columns = np.column_stack((wanted, polynomials(camera, u, v, _FIELD)))
    weight = np.ones(len(pixel))
    sigma = _NOISE
    may_be = np.full(columns.shape[1], _FIELD_SIGMA * camera.width / 1000.0)
    may_be[:2] = np.inf
    for _ in range(_ROUNDS):
        weighted = weight[:, None] * columns
        fit = np.linalg.solve(columns.T @ weighted + np.diag((sigma / may_be) ** 2), vertical @ weighted)
        left = np.abs(vertical - columns @ fit)
        sigma = max(1.48 * float(np.median(left)), _NOISE)
        weight = np.minimum(1.0, _KERNEL * sigma / np.maximum(left, 1e-12))
    normal = columns.T @ (weight[:, None] * columns) / sigma**2 + np.diag(may_be**-2)
    own = normal[:2, :2] - normal[:2, 2:] @ np.linalg.solve(normal[2:, 2:], normal[2:, :2])
    at = np.ix_([PITCH, ROLL], [PITCH, ROLL])
    information[at] = own * camera.fy**2
    score[[PITCH, ROLL]] = own @ fit[:2] * camera.fy
    return Evidence(information, score)
