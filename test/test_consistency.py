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

import cv2
import numpy as np
import pytest
import torch

from macvo_ros.doubt.consistency import Outliers, appearance_mismatch, find_flow_outliers
from macvo_ros.doubt.second_motion import find_second_motion
from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.geometry.se3 import exp_so3, transform
from macvo_ros.matching.matcher import FlowMatch, Match, StereoMatch
from macvo_ros.matching.rigid_flow import rigid_flow
from macvo_ros.settings.config import Config

CAMERA = StereoCamera(200.0, 200.0, 159.5, 99.5, 0.12, 320, 200)
MOTION = transform(exp_so3(np.array([0.01, -0.02, 0.005])), np.array([0.05, 0.01, 0.08]))
STILL = np.eye(4)
NONE = Outliers(0.0, np.empty((0, 2)))


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
    before = Match(StereoMatch(torch.from_numpy(disparity), var))
    temporal = FlowMatch(torch.from_numpy(flow.transpose(2, 0, 1)), torch.stack((var, var)))
    return before, Match(StereoMatch(torch.from_numpy(after), var), temporal)


def rejected(still: float) -> Outliers:
    """Of 48 keypoints spread over the image, those in the left `still` part moved with the camera and won."""
    u, v = np.meshgrid(np.linspace(20, 300, 8), np.linspace(20, 180, 6))
    pixel = np.column_stack((u.ravel(), v.ravel()))
    lost = pixel[:, 0] >= 320 * still
    return Outliers(float(lost.mean()), pixel[lost])


def test_a_static_scene_has_no_flow_outliers():
    assert find_flow_outliers(CAMERA, *matches(still=0.0), MOTION).share < 0.01


@pytest.mark.parametrize("part", [0.2, 0.55])
def test_the_part_that_moves_otherwise_is_measured(part):
    before, after = matches(still=part)
    # A fifth of the image hardly moves under MOTION, so nothing can be said of it.
    assert part - 0.2 < find_flow_outliers(CAMERA, before, after, MOTION).share < part + 0.02
    # Seen from the other side: what the still part calls the motion, the rest denies.
    assert 1 - part - 0.2 < find_flow_outliers(CAMERA, before, after, STILL).share < 1 - part + 0.02


def test_flow_outliers_name_the_motion_they_agree_on():
    before, after = matches(still=0.6)
    outliers = find_flow_outliers(CAMERA, before, after, STILL)
    second = find_second_motion(Config(), CAMERA, (before, after), (NONE, outliers), STILL)
    assert second is not None
    assert second.support == pytest.approx(outliers.share, abs=0.1)
    np.testing.assert_allclose(second.motion[:3, 3], MOTION[:3, 3], atol=0.03)


def test_rejected_keypoints_name_the_motion_they_agree_on():
    before, after = matches(still=0.6)
    second = find_second_motion(Config(), CAMERA, (before, after), (rejected(0.6), NONE), STILL)
    assert second is not None
    assert second.support == pytest.approx(0.375, abs=0.1)
    np.testing.assert_allclose(second.motion[:3, 3], MOTION[:3, 3], atol=0.05)


def test_a_crowd_does_not_agree_on_a_motion():
    before, after = matches(still=0.6, wild=0.4)
    outliers = find_flow_outliers(CAMERA, before, after, STILL)
    assert outliers.share > 0.3
    found = find_second_motion(Config(), CAMERA, (before, after), (rejected(0.6), outliers), STILL)
    assert found is None


def test_what_is_uncertain_has_no_say():
    before, after = matches(still=0.55)
    vague = Match(after.stereo, FlowMatch(after.flow, torch.full_like(after.flow, 4.0)))
    assert find_flow_outliers(CAMERA, before, vague, MOTION).share == 0.0
    # Nor has a pixel whose depth was not found, however sure its flow is.
    lost = Match(StereoMatch(before.disparity * 0.1, torch.full_like(before.disparity, 400.0)))
    assert find_flow_outliers(CAMERA, lost, after, MOTION).share == 0.0


@pytest.mark.parametrize("pixels", [(96, 60), (320, 200), (2208, 1242)])
def test_appearance_is_compared_in_images_of_every_size(pixels):
    camera = CAMERA.resized(*pixels)
    texture = np.random.default_rng(1).integers(0, 255, (10, 16), dtype=np.uint8)
    image = cv2.resize(texture, pixels, interpolation=cv2.INTER_CUBIC)
    near = Match(StereoMatch(torch.full(image.shape, 10.0), torch.full(image.shape, 0.01)))
    assert appearance_mismatch(camera, (image, image), near, STILL) == 0.0
    assert appearance_mismatch(camera, (image, image[::-1]), near, STILL) > 0.3
    unsure = Match(StereoMatch(near.disparity, torch.full(image.shape, 1e4)))
    assert appearance_mismatch(camera, (image, image[::-1]), unsure, MOTION) == 0.0
