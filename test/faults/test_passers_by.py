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

"""Somebody crosses close before the camera: what moves by itself is not taken for a fault, nor for the world."""

from __future__ import annotations

import numpy as np
from honesty import CHI2_6, nees

from macvo_ros.geometry.se3 import difference, inverse
from macvo_ros.odometry.status import Status
from macvo_ros.odometry.stereo_odometry import StereoOdometry
from macvo_ros.rendering.sequence import RenderedSequence
from macvo_ros.rendering.worlds import ZED_X, build
from macvo_ros.settings.config import Config


def test_a_person_who_fills_a_quarter_of_the_view_does_not_stop_tracking():
    """Called LOST when looks were counted by a threshold, although the motion was right to a tenth of a millimetre."""
    world = build("dynamic", 7005, 512)
    sequence = RenderedSequence(world, 30, seed=7005, camera=ZED_X.resized(480, 300))
    sequence.world = world  # with who comes nearer than a metre in other frames (`rendering/clearance.py`)
    truth, odometry = sequence.ground_truth, StereoOdometry(Config())
    assert truth is not None
    odometry.track(sequence[10])
    mismatches = []
    for index in range(11, 17):
        found = odometry.track(sequence[index])
        assert found.status is Status.TRACKING, found.reason
        assert found.relative is not None
        error = difference(found.relative.motion, inverse(truth[index - 1]) @ truth[index])
        assert nees(error, found.relative.covariance) < CHI2_6
        assert np.linalg.norm(error[:3]) < 0.002
        mismatches.append(found.checks["appearance_mismatch"])
    assert max(mismatches) > 0.2  # else nobody is there
