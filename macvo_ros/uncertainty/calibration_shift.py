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

"""One known error of the calibration (`calibration_model.py`) as a function of the pixel, for many pixels at once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numpy.polynomial.legendre import leg2poly

from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.uncertainty.calibration_model import (
    AHEAD,
    CENTRE_U,
    CENTRE_V,
    FIELD_DEGREES,
    FOCAL,
    FOCAL_RIGHT,
    K1,
    LEFT_U,
    LEFT_V,
    PITCH,
    RIGHT_U,
    ROLL,
    YAW,
)
from macvo_ros.uncertainty.row_field import RowField

Float64 = npt.NDArray[np.float64]

_HIGHEST = max(max(pair) for pair in FIELD_DEGREES)
_POWERS = np.zeros((_HIGHEST + 1, _HIGHEST + 1))
"""Legendre polynomials, a row each, by their coefficients."""
for _degree in range(_HIGHEST + 1):
    _POWERS[_degree, : _degree + 1] = leg2poly(np.eye(_HIGHEST + 1)[_degree, : _degree + 1])


class CalibrationShift:
    """By how many pixels an error of the calibration moves what is seen, in a third of the time of the model."""

    def __init__(self, camera: StereoCamera, error: Float64 | None, rows: RowField | None = None) -> None:
        """error: (SIZE,) of a `CalibrationModel`; None: none. rows: of the right image; None: as they should be."""
        self._camera, self._rows = camera, rows
        self._error = error if error is not None and error.any() else None
        if self._error is not None:
            i, j = np.array(FIELD_DEGREES).T
            fields = np.zeros((3, _HIGHEST + 1, _HIGHEST + 1))
            for field, part in zip(fields, (LEFT_U, LEFT_V, RIGHT_U), strict=True):
                field[i, j] = self._error[part]
            self._fields = _POWERS.T @ fields @ _POWERS

    def corrected(self, seen: Float64) -> Float64:
        """(3, P) u, v and disparity as they would be without the error; seen: (3, P) as they are."""
        return np.asarray(seen - self._at(seen)) if self._error is not None else seen

    def in_image(self, place: Float64) -> Float64:
        """(3, P) u, v and disparity in the images of what would be at (3, P) `place` without the error.

        The inverse of `corrected` to first order: the error changes by little over its own length.
        """
        return np.asarray(place + self._at(place)) if self._error is not None else place

    def in_right_image(self, pixel: Float64, disparity: Float64) -> Float64:
        """(N, 2) pixels of the right image where what is at (N, 2) pixels of the left one is, off its row included."""
        out = pixel - np.column_stack((disparity, np.zeros(len(pixel))))
        if self._rows is not None:
            out[:, 1] += self._rows.at(pixel, disparity)
        return np.asarray(out)

    def _at(self, seen: Float64) -> Float64:
        """(3, P) what the error adds to u, v and disparity there."""
        camera, error = self._camera, self._error
        assert error is not None
        u, v = seen[0] - camera.cx, seen[1] - camera.cy
        other = u - (seen[2] - camera.disparity_offset)  # along the row of the right image
        x, y, x_right = u / camera.fx, v / camera.fy, other / camera.fx
        along, down = _powers(2.0 * u / camera.width), _powers(2.0 * v / camera.height)
        along_right = _powers(2.0 * other / camera.width)
        radial = error[FOCAL] + error[K1] * (x * x + y * y)
        out = np.empty((3, len(u)))
        out[0] = u * radial + error[CENTRE_U] + ((self._fields[0].T @ along) * down).sum(axis=0)
        out[1] = v * radial + error[CENTRE_V] + ((self._fields[1].T @ along) * down).sum(axis=0)
        turned = error[PITCH] * x_right * y - error[YAW] * (1 + x_right * x_right) + error[ROLL] * y
        ahead = error[AHEAD] * (seen[2] - camera.disparity_offset) / camera.fx
        right = other * (error[FOCAL] + error[FOCAL_RIGHT] + ahead + error[K1] * (x_right * x_right + y * y))
        right += camera.fx * turned + error[CENTRE_U] + ((self._fields[2].T @ along_right) * down).sum(axis=0)
        out[2] = out[0] - right
        return out


def _powers(x: Float64) -> Float64:
    """(D, P) of (P,) numbers."""
    out = np.ones((_HIGHEST + 1, len(x)))
    for degree in range(_HIGHEST):
        np.multiply(out[degree], x, out=out[degree + 1])
    return out
