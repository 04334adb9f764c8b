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

"""Two camera_info are one calibration: never half of an old one and half of a new one."""

from __future__ import annotations

import array
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed; run `make build`")

from macvo_ros.ros.camera_info_pair import CameraInfoPair, same_info


def info(width: int = 320, fx: float = 220.0, stamp: int = 0, tx: float = 0.0):
    P = [fx, 0, 160, tx, 0, fx, 120, 0, 0, 0, 1, 0]
    header = SimpleNamespace(stamp=SimpleNamespace(sec=0, nanosec=stamp), frame_id="camera")
    matrices = {"d": [], "k": array.array("d", np.eye(3).ravel()), "r": array.array("d", np.eye(3).ravel())}
    return SimpleNamespace(
        header=header, width=width, height=240, distortion_model="", p=array.array("d", P), **matrices
    )


def pair_of(left, right, tolerance: float = 0.0) -> CameraInfoPair:
    pair = CameraInfoPair(tolerance)
    pair.take("left", left)
    assert pair.missing == ["right"]
    assert not pair.whole
    pair.take("right", right)
    assert pair.whole
    return pair


@pytest.mark.parametrize(("first", "second"), [("left", "right"), ("right", "left")])
def test_a_change_is_whole_when_both_sides_told_it(first, second):
    pair = pair_of(info(), info(tx=-26.4))
    pair.take(first, info(width=640, stamp=7))
    assert not pair.whole
    assert pair.changed == first
    for late in (info(stamp=6), info(stamp=6, tx=-26.4)):  # sent before the change
        pair.take(second, late)
        assert not pair.whole
    pair.take(second, info(width=640, stamp=7))
    assert pair.whole
    assert [side.width for side in pair.infos] == [640, 640]


def test_a_side_that_repeats_itself_after_the_change_has_followed():
    """A new baseline changes the right camera's projection only."""
    pair = pair_of(info(), info(tx=-26.4))
    pair.take("right", info(tx=-26.5, stamp=9))
    pair.take("left", info(stamp=9))
    assert pair.whole


def test_stamps_may_differ_by_the_tolerance():
    pair = pair_of(info(), info(tx=-26.4), tolerance=5e-9)
    pair.take("right", info(fx=110.0, stamp=9))
    pair.take("left", info(fx=110.0, stamp=5))
    assert pair.whole


def test_a_change_of_one_side_is_accepted_only_if_it_fits_the_other():
    pair = pair_of(info(), info(tx=-26.4))
    pair.take("right", info(tx=-30.0, stamp=9))
    assert pair.accept()
    pair.take("right", info(fx=110.0, tx=-30.0, stamp=10))
    assert not pair.accept()
    pair.take("left", info(width=640, fx=110.0, stamp=8))  # both changed, and neither fits the other
    assert not pair.accept()


def test_a_clock_that_goes_back_leaves_no_change_to_wait_for():
    pair = pair_of(info(), info(tx=-26.4))
    for side in ("left", "right"):
        pair.take(side, info(width=640, stamp=900))
    assert pair.whole
    pair.take("left", info(width=640, stamp=3))
    pair.take("right", info(width=640, stamp=3))
    assert pair.whole


def test_stamps_are_no_change():
    assert same_info(info(stamp=1), info(stamp=2))
    assert not same_info(info(), info(fx=221.0))
