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

"""One error of the calibration, evaluated quickly, is what the model says of it."""

from __future__ import annotations

import numpy as np

from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.motion.calibration_shift import CalibrationShift
from macvo_ros.uncertainty.calibration_model import PHYSICAL, SIZE, CalibrationModel, Keypoints
from macvo_ros.uncertainty.row_field import COUNT, RowField

CAMERA = StereoCamera(fx=420.0, fy=410.0, cx=310.0, cy=190.0, baseline=0.2, width=640, height=400)


def drawn(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """An error of some tenths of a pixel, and (3, P) pixels with disparities."""
    error = rng.normal(0.0, 0.1, SIZE)
    error[: len(PHYSICAL)] = rng.normal(0.0, 1e-3, len(PHYSICAL))
    seen = np.vstack((rng.uniform(0, 639, 300), rng.uniform(0, 399, 300), rng.uniform(0.5, 60, 300)))
    return error, seen


def test_it_is_the_correction_of_the_model():
    error, seen = drawn(np.random.default_rng(1))
    same = Keypoints(seen[:2].T, seen[2], seen[:2].T, seen[2])
    wanted = CalibrationModel(CAMERA).corrected(same, error)
    corrected = CalibrationShift(CAMERA, error).corrected(seen)
    np.testing.assert_allclose(corrected[:2].T, wanted.pixel, atol=1e-9)
    np.testing.assert_allclose(corrected[2], wanted.disparity, atol=1e-9)


def test_back_into_the_image():
    error, seen = drawn(np.random.default_rng(2))
    lens = CalibrationShift(CAMERA, error)
    moved = np.abs(lens.corrected(seen) - seen).max()
    assert moved > 0.3
    assert np.abs(lens.in_image(lens.corrected(seen)) - seen).max() < 1e-3 * moved


def test_nothing_known_changes_nothing():
    _, seen = drawn(np.random.default_rng(3))
    for none in (None, np.zeros(SIZE)):
        lens = CalibrationShift(CAMERA, none)
        np.testing.assert_array_equal(lens.corrected(seen), seen)
        np.testing.assert_array_equal(lens.in_image(seen), seen)


def test_rows_of_the_right_image_are_those_of_the_field():
    rng = np.random.default_rng(4)
    _, seen = drawn(rng)
    field = RowField(CalibrationModel(CAMERA), rng.normal(0, 0.3, COUNT))
    found = CalibrationShift(CAMERA, None, field).in_right_image(seen[:2].T, seen[2])
    np.testing.assert_allclose(found[:, 0], seen[0] - seen[2], atol=1e-9)
    np.testing.assert_allclose(found[:, 1], seen[1] + field.at(seen[:2].T, seen[2]), atol=1e-9)
