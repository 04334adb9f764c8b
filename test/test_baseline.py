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

"""The KLT + PnP baseline is a fair one: it finds the motion of a rendered sequence."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bench.klt_pnp_baseline import KltPnpOdometry, run_baseline
from macvo_ros.evaluation.metrics import relative_errors
from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.images.frame import StereoFrame
from macvo_ros.rendering.sequence import RenderedSequence
from macvo_ros.sequences import open_sequence


def test_finds_the_motion_of_a_rendered_room() -> None:
    sequence = RenderedSequence("room", 4)
    poses, fps = run_baseline(sequence)
    translation, rotation = relative_errors(poses, sequence.ground_truth)
    assert translation.mean() < 0.01
    assert rotation.mean() < 0.2
    assert fps > 0


def test_repeats_the_last_motion_where_there_is_nothing_to_see() -> None:
    camera = StereoCamera(100.0, 100.0, 50.0, 40.0, 0.1, 100, 80)
    black = np.zeros((80, 100), dtype=np.uint8)
    odometry = KltPnpOdometry()
    for stamp in range(2):
        np.testing.assert_array_equal(odometry.track(StereoFrame(black, black, stamp, camera)), np.eye(4))


def test_is_as_strong_as_measured_on_tartanair(shared_data: Path) -> None:
    sequence = open_sequence(shared_data / "tartanair2_abs_P000")
    poses, _ = run_baseline(sequence)
    translation, rotation = relative_errors(poses, sequence.ground_truth)
    assert translation.mean() == pytest.approx(0.0011, abs=0.0003)
    assert rotation.mean() == pytest.approx(0.021, abs=0.006)
