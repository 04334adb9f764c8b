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

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numpy.polynomial.legendre import leg2poly

from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.matching.native.library import kernels
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
    on_the_way,
)
from macvo_ros.uncertainty.row_field import SHAPES, RowField

Float64 = npt.NDArray[np.float64]

_HIGHEST = max(max(pair) for pair in FIELD_DEGREES)
_POWERS = np.zeros((_HIGHEST + 1, _HIGHEST + 1))
"""Legendre polynomials, a row each, by their coefficients."""
for _degree in range(_HIGHEST + 1):
    _POWERS[_degree, : _degree + 1] = leg2poly(np.eye(_HIGHEST + 1)[_degree, : _degree + 1])
_SINGLE = np.array([FOCAL, K1, CENTRE_U, CENTRE_V, PITCH, YAW, ROLL, AHEAD, FOCAL_RIGHT])
"""Errors that are one number each, as the compiled kernel takes them."""


class CalibrationShift:
    """By how many pixels an error of the calibration moves what is seen, in a third of the time of the model."""

    def __init__(self, camera: StereoCamera, error: Float64 | None, rows: RowField | None = None) -> None:
        """error: (SIZE,) of a `CalibrationModel`; None: none. rows: of the right image; None: as they should be."""
        self._camera = camera
        self._rows = None if rows is None else (rows, _row_polynomial(camera, rows))
        self._parts = [] if error is None else [_Part.of(each) for each in on_the_way(error)]

    def corrected(self, seen: Float64) -> Float64:
        """(3, P) u, v and disparity as they would be without the error; seen: (3, P) as they are.

        As `CalibrationModel.corrected` does it.
        """
        for part in reversed(self._parts):
            seen = seen - part.at(self._camera, seen - part.at(self._camera, seen))
        return seen

    def in_image(self, place: Float64) -> Float64:
        """(3, P) u, v and disparity in the images of what would be at (3, P) `place` without the error."""
        for part in self._parts:
            place = place + part.at(self._camera, place)
        return place

    def in_right_image(self, pixel: Float64, disparity: Float64) -> Float64:
        """(N, 2) pixels of the right image where what is at (N, 2) pixels of the left one is, off its row included."""
        camera, out = self._camera, pixel.copy()
        out[:, 0] -= disparity
        if self._rows is not None:
            along = _powers((out[:, 0] + (camera.disparity_offset - camera.cx)) * (2.0 / camera.width))
            down = _powers((out[:, 1] - camera.cy) * (2.0 / camera.height))
            rows, field = self._rows
            out[:, 1] += ((field.T @ along) * down).sum(axis=0) + rows.of_near(pixel, disparity)
        return np.asarray(out)


@dataclass(frozen=True, eq=False)
class _Part:
    """One part of an error (`on_the_way`). error: (SIZE,); fields: (3, D, D) its fields as polynomials by powers."""

    error: Float64
    fields: Float64

    @staticmethod
    def of(error: Float64) -> _Part:
        return _Part(error, np.stack([_polynomial(error[part], FIELD_DEGREES) for part in (LEFT_U, LEFT_V, RIGHT_U)]))

    def at(self, camera: StereoCamera, seen: Float64) -> Float64:
        """(3, P) what it adds to u, v and disparity there."""
        native = kernels()
        if native is None:
            return _shift(camera, self.error, self.fields, seen)
        out = np.empty(seen.shape)
        lens = (camera.fx, camera.fy, camera.cx, camera.cy, camera.disparity_offset, camera.width, camera.height)
        native(
            "macvo_calibration_shift", np.array(lens, np.float64), self.error[_SINGLE], self.fields, _HIGHEST + 1,
            np.ascontiguousarray(seen), seen.shape[1], out,
        )  # fmt: skip
        return out


def _shift(camera: StereoCamera, error: Float64, fields: Float64, seen: Float64) -> Float64:
    u, v = seen[0] - camera.cx, seen[1] - camera.cy
    other = u - (seen[2] - camera.disparity_offset)  # along the row of the right image
    x, y, x_right = u / camera.fx, v / camera.fy, other / camera.fx
    along, down = _powers(2.0 * u / camera.width), _powers(2.0 * v / camera.height)
    along_right = _powers(2.0 * other / camera.width)
    radial = error[FOCAL] + error[K1] * (x * x + y * y)
    out = np.empty((3, len(u)))
    out[0] = u * radial + error[CENTRE_U] + ((fields[0].T @ along) * down).sum(axis=0)
    out[1] = v * radial + error[CENTRE_V] + ((fields[1].T @ along) * down).sum(axis=0)
    turned = error[PITCH] * x_right * y - error[YAW] * (1 + x_right * x_right) + error[ROLL] * y
    ahead = error[AHEAD] * (seen[2] - camera.disparity_offset) / camera.fx
    right = other * (error[FOCAL] + error[FOCAL_RIGHT] + ahead + error[K1] * (x_right * x_right + y * y))
    right += camera.fx * turned + error[CENTRE_U] + ((fields[2].T @ along_right) * down).sum(axis=0)
    out[2] = out[0] - right
    return out


def _polynomial(amounts: Float64, degrees: tuple[tuple[int, int], ...]) -> Float64:
    """(D, D) coefficients, by powers along u and v, of products of Legendre polynomials of which there is so much."""
    i, j = np.array(degrees).T
    field = np.zeros((_HIGHEST + 1, _HIGHEST + 1))
    field[i, j] = amounts
    return np.asarray(_POWERS.T @ field @ _POWERS)


def _row_polynomial(camera: StereoCamera, rows: RowField) -> Float64:
    """(D, D) coefficients of the field of rows, in pixels of the right image from the centre over half its size."""
    pitch, roll = rows.shapes[:2]
    field = _polynomial(rows.shapes[2:-2], SHAPES)
    field[0, 0] += pitch
    field[0, 2] += pitch * (0.5 * camera.height / camera.fy) ** 2
    field[1, 0] -= roll * (0.5 * camera.width / camera.fx)
    return field


def _powers(x: Float64) -> Float64:
    """(D, P) of (P,) numbers."""
    out = np.ones((_HIGHEST + 1, len(x)))
    for degree in range(_HIGHEST):
        np.multiply(out[degree], x, out=out[degree + 1])
    return out
