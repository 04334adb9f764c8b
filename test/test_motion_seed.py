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

"""Where the dense search begins: good predictions stand, poor ones are corrected, blind images change nothing."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
import torch

from macvo_ros.geometry.se3 import exp_so3, inverse, transform
from macvo_ros.images.frame import StereoFrame
from macvo_ros.matching.matcher import Match, StereoMatch
from macvo_ros.matching.motion_seed import feature_motion, seed_motion
from macvo_ros.matching.rigid_flow import rigid_flow
from macvo_ros.rendering.sequence import RenderedSequence

Float64 = npt.NDArray[np.float64]


def true_match(room: RenderedSequence, index: int) -> Match:
    """The exact disparity of a frame, known to 0.1 pixels."""
    disparity = torch.from_numpy(room.truth(index).disparity)
    return Match(StereoMatch(disparity, torch.full_like(disparity, 0.01)))


def true_motion(room: RenderedSequence, first: int, second: int) -> Float64:
    assert room.ground_truth is not None
    return np.asarray(inverse(room.ground_truth[first]) @ room.ground_truth[second])


def flow_error(room: RenderedSequence, index: int, found: Float64, truth: Float64) -> float:
    """Median distance between the flows of two motions, pixels."""
    disparity = room.truth(index).disparity
    apart = rigid_flow(room.camera, disparity, found) - rigid_flow(room.camera, disparity, truth)
    return float(np.median(np.linalg.norm(apart, axis=-1)))


def turned(degrees: float, axis: int) -> Float64:
    """(4, 4) rotation about an axis of the camera."""
    return transform(exp_so3(np.deg2rad(degrees) * np.eye(3)[axis]), np.zeros(3))


def test_a_good_prediction_stands(room: RenderedSequence) -> None:
    predicted = true_motion(room, 10, 11) @ turned(0.1, 1)
    assert np.array_equal(seed_motion(room[10], true_match(room, 10), room[11], predicted), predicted)


@pytest.mark.parametrize(("degrees", "axis"), [(8.0, 1), (-5.0, 0), (10.0, 2)])
def test_a_prediction_turned_far_off_is_corrected(room: RenderedSequence, degrees: float, axis: int) -> None:
    truth = true_motion(room, 10, 11)
    predicted = truth @ turned(degrees, axis)
    seed = seed_motion(room[10], true_match(room, 10), room[11], predicted)
    assert flow_error(room, 10, predicted, truth) > 10
    assert flow_error(room, 10, seed, truth) < 1


def test_without_a_prediction_a_gap_of_six_frames_is_bridged(room: RenderedSequence) -> None:
    truth = true_motion(room, 4, 10)
    seed = seed_motion(room[4], true_match(room, 4), room[10], np.eye(4))
    assert flow_error(room, 4, np.eye(4), truth) > 5
    assert flow_error(room, 4, seed, truth) < 1


def test_seeds_are_the_same_every_time(room: RenderedSequence) -> None:
    match, frames = true_match(room, 4), (room[4], room[10])
    first, second = (seed_motion(frames[0], match, frames[1], np.eye(4)) for _ in range(2))
    assert np.array_equal(first, second)


def test_features_of_the_whole_image_find_a_motion_alone(room: RenderedSequence) -> None:
    found = feature_motion(room[4], true_match(room, 4), room[10])
    assert found is not None
    assert flow_error(room, 4, found, true_motion(room, 4, 10)) < 1.5


@pytest.mark.parametrize("kind", ["flat", "noise"])
def test_images_that_show_nothing_leave_the_prediction(room: RenderedSequence, kind: str) -> None:
    rng = np.random.default_rng(6)
    shape = (room.camera.height, room.camera.width)
    images = [
        np.full(shape, 90, np.uint8) if kind == "flat" else rng.integers(0, 256, shape).astype(np.uint8)
        for _ in range(2)
    ]
    first, second = (StereoFrame(image, image, stamp, room.camera) for stamp, image in enumerate(images))
    predicted = true_motion(room, 10, 11)
    assert np.array_equal(seed_motion(first, true_match(room, 10), second, predicted), predicted)


def test_points_of_unknown_depth_are_not_used(room: RenderedSequence) -> None:
    match = true_match(room, 10)
    unknown = Match(StereoMatch(match.disparity, torch.full_like(match.disparity, 400.0)))
    predicted = true_motion(room, 10, 11) @ turned(8.0, 1)
    assert np.array_equal(seed_motion(room[10], unknown, room[11], predicted), predicted)
    assert feature_motion(room[10], unknown, room[11]) is None
