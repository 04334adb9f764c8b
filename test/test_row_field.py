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

"""Rows of the right image: learned from corners, and read by all who compare stereo patches."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
import pytest

from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.images.frame import StereoFrame
from macvo_ros.matching.classic import ClassicMatcher
from macvo_ros.matching.lite.matcher import LiteMatcher
from macvo_ros.matching.matcher import Matcher
from macvo_ros.motion.calibration_shift import CalibrationShift
from macvo_ros.settings.config import CalibrationPriorConfig, ClassicConfig
from macvo_ros.uncertainty.block_scatter import Evidence
from macvo_ros.uncertainty.calibration_model import AHEAD, K1, PITCH, ROLL, SIZE, CalibrationModel
from macvo_ros.uncertainty.row_evidence import fit_rows, row_evidence
from macvo_ros.uncertainty.row_field import COUNT, RowField, RowLearning, row_shapes

CAMERA = StereoCamera(fx=600.0, fy=600.0, cx=600.0, cy=190.0, baseline=0.5, width=1200, height=380)
MODEL = CalibrationModel(CAMERA)
LOWER = 0.4
"""Pixels by which the right image is lower than it should be in these tests."""


def lowered(frame: StereoFrame) -> StereoFrame:
    """The frame with its right image moved down."""
    shift = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, LOWER]])
    right = cv2.warpAffine(
        frame.right, shift, frame.right.shape[1::-1], flags=cv2.INTER_LANCZOS4, borderMode=cv2.BORDER_REPLICATE
    )
    return replace(frame, right=np.asarray(right, dtype=np.uint8))


def constant(camera: StereoCamera, pixels: float) -> RowField:
    """All rows so many pixels lower: a pitch, less what it bends."""
    model = CalibrationModel(camera)
    v, u = np.mgrid[0 : camera.height : 8, 0 : camera.width : 8].astype(np.float64)
    shapes = row_shapes(model, np.column_stack((u.ravel(), v.ravel())), np.zeros(u.size))
    return RowField(model, np.linalg.lstsq(shapes, np.full(len(shapes), pixels), rcond=None)[0])


@pytest.mark.parametrize("matcher", [LiteMatcher(), ClassicMatcher(ClassicConfig())], ids=lambda each: each.name)
def test_disparities_do_not_suffer_from_rows_that_are_known_to_be_off(matcher: Matcher, room) -> None:
    """Where edges lean, a match along the wrong row is off by the slope times the row's error."""
    rng = np.random.default_rng(5)
    camera = room.camera
    pixel = rng.uniform((0.2 * camera.width, 30), (camera.width - 30, camera.height - 30), (600, 2)).round()

    def disparities(move: bool, rows: RowField | None) -> dict[tuple[float, float], np.ndarray]:
        matcher.reset()
        first, second = (lowered(room[i]) if move else room[i] for i in (10, 11))
        reference = matcher.match(None, first)
        points = matcher.refine(first, reference, second, matcher.match(first, second), pixel, rows)
        sure = points.subset(np.sqrt(points.disparity_var + points.matched_disparity_var) < 0.3)
        both = np.column_stack((sure.disparity, sure.matched_disparity))
        return dict(zip(map(tuple, sure.pixel), both, strict=True))

    as_it_is = disparities(False, None)

    def error(found: dict[tuple[float, float], np.ndarray]) -> np.ndarray:
        common = [found[at] - as_it_is[at] for at in found if at in as_it_is]
        assert len(common) > 100
        return np.sqrt(np.median(np.square(common), axis=0))

    off, known = error(disparities(True, None)), error(disparities(True, constant(camera, LOWER)))
    assert (known < 0.5 * off).all(), (off, known)
    assert (known < 0.03).all()


def test_the_field_is_learned_from_noisy_corners_and_is_its_prior_before() -> None:
    rng = np.random.default_rng(11)
    learning = RowLearning(MODEL, MODEL.prior_sigma(CalibrationPriorConfig()))
    v, u = np.mgrid[20:360:20, 100:1180:20].astype(np.float64)
    grid, none = np.column_stack((u.ravel(), v.ravel())), np.zeros(u.size)
    assert not learning.field.at(grid, none).any()
    truth = np.concatenate((rng.normal(0.0, 0.1, COUNT - 2), rng.normal(0.0, 0.003, 2)))
    for _ in range(100):
        pixel, disparity = rng.uniform((100, 10), (1190, 370), (200, 2)), rng.uniform(2, 60, 200)
        vertical = RowField(MODEL, truth).at(pixel, disparity) + rng.normal(0, 0.1, 200)
        vertical[:10] += rng.uniform(-3, 3, 10)
        rows = fit_rows(MODEL, pixel, disparity, vertical)
        assert rows is not None
        learning.learn(rows, 0.1)
    error = learning.field.at(grid, none) - RowField(MODEL, truth).at(grid, none)
    # 100 x 200 corners of 0.1 pixels for 23 shapes: 0.1 sqrt(23 / 20000) on average.
    assert np.sqrt(np.mean(error**2)) < 2 * 0.1 * np.sqrt(23 / 20000)
    learning.restart()
    assert not learning.field.at(grid, none).any()


def test_followed_points_are_looked_for_on_the_same_rows() -> None:
    rows = constant(CAMERA, LOWER)
    pixel, disparity = np.array([[700.0, 200.0], [500.0, 100.0]]), np.array([20.0, 5.0])
    there = CalibrationShift(CAMERA, np.zeros(SIZE), rows).in_right_image(pixel, disparity)
    np.testing.assert_allclose(there, [[680.0, 200.0 + LOWER], [495.0, 100.0 + LOWER]], atol=0.01)


@pytest.mark.parametrize(("which", "amount"), [(K1, -0.01), (AHEAD, 0.01)])
def test_near_things_leave_their_rows_by_a_bent_lens_and_by_a_camera_ahead(which: int, amount: float) -> None:
    """Against the projection of points, not against the formula."""
    rng = np.random.default_rng(6)
    error = np.zeros(SIZE)
    error[which] = amount
    pixel, disparity = rng.uniform((100, 10), (1100, 370), (200, 2)), rng.uniform(1.0, 80.0, 200)
    depth = CAMERA.fx * CAMERA.baseline / disparity
    point = np.column_stack(((pixel - (CAMERA.cx, CAMERA.cy)) / CAMERA.fx, np.ones(200))) * depth[:, None]
    right = point - CAMERA.baseline * np.array([1.0, 0.0, error[AHEAD]])
    sides = [each[:, :2] / each[:, 2:] for each in (point, right)]
    bent = [side * (1.0 + error[K1] * (side**2).sum(axis=1, keepdims=True)) for side in sides]
    rows = CAMERA.fy * (bent[1] - bent[0])[:, 1]
    assert np.abs(rows).max() > 0.2
    shapes = np.zeros(COUNT)
    shapes[-2:] = error[[K1, AHEAD]]
    np.testing.assert_allclose(RowField(MODEL, shapes).at(pixel, disparity), rows, atol=0.02)
    np.testing.assert_allclose(RowField(MODEL, shapes).of_near(pixel, disparity), rows, atol=0.02)


def test_what_near_things_show_of_the_lens_is_no_roll() -> None:
    """Things that are near, low and to one side, through a lens with a k1: neither roll nor pitch is told by it."""
    rng = np.random.default_rng(7)
    shapes = np.zeros(COUNT)
    shapes[-2] = -0.01
    learning = Evidence(np.zeros((SIZE, SIZE)), np.zeros(SIZE))
    for _ in range(50):
        pixel = rng.uniform((100, 10), (1100, 370), (200, 2))
        disparity = np.maximum(2.0, 0.3 * (pixel[:, 1] - 150.0)) * rng.uniform(0.7, 1.3, 200)
        vertical = RowField(MODEL, shapes).at(pixel, disparity) + rng.normal(0.0, 0.05, 200)
        rows = fit_rows(MODEL, pixel, disparity, vertical)
        assert rows is not None
        learning = learning.plus(row_evidence(MODEL, rows))
    turned = np.ix_([PITCH, ROLL], [PITCH, ROLL])
    pitch, roll = np.degrees(np.linalg.solve(learning.information[turned], learning.score[[PITCH, ROLL]]))
    assert abs(pitch) < 0.003
    assert abs(roll) < 0.003
