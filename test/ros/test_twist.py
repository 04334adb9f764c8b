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

"""Twists as a filter sees them, through lost stretches and jumps of the clock: true as they claim, or unknown."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from camera_messages import stamp_of
from supervised_node import supervised

from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.geometry.se3 import inverse
from macvo_ros.odometry.message_fields import UNKNOWN_VARIANCE, twist
from macvo_ros.odometry.status import Status
from macvo_ros.rendering.sequence import RenderedSequence

COUNT, RATE = 36, 15.0


@pytest.fixture(scope="module")
def walk():
    camera = StereoCamera(220.0, 220.0, 159.5, 119.5, 0.12, 320, 240)
    return RenderedSequence("room", COUNT, seed=5, camera=camera, rate=RATE)


@pytest.fixture(scope="module")
def node(start_node, walk):
    process = start_node("twist", camera_at_base=True, watchdog=0.5, publish_tf=False)
    with supervised(process, walk.camera) as node:
        node.calibrate()
        yield node


def black(frame):
    return dataclasses.replace(frame, left=np.zeros_like(frame.left), right=np.zeros_like(frame.right))


def velocity(message):
    both = (message.twist.twist.linear, message.twist.twist.angular)
    return np.array([value for part in both for value in (part.x, part.y, part.z)])


DARK = {*range(6, 8), *range(12, 20)}
HOUR, HARDLY, BACK = 24, 28, 32
JUMPS = {HOUR: 3600.0, HARDLY: 1e-7, BACK: -1800.0}


def test_twists_through_lost_stretches_and_jumps(node, walk):
    """Two frames of darkness, eight, a clock an hour ahead, stamps 100 nanoseconds apart, a clock that went back."""
    seconds, times, states, checked = 0.0, [], [], 0
    for i in range(COUNT):
        seconds += JUMPS.get(i, 1 / RATE)
        times.append(seconds)
        stamp = 1_790_000_000_000_000_000 + round(seconds * 1e9)
        states.append(Status(node.track(black(walk[i]) if i in DARK else walk[i], stamp=stamp).state))
        if states[-1] is Status.LOST:
            continue
        message = node.newest_odometry()
        assert stamp_of(message) == stamp
        speed, covariance = velocity(message), np.array(message.twist.covariance).reshape(6, 6)
        assert np.diag(covariance).max() <= UNKNOWN_VARIANCE, i
        assert np.linalg.eigvalsh(covariance)[0] > 0
        before = max((j for j in range(i) if j not in DARK), default=None)  # the frame it was measured against
        if i in (0, HARDLY, BACK):
            np.testing.assert_allclose(speed, 0, atol=1e-9)
            assert np.diag(covariance).min() > 0.9 * UNKNOWN_VARIANCE
        elif states[before] is not Status.LOST or before == HOUR:
            true = np.concatenate(
                twist(inverse(walk.ground_truth[before]) @ walk.ground_truth[i], times[i] - times[before])
            )
            error = speed - true
            assert error @ np.linalg.solve(covariance, error) < 60, (
                i,
                error,
            )  # 6 on average; a speed over the wrong time: 1e4
            checked += 1
    assert {i for i in range(HARDLY) if states[i] is Status.LOST} == {*DARK, HOUR}
    assert states[0] is states[BACK] is Status.INITIALIZING
    assert checked > 15
    assert not {stamp_of(message) for message in node.odometry} & {
        stamp_of(status) for status in node.status if status.state == Status.LOST
    }
