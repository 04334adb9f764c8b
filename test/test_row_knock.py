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

"""A camera that was knocked is told from images of two moments by the rows of doubted frames, and tracking goes on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bench.wrong_camera import WrongCamera
from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.images.frame import StereoFrame
from macvo_ros.odometry.status import Status
from macvo_ros.odometry.stereo_odometry import StereoOdometry
from macvo_ros.rendering.sequence import RenderedSequence
from macvo_ros.rendering.worlds import build
from macvo_ros.settings.config import CalibrationPriorConfig, load_config
from macvo_ros.uncertainty.calibration_model import PITCH, YAW, CalibrationModel
from macvo_ros.uncertainty.row_field import RowLearning
from macvo_ros.uncertainty.row_knock import STEADY, RowKnock

CAMERA = StereoCamera(fx=600.0, fy=600.0, cx=600.0, cy=190.0, baseline=0.5, width=1200, height=380)
MODEL = CalibrationModel(CAMERA)
USUAL = 0.3
"""Pixels that matches are off their rows by, in these tests, as long as nothing is wrong."""


def usual(vertical: np.ndarray) -> bool:
    return float(np.median(np.abs(vertical))) < USUAL


def doubted(frame: int, turn: np.ndarray, nearer: float = 0.0) -> np.ndarray:
    """(200, 4) corners of a frame whose right camera is turned, or which saw the ground come nearer meanwhile."""
    rng = np.random.default_rng(frame)
    pixel, disparity = rng.uniform((60, 20), (1180, 360), (200, 2)), rng.uniform(5, 50, 200)
    vertical = MODEL.row_jacobian(pixel, disparity)[:, :3] @ turn + rng.normal(0, 0.1, 200)
    vertical += nearer * (pixel[:, 1] - CAMERA.cy) * disparity / 50
    vertical[:20] = rng.uniform(-5, 5, 20)
    return np.column_stack((pixel, disparity, vertical))


def test_one_turn_that_explains_all_frames_for_a_while_is_a_knock() -> None:
    watch, turn = RowKnock(MODEL), np.radians([0.3, 0.2, -0.2])
    found = [watch.look(doubted(frame, turn), None, 0.1, usual) for frame in range(25)]
    first = next(i for i, each in enumerate(found) if each is not None)
    assert STEADY <= 0.1 * (first + 1) < STEADY + 0.2
    told = found[first]
    assert told is not None
    np.testing.assert_allclose(told, turn, atol=np.radians(0.02))


def test_what_moved_between_two_exposures_is_none() -> None:
    """A right image that is late: another turn in each frame, or ground that comes nearer, which no turn explains."""
    watch = RowKnock(MODEL)
    for frame in range(100):
        turn = np.radians([0.3 * np.sin(frame / 3), 0.0, 0.1])
        assert watch.look(doubted(frame, turn), None, 0.1, usual) is None
    watch.restart()
    for frame in range(100):
        assert watch.look(doubted(frame, np.zeros(3), nearer=0.02), None, 0.1, usual) is None


def test_rows_are_read_where_the_turned_camera_has_them() -> None:
    learning = RowLearning(MODEL, MODEL.prior_sigma(CalibrationPriorConfig()))
    before, turn = learning.field, np.radians([0.3, 0.2, -0.1])
    learning.restart(turn)
    pixel = doubted(0, turn)[:, :2]
    moved = learning.field.at(pixel, np.zeros(200)) - before.at(pixel, np.zeros(200))
    np.testing.assert_allclose(moved, MODEL.row_jacobian(pixel, np.zeros(200))[:, :3] @ turn, atol=1e-6)


class Rendered:
    """A walk that is rendered once. Implements `macvo_ros.sequences.Sequence`."""

    def __init__(self) -> None:
        world = build("park", 5)
        camera = StereoCamera(fx=200.0, fy=200.0, cx=199.5, cy=124.5, baseline=0.12, width=400, height=250)
        sensor = replace(world.sensor, softness=0.7)
        rendered = RenderedSequence(world, 52, 5, camera=camera, rate=10.0, sensor=sensor, name="park")
        self.name, self.stamps, self.ground_truth = rendered.name, rendered.stamps, rendered.ground_truth
        self._frames = [rendered[i] for i in range(len(rendered))]

    def __len__(self) -> int:
        return len(self._frames)

    def __getitem__(self, index: int) -> StereoFrame:
        return self._frames[index]


@pytest.fixture(scope="module")
def walk() -> Rendered:
    return Rendered()


@pytest.mark.parametrize("turned", [{PITCH: 0.5}, {YAW: 0.4}], ids=["pitch", "yaw"])
def test_a_knocked_camera_is_tracked_again_and_its_turn_is_known(turned: dict[int, float], walk: Rendered) -> None:
    """Before rows were watched nothing was tracked any more; before residuals were explained, not for five seconds."""
    knock = {axis: np.radians(degrees) for axis, degrees in turned.items()}
    sequence = WrongCamera(walk, knock, since=12)
    odometry = StereoOdometry(load_config(assignments=["matcher=lite"]))
    status = [odometry.track(sequence[i]).status for i in range(len(walk))]
    assert all(each is Status.TRACKING for each in status[1:12])
    assert sum(each is Status.LOST for each in status[12:]) <= 25, "2 s and a little"
    assert all(each is not Status.LOST for each in status[40:])
    assert odometry.calibration is not None
    assert odometry.calibration.knocks == 1
    for axis, angle in knock.items():
        assert odometry.calibration.estimate.error[axis] > 0.4 * angle
