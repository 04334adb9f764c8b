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

"""The wrong cameras of `bench/calibration.py` are wrong in the way that the model of the calibration says."""

from __future__ import annotations

from typing import cast

import numpy as np
import numpy.typing as npt
import pytest

from bench.wrong_camera import WrongCamera
from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.images.frame import StereoFrame
from macvo_ros.sequences.sequence import Sequence
from macvo_ros.uncertainty.calibration_model import FOCAL, K1, PITCH, ROLL, SIZE, YAW, CalibrationModel, Keypoints

CAMERA = StereoCamera(fx=300.0, fy=300.0, cx=199.5, cy=119.5, baseline=0.2, width=400, height=240)
DOTS = np.array([[60.0, 40.0], [330.0, 60.0], [200.0, 120.0], [90.0, 190.0], [340.0, 200.0]])
DISPARITY = np.array([10.0, 20.0, 15.0, 25.0, 8.0])


def picture(dots: npt.NDArray[np.float64]) -> npt.NDArray[np.uint8]:
    v, u = np.mgrid[: CAMERA.height, : CAMERA.width]
    light = sum(200.0 * np.exp(-((u - x) ** 2 + (v - y) ** 2) / 18) for x, y in dots)
    return np.asarray(np.rint(light), np.uint8)


def centres(image: npt.NDArray[np.uint8], near: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    out = []
    for x, y in np.rint(near).astype(int):
        v, u = np.mgrid[y - 12 : y + 13, x - 12 : x + 13]
        light = image[y - 12 : y + 13, x - 12 : x + 13].astype(float)
        out.append([(u * light).sum() / light.sum(), (v * light).sum() / light.sum()])
    return np.array(out)


class Dots:
    """Stands for a rendered sequence: two frames of a few dots."""

    name, camera, stamps, ground_truth = "dots", CAMERA, np.array([0, 1]), np.stack([np.eye(4)] * 2)

    def __getitem__(self, index: int) -> StereoFrame:
        return StereoFrame(picture(DOTS), picture(DOTS - np.column_stack((DISPARITY, 0 * DISPARITY))), index, CAMERA)


@pytest.mark.parametrize(
    "error", [{YAW: 0.002}, {PITCH: 0.002}, {ROLL: 0.004}, {FOCAL: 0.005}, {K1: -0.01}, {YAW: 0.002, K1: -0.01}]
)
def test_images_move_as_the_model_says(error: dict[int, float]) -> None:
    vector = np.zeros(SIZE)
    vector[list(error)] = list(error.values())
    model = CalibrationModel(CAMERA)
    expected = model.distorted(Keypoints(DOTS, DISPARITY, DOTS, DISPARITY), vector)
    sequence = WrongCamera(cast(Sequence, Dots()), error, since=1)
    right = DOTS - np.column_stack((DISPARITY, 0 * DISPARITY))
    assert (sequence[0].right == picture(right)).all(), "wrong before it should be"
    frame = sequence[1]
    np.testing.assert_allclose(centres(frame.left, DOTS), expected.pixel, atol=0.03)
    found = centres(frame.right, right)
    np.testing.assert_allclose(expected.pixel[:, 0] - found[:, 0], expected.disparity, atol=0.04)
    if not {FOCAL, K1} & set(error):
        rows = model.row_jacobian(DOTS, DISPARITY)[:, :3] @ vector[[PITCH, YAW, ROLL]]
        np.testing.assert_allclose(found[:, 1] - DOTS[:, 1], rows, atol=0.03)
