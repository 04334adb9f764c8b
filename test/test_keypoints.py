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

import numpy as np
import pytest
import torch

from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.motion.keypoints import select_keypoints
from macvo_ros.settings.config import KeypointConfig

CAMERA = StereoCamera(fx=320.0, fy=320.0, cx=319.5, cy=239.5, baseline=0.25, width=640, height=480)


def maps(seed: int = 0) -> dict[str, torch.Tensor]:
    """Smooth random maps: disparity of 4 to 20 px, variances over two decades, flow of a few pixels."""
    generator = torch.Generator().manual_seed(seed)

    def smooth(low: float, high: float, channels: int) -> torch.Tensor:
        coarse = torch.rand((1, channels, 12, 16), generator=generator)
        fine = torch.nn.functional.interpolate(coarse, (480, 640), mode="bicubic", align_corners=True)[0]
        rough = 0.05 * torch.rand(fine.shape, generator=generator)
        return low + (high - low) * (fine + rough).clamp(0, 1)

    return {
        "disparity": smooth(4, 20, 1)[0],
        "disparity_var": 10 ** smooth(-3, -1, 1)[0],
        "flow": smooth(-5, 5, 2),
        "flow_var": 10 ** smooth(-3, -1, 2),
    }


def select(fields: dict[str, torch.Tensor], config: KeypointConfig | None = None, seed: int = 0) -> np.ndarray:
    return select_keypoints(**fields, camera=CAMERA, config=config or KeypointConfig(), seed=seed)


def test_same_input_same_keypoints():
    np.testing.assert_array_equal(select(maps()), select(maps()))


@pytest.mark.parametrize("selector", ["uncertainty", "random"])
def test_every_keypoint_passes_the_filters(selector):
    fields, config = maps(), KeypointConfig(selector=selector, border=20, min_disparity=6.0, max_uncertainty=1.5)
    u, v = select(fields, config).T
    flow_u, flow_v = fields["flow"].numpy()[:, v, u]
    for x, y in ((u, v), (u + flow_u, v + flow_v)):
        assert (x >= 20).all()
        assert (x <= 619).all()
        assert (y >= 20).all()
        assert (y <= 459).all()
    assert (fields["disparity"].numpy()[v, u] >= 6.0).all()
    if selector == "uncertainty":
        disparity_sigma = torch.sqrt(fields["disparity_var"])
        match_sigma = torch.sqrt(fields["flow_var"].sum(0))
        for sigma in (disparity_sigma, match_sigma):
            # The selector's median is taken on a sixteenth of the pixels.
            assert (sigma[v, u] <= 1.5 * sigma.median() * 1.05).all()


def test_keypoints_are_spread_and_suppressed():
    pixels = select(maps(), KeypointConfig(max_uncertainty=100.0))
    assert len(pixels) == 200
    distance = np.abs(pixels[:, None] - pixels[None]).max(axis=-1)
    np.fill_diagonal(distance, 999)
    assert distance.min() > 3  # a 7x7 window holds one minimum
    occupied = np.unique(pixels // np.array([80, 80]), axis=0)
    assert len(occupied) >= 40  # of 8 x 6 = 48 cells


def test_a_certain_patch_is_preferred_to_an_uncertain_one():
    fields = maps()
    fields["flow_var"] = torch.full((2, 480, 640), 0.01)
    fields["flow_var"][:, :, :300] = 1.0
    pixels = select(fields)
    assert (pixels[:, 0] >= 300).mean() > 0.99


def test_plateaus_of_equal_variance_still_give_spread_keypoints():
    fields = {key: torch.ones_like(value) for key, value in maps().items()}
    fields["disparity"] *= 10
    pixels = select(fields, KeypointConfig(count=300))
    assert len(pixels) == 300
    assert len(np.unique(pixels, axis=0)) == 300


def test_nothing_to_choose_from():
    fields = maps()
    fields["disparity"] = torch.zeros((480, 640))
    assert select(fields, KeypointConfig(min_disparity=1.0)).shape == (0, 2)
    fields["flow"] = torch.full((2, 480, 640), 1000.0)  # all of it leaves the image
    assert select(fields).shape == (0, 2)


def test_what_is_far_is_kept():
    fields = maps()
    fields["disparity"] = torch.zeros((480, 640))
    assert len(select(fields)) == 200


def test_random_selection_follows_the_seed():
    config = KeypointConfig(selector="random")
    np.testing.assert_array_equal(select(maps(), config, seed=3), select(maps(), config, seed=3))
    assert not np.array_equal(select(maps(), config, seed=3), select(maps(), config, seed=4))
