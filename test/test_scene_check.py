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

"""The rest of the image has a say in the motion."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import cv2
import numpy as np
import pytest
import torch

from macvo_ros.camera import StereoCamera
from macvo_ros.config import Config
from macvo_ros.covariance import depth_from_disparity, point_covariance, rays
from macvo_ros.estimate import Landmarks
from macvo_ros.matching.matcher import Match, look_up
from macvo_ros.matching.rigid_flow import rigid_flow
from macvo_ros.scene_check import (
    Dissent,
    coverage,
    find_dissent,
    other_motion,
    rival_motion,
    row_error,
    unlike_share,
)
from macvo_ros.se3 import exp_so3, transform
from macvo_ros.two_frame import TwoFrameResult

CAMERA = StereoCamera(200.0, 200.0, 159.5, 99.5, 0.12, 320, 200)
MOTION = transform(exp_so3(np.array([0.01, -0.02, 0.005])), np.array([0.05, 0.01, 0.08]))
STILL = np.eye(4)
BLANK = (np.zeros((200, 320), np.uint8), np.zeros((200, 320), np.uint8))


def matches(*, still: float, wild: float = 0.0) -> tuple[Match, Match]:
    """Two frames of a slanted wall under MOTION; the left `still` part of the image moves with the camera instead.

    wild: part of the image (from the right edge) whose flow is noise of ten pixels.
    """
    rng = np.random.default_rng(0)
    disparity = np.tile(np.linspace(4, 16, 320, dtype=np.float32), (200, 1))
    flow = rigid_flow(CAMERA, disparity, MOTION)
    flow[:, : int(320 * still)] = 0.0
    if wild:
        flow[:, -int(320 * wild) :] += rng.normal(0, 10, flow[:, -int(320 * wild) :].shape)
    flow += rng.normal(0, 0.05, flow.shape)
    # What is at a pixel now was elsewhere before: depth along the motion.
    inverse_depth = disparity / (CAMERA.fx * CAMERA.baseline)
    moved = CAMERA.fx * CAMERA.baseline * inverse_depth / (1.0 - inverse_depth * MOTION[2, 3])
    after = np.where(np.arange(320) < int(320 * still), disparity, moved).astype(np.float32)
    var = torch.full((200, 320), 0.01)
    before = Match(torch.from_numpy(disparity), var)
    return before, Match(
        torch.from_numpy(after), var, torch.from_numpy(flow.transpose(2, 0, 1)), torch.stack((var, var))
    )


def test_a_static_scene_does_not_dissent():
    assert find_dissent(CAMERA, BLANK, *matches(still=0.0), MOTION).share < 0.01


@pytest.mark.parametrize("part", [0.2, 0.55])
def test_the_part_that_moves_otherwise_is_measured(part):
    before, after = matches(still=part)
    # A fifth of the image hardly moves under MOTION, so nothing can be said of it.
    assert part - 0.2 < find_dissent(CAMERA, BLANK, before, after, MOTION).share < part + 0.02
    # Seen from the other side: what the still part calls the motion, the rest denies.
    assert 1 - part - 0.2 < find_dissent(CAMERA, BLANK, before, after, STILL).share < 1 - part + 0.02


def test_dissenters_name_the_motion_they_agree_on():
    before, after = matches(still=0.6)
    dissent = find_dissent(CAMERA, BLANK, before, after, STILL)
    other = other_motion(Config(), CAMERA, before, after, STILL, dissent)
    assert other is not None
    np.testing.assert_allclose(other[:3, 3], MOTION[:3, 3], atol=0.03)


def test_a_crowd_does_not_agree_on_a_motion():
    before, after = matches(still=0.0, wild=0.4)
    dissent = find_dissent(CAMERA, BLANK, before, after, MOTION)
    assert dissent.share > 0.3
    assert other_motion(Config(), CAMERA, before, after, MOTION, dissent) is None


def test_little_dissent_is_ordinary():
    before, after = matches(still=0.05)
    dissent = find_dissent(CAMERA, BLANK, before, after, MOTION)
    assert 0.0 < dissent.share < 0.1
    assert other_motion(Config(), CAMERA, before, after, MOTION, dissent) is None
    assert other_motion(Config(), CAMERA, before, after, MOTION, Dissent(0.9, np.empty((0, 2)))) is None


def keypoints(still: float, matched: Match) -> TwoFrameResult:
    """48 keypoints spread over the image, of which those in the left `still` part moved with the camera and won."""
    u, v = np.meshgrid(np.linspace(20, 300, 8), np.linspace(20, 180, 6))
    pixel = np.column_stack((u.ravel(), v.ravel()))
    inlier = pixel[:, 0] < 320 * still
    found = look_up(pixel, matches(still=still)[0], matched)
    depth, depth_var = depth_from_disparity(CAMERA, found.matched_disparity, found.matched_disparity_var)
    where = pixel + found.flow
    landmarks = Landmarks(
        where,
        rays(CAMERA, where) * depth[:, None],
        point_covariance(CAMERA, where, found.flow_var, depth, depth_var),
        np.full(48, 0.1),
        inlier.astype(float),
        inlier,
    )
    solution = SimpleNamespace(inlier=inlier)
    return cast(TwoFrameResult, SimpleNamespace(solution=solution, landmarks=landmarks, flow=found.flow))


def test_rejected_keypoints_name_the_motion_they_agree_on():
    before, after = matches(still=0.6)
    rival = rival_motion(Config(), CAMERA, before, keypoints(0.6, after), STILL)
    assert rival is not None
    np.testing.assert_allclose(rival[:3, 3], MOTION[:3, 3], atol=0.05)


def test_a_few_rejected_keypoints_or_a_crowd_of_them_are_no_rivals():
    before, after = matches(still=0.95)
    assert rival_motion(Config(), CAMERA, before, keypoints(0.95, after), STILL) is None
    before, wild = matches(still=0.6, wild=0.4)
    assert rival_motion(Config(), CAMERA, before, keypoints(0.6, wild), STILL) is None


def test_coverage_is_the_part_of_the_image_with_keypoints():
    pixel = np.random.default_rng(0).uniform(0, 1, (400, 2)) * (320, 200)
    assert coverage(CAMERA, pixel) == 1.0
    assert coverage(CAMERA, pixel * (0.5, 1.0)) == 0.5
    assert coverage(CAMERA, np.array([[-5.0, 3.0], [500.0, 900.0]])) == 2 / 32
    assert coverage(CAMERA, np.empty((0, 2))) == 0.0


def test_what_is_uncertain_has_no_say():
    before, after = matches(still=0.55)
    vague = Match(after.disparity, after.disparity_var, after.flow, torch.full_like(after.flow, 4.0))
    assert find_dissent(CAMERA, BLANK, before, vague, MOTION).share == 0.0


def test_what_is_evident_has_a_say_whatever_its_variance():
    """The image stood still to the eye; a motion of the camera is contradicted though the matcher is unsure."""
    before, after = matches(still=1.0)
    vague = Match(after.disparity, after.disparity_var, torch.zeros_like(after.flow), torch.full_like(after.flow, 4.0))
    texture = np.random.default_rng(1).integers(0, 255, (200, 320), dtype=np.uint8)
    assert find_dissent(CAMERA, (texture, texture), before, vague, MOTION).share > 0.5
    assert find_dissent(CAMERA, (texture, texture), before, vague, STILL).share == 0.0
    assert find_dissent(CAMERA, (texture, texture[::-1]), before, vague, MOTION).share == 0.0


@pytest.mark.parametrize("pixels", [(320, 200), (2208, 1242)])
def test_looks_are_compared_in_images_of_every_size_and_where_nothing_is_to_be_seen(pixels):
    camera = CAMERA.resized(*pixels)
    texture = np.random.default_rng(1).integers(0, 255, (20, 32), dtype=np.uint8)
    image = cv2.resize(texture, pixels, interpolation=cv2.INTER_CUBIC)
    near = Match(torch.full(image.shape, 10.0), torch.full(image.shape, 0.01))
    assert unlike_share(camera, (image, image), near, STILL) == 0.0
    assert unlike_share(camera, (image, image[::-1]), near, STILL) > 0.3
    unsure = Match(near.disparity, torch.full(image.shape, 1e4))
    assert unlike_share(camera, (image, image), unsure, MOTION) == 0.0


def test_rows_may_be_left_by_a_pixel_and_by_more_in_larger_images():
    match = Match(torch.zeros(1, 1), torch.zeros(1, 1), epipolar_var=1.44)
    assert row_error(match, CAMERA) == pytest.approx(1.2)
    assert row_error(match, CAMERA.resized(2000, 1250)) == pytest.approx(0.6)
