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

from __future__ import annotations

import threading

import numpy as np
import pytest

from macvo_ros.errors import ConfigError
from macvo_ros.matching.classic import ClassicMatcher
from macvo_ros.odometry.pipelined_odometry import PipelinedOdometry
from macvo_ros.odometry.stereo_odometry import StereoOdometry
from macvo_ros.settings.config import ClassicConfig, Config

UNSEEDED = Config(matcher="classic", classic=ClassicConfig(seeded=False, preset="fast"))


class Watched(ClassicMatcher):
    """Counts matches and remembers the threads they ran in."""

    def __init__(self) -> None:
        super().__init__(UNSEEDED.classic)
        self.threads: list[str] = []

    def match(self, reference, current, prediction=None):
        self.threads.append(threading.current_thread().name)
        return super().match(reference, current, prediction)


def test_same_poses_to_the_bit_one_frame_late(room):
    frames = [room[i] for i in range(6)]
    black = type(frames[0])(np.zeros_like(frames[0].left), frames[0].right, frames[3].stamp, room.camera)
    frames[3] = black  # a lost frame changes the reference of the next one
    plain = StereoOdometry(UNSEEDED)
    expected = [plain.track(frame) for frame in frames]
    watched = Watched()
    pipelined = PipelinedOdometry(UNSEEDED, matcher=watched)
    got = [pipelined.track(frame) for frame in frames]
    assert got[0] is None
    got = [*got[1:], pipelined.flush()]
    assert pipelined.flush() is None
    pipelined.close()
    for mine, other in zip(got, expected, strict=True):
        assert mine.frame is other.frame
        assert mine.status is other.status
        np.testing.assert_array_equal(mine.pose, other.pose)
        np.testing.assert_array_equal(mine.covariance, other.covariance)
    assert all("matching" in name for name in watched.threads)
    # One match a frame ahead of time, and one more where the reference was not the frame before.
    assert len(watched.threads) <= len(frames) + 2


def test_a_matcher_that_needs_the_prediction_is_refused():
    with pytest.raises(ConfigError, match="pipelined"):
        PipelinedOdometry(Config())
