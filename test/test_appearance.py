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

from macvo_ros.doubt.appearance import appearance_mismatch
from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.geometry.se3 import exp_so3, transform
from macvo_ros.images.frame import StereoFrame
from macvo_ros.matching.matcher import Match, StereoMatch

CAMERA = StereoCamera(200.0, 200.0, 159.5, 99.5, 0.12, 320, 200)
MOTION = transform(exp_so3(np.array([0.01, -0.02, 0.005])), np.array([0.05, 0.01, 0.08]))
STILL = np.eye(4)


@pytest.mark.parametrize("pixels", [(96, 60), (320, 200), (2208, 1242)])
def test_appearance_is_compared_in_images_of_every_size(pixels):
    camera = CAMERA.resized(*pixels)
    texture = np.random.default_rng(1).integers(0, 255, (10, 16), dtype=np.uint8)
    image = cv2.resize(texture, pixels, interpolation=cv2.INTER_CUBIC)
    frame, other = (StereoFrame(each, each, 0, camera) for each in (image, np.ascontiguousarray(image[::-1])))
    near = Match(StereoMatch(torch.full(image.shape, 10.0), torch.full(image.shape, 0.01)))
    assert appearance_mismatch(frame, near, frame, STILL) == 0.0
    assert appearance_mismatch(frame, near, other, STILL) > 0.3
    unsure = Match(StereoMatch(near.disparity, torch.full(image.shape, 1e4)))
    assert appearance_mismatch(frame, unsure, other, MOTION) == 0.0
