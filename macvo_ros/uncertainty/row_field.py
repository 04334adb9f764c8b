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

"""How far matches lie below their rows in the right image: a smooth field over it, learned from many frames.

A right camera that is pitched by 0.05 degrees shows things half a pixel off their rows. A patch that is compared along
its own row is then compared with something else, and where edges lean the vertical offset passes for a disparity,
differently at every edge: no smooth field explains that afterwards. So stereo patches are read on the rows where they
are (`refine_patches`, `rows`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.uncertainty.block_scatter import Evidence
from macvo_ros.uncertainty.calibration_filter import MEMORY
from macvo_ros.uncertainty.calibration_model import AHEAD, FIELD_DEGREES, K1, PITCH, ROLL, CalibrationModel, polynomials
from macvo_ros.uncertainty.calibration_posterior import EvidenceSoFar, Supposed, shares

Float64 = npt.NDArray[np.float64]
Float32 = npt.NDArray[np.float32]

SHAPES = ((0, 1), *FIELD_DEGREES)
"""Degrees along u and v of the polynomials beside pitch and roll, which are the others of first degree."""
_BOTH = 2 + SHAPES.index((1, 1))
"""Index, among all shapes, of u v."""
SHAPE_SIGMA = 0.4
"""Pixels of an image 1000 pixels wide: what each shape of the field may be, the default of `calibration.prior.field`.
Where corners are in one part of the image only, a field that may be anything turns cameras by half a degree."""


COUNT = 2 + len(SHAPES) + 2
"""Of all shapes: pitch and roll, polynomials, and what near things leave their rows by."""
_MAY_BE = np.zeros(COUNT), np.isin(np.arange(COUNT), (0, 1, _BOTH)).astype(np.float64), np.ones(COUNT)
"""What there may be of the shapes, in sigmas of their prior: nothing, a turned camera (a yaw bends rows as u v does),
everything. What is known is the mean over these, by how well they explain the rows: else noise would move rows that
are as they should be."""
_NEAR_SIGMA = 0.005, 0.002
"""What a k1, and how far the right camera stands ahead, may be: the defaults of `calibration.prior`. Rows show both,
and are not believed of depths: those of KITTI 09 say half of the k1 that its motions do and thrice as far ahead, those
of EuRoC MH_01 a camera that stands ahead by 1 % where motions say 0.0 +- 0.1 (private script)."""


def row_shapes(model: CalibrationModel, pixel: Float64, disparity: Float64) -> Float64:
    """(N, M) pixels that the matches of (N, 2) left pixels leave their rows by, per unit of each shape.

    The first two are pitch and roll, radians times fy; then pixels; the last two are k1 and ahead, as near things show
    them (`CalibrationModel.near_rows`).
    """
    camera = model.camera
    turned = model.row_jacobian(pixel, disparity)
    u = pixel[:, 0] - disparity + camera.disparity_offset - camera.cx
    fields = polynomials(camera, u, pixel[:, 1] - camera.cy, SHAPES)
    return np.column_stack((turned[:, [0, 2]] / camera.fy, fields, model.near_rows(pixel, disparity)))


def shape_sigma(camera: StereoCamera) -> Float64:
    """(M,) what each shape may be, one sigma; pitch and roll: not said."""
    sigma = np.full(COUNT, SHAPE_SIGMA * camera.width / 1000.0)
    sigma[:2], sigma[-2:] = np.inf, _NEAR_SIGMA
    return sigma


@dataclass(frozen=True, eq=False)
class RowField:
    """shapes: (M,) how much there is of each of `row_shapes`."""

    model: CalibrationModel
    shapes: Float64

    def at(self, pixel: Float64, disparity: Float64) -> Float64:
        """(N,) pixels by which the matches of (N, 2) left pixels lie below their rows in the right image."""
        return np.asarray(row_shapes(self.model, pixel, disparity) @ self.shapes)

    def of_near(self, pixel: Float64, disparity: Float64) -> Float64:
        """(N,) the part of it that hangs on how near they are."""
        return np.asarray(self.model.near_rows(pixel, disparity) @ self.shapes[-2:])


class RowLearning:
    """Adds up what frames say of the rows (`row_evidence.fit_rows`), with the prior of the calibration."""

    def __init__(self, model: CalibrationModel, prior: Float64) -> None:
        """prior: (C,) sigma of the calibration's errors."""
        self._model = model
        self._sigma = shape_sigma(model.camera)
        self._sigma[:2], self._sigma[-2:] = prior[[PITCH, ROLL]] * model.camera.fy, prior[[K1, AHEAD]]
        self.restart()

    def restart(self, turn: Float64 | None = None) -> None:
        """The right camera stands otherwise from here on, by a (3,) turn: pitch, yaw and roll. None: as told."""
        size, camera = len(self._sigma), self._model.camera
        if turn is None:
            self._mean = np.zeros(size)
        else:
            self._mean = self.field.shapes.copy()
            self._mean[:2] += camera.fy * turn[[0, 2]]
            # A yaw moves rows by -fy x y.
            self._mean[_BOTH] -= camera.width * camera.height / (4.0 * camera.fx) * turn[1]
        self._known = Evidence(np.zeros((size, size)), np.zeros(size))
        self._field: RowField | None = None

    def learn(self, rows: Evidence, seconds: float) -> None:
        """Take in a frame that is `seconds` after the last."""
        self._known = self._known.times(float(np.exp(-seconds / MEMORY))).plus(rows.since(self._mean))
        self._field = None

    @property
    def field(self) -> RowField:
        """What is known now; worked out when asked for."""
        if self._field is None:
            sigma, known, unbiased = self._sigma, self._known, np.zeros(len(self._sigma))
            so_far = EvidenceSoFar(known.information * sigma[:, None] * sigma, known.score * sigma, 0.0, 1.0, None)
            found = [so_far.posterior(unbiased, Supposed(size, 0.0)) for size in _MAY_BE]
            since = sigma * (shares(found) @ np.array([each.mean for each in found]))
            self._field = RowField(self._model, np.asarray(self._mean + since, np.float64))
        return self._field
