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

"""Images are searched at a bounded size, and keypoints matched at the full one: what must not change with it."""

import numpy as np
import pytest
import torch

from macvo_ros.evaluation.metrics import relative_errors
from macvo_ros.images.frame import StereoFrame
from macvo_ros.images.work_size import reduced, work_size
from macvo_ros.matching.full_size import at_full_size
from macvo_ros.odometry.status import Status
from macvo_ros.odometry.stereo_odometry import StereoOdometry
from macvo_ros.rendering.sequence import RenderedSequence
from macvo_ros.settings.config import load_config

FRAMES = 6


@pytest.fixture(scope="module")
def room() -> RenderedSequence:
    return RenderedSequence("room", FRAMES, 41, texels=256)


def run(sequence: RenderedSequence, pixels: int, matcher: str = "lite") -> list:
    odometry = StereoOdometry(load_config(assignments=[f"matcher={matcher}", f"matching.work_pixels={pixels}"]))
    return [odometry.track(sequence[index]) for index in range(FRAMES)]


@pytest.mark.parametrize("size", [(640, 480), (1241, 376), (1920, 1200), (3840, 2160), (5000, 40)])
def test_the_work_size_is_bounded_and_keeps_the_shape(size: tuple[int, int]) -> None:
    width, height = work_size(*size, 256000)
    assert width * height < 1.05 * 256000
    assert width % 4 == height % 4 == 0
    assert width / height == pytest.approx(size[0] / size[1], rel=0.1)


def test_small_images_and_a_limit_of_zero_leave_the_frame_as_it_is(room: RenderedSequence) -> None:
    assert work_size(320, 240, 256000) == (320, 240)
    frame = room[0]
    assert reduced(frame, 0) is frame
    small = reduced(frame, 50000)
    assert small.full is frame
    assert reduced(small, 50000) is small  # once is enough


def test_a_pixel_shows_the_same_direction_at_both_sizes(room: RenderedSequence) -> None:
    frame = reduced(room[0], 60000)
    pixel = np.array([[0.0, 0.0], [100.5, 33.25], [frame.camera.width - 1.0, 7.0]])
    at_full = frame.to_full(pixel)
    np.testing.assert_allclose(frame.from_full(at_full), pixel)
    for axis, (small, full) in enumerate(((frame.camera.fx, room.camera.fx), (frame.camera.fy, room.camera.fy))):
        centre = ((frame.camera.cx, room.camera.cx), (frame.camera.cy, room.camera.cy))[axis]
        np.testing.assert_allclose((pixel[:, axis] - centre[0]) / small, (at_full[:, axis] - centre[1]) / full)


@pytest.mark.parametrize("matcher", ["lite", "classic"])
def test_a_reduced_search_measures_the_same_motion(room: RenderedSequence, matcher: str) -> None:
    """Half the pixels each way in the search: the motion stays within twice the error, the frame as it came."""
    full, half = run(room, 0, matcher), run(room, room.camera.width * room.camera.height // 4, matcher)
    assert room.ground_truth is not None
    errors = [relative_errors(np.array([e.pose for e in each]), room.ground_truth)[0].mean() for each in (full, half)]
    assert errors[1] < max(2 * errors[0], 1e-3)
    assert all(estimate.status is Status.TRACKING for estimate in half[1:])
    assert half[-1].frame.camera == room.camera
    assert half[-1].landmarks is not None
    assert half[-1].landmarks.pixel[:, 0].max() > 0.6 * room.camera.width  # pixels of the camera's image


def test_dense_maps_for_the_user_have_the_camera_s_size_and_unit(room: RenderedSequence) -> None:
    estimate = run(room, room.camera.width * room.camera.height // 4)[-1]
    match = at_full_size(estimate.match, room.camera)
    shape = room.camera.height, room.camera.width
    assert tuple(match.disparity.shape) == tuple(match.disparity_var.shape) == shape
    assert match.flow is not None
    assert tuple(match.flow.shape) == (2, *shape)
    whole = StereoOdometry(load_config(assignments=["matcher=lite", "matching.work_pixels=0"]))
    reference = whole.track(room[FRAMES - 1]).match
    assert reference is not None
    assert torch.median((match.disparity - reference.disparity).abs()) < 0.3


def test_a_change_of_resolution_is_a_change_of_camera(room: RenderedSequence) -> None:
    """Both sizes reduce to the same work size: the reference's patches still cannot be compared."""
    odometry = StereoOdometry(load_config(assignments=["matcher=lite", "matching.work_pixels=20000"]))
    odometry.track(room[0])
    other = room.camera.resized(room.camera.width * 2, room.camera.height * 2)
    left, right = (image.repeat(2, 0).repeat(2, 1) for image in (room[1].left, room[1].right))
    estimate = odometry.track(StereoFrame(left, right, room[1].stamp, other))
    assert estimate.status is Status.LOST
    assert "calibration" in estimate.reason
