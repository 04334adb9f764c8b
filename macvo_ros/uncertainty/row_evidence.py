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
beside them and counts for nothing here. Patches are read where all of it says (`row_field.py`).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from macvo_ros.uncertainty.block_scatter import Evidence
from macvo_ros.uncertainty.calibration_model import PITCH, ROLL, SIZE, CalibrationModel
from macvo_ros.uncertainty.row_field import row_shapes, shape_sigma

Float64 = npt.NDArray[np.float64]

ENOUGH = 40
"""Matches for twelve unknowns to mean something."""
_ROUNDS, _KERNEL = 3, 1.5
"""Rounds of robust fitting, and sigmas beyond which a match counts less."""
_NOISE = 0.05
"""Pixels, at least: what tracking a corner is good to (`matching/epipolar_error.py`)."""


def fit_rows(model: CalibrationModel, pixel: Float64, disparity: Float64, vertical: Float64) -> Evidence | None:
    """What (N,) vertical parts, pixels, of the stereo matches of (N, 2) pixels say of the (M,) `row_shapes`.

    None where they are few.
    """
    if len(pixel) < ENOUGH:
        return None
    columns = row_shapes(model, pixel, disparity)
    return robust_rows(columns, vertical, shape_sigma(model.camera))


def robust_rows(columns: Float64, vertical: Float64, may_be: Float64) -> Evidence:
    """What (N,) vertical parts, pixels, say of the (M,) unknowns of (N, M) `columns`; those far off count less.

    may_be: (M,) one sigma of each, which keeps the fit from what the matches do not show; not in the evidence.
    """
    weight, sigma = np.ones(len(vertical)), _NOISE
    for _ in range(_ROUNDS):
        weighted = weight[:, None] * columns
        fit = np.linalg.solve(columns.T @ weighted + np.diag((sigma / may_be) ** 2), vertical @ weighted)
        left = np.abs(vertical - columns @ fit)
        sigma = max(1.48 * float(np.median(left)), _NOISE)
        weight = np.minimum(1.0, _KERNEL * sigma / np.maximum(left, 1e-12))
    weighted = weight[:, None] * columns / sigma**2
    return Evidence(columns.T @ weighted, vertical @ weighted)


def row_evidence(model: CalibrationModel, rows: Evidence) -> Evidence:
    """What of `fit_rows` is about pitch and roll, as evidence about all errors of the calibration."""
    information, score = np.zeros((SIZE, SIZE)), np.zeros(SIZE)
    fy = model.camera.fy
    normal = rows.information + np.diag(shape_sigma(model.camera) ** -2)
    follow = np.linalg.solve(normal[2:, 2:], np.column_stack((normal[2:, :2], rows.score[2:])))
    own = normal[:2, :2] - normal[:2, 2:] @ follow[:, :2]
    information[np.ix_([PITCH, ROLL], [PITCH, ROLL])] = own * fy**2
    score[[PITCH, ROLL]] = (rows.score[:2] - normal[:2, 2:] @ follow[:, 2]) * fy
    return Evidence(information, score)
