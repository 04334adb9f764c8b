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

"""The flowformer matcher: what it computes once, sizes and modes, and what it refuses."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from flowformer_weights import named_network, named_state, one_thread, waves

from macvo_ros.errors import ConfigError, WeightsError
from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.images.frame import Image, StereoFrame
from macvo_ros.matching.device import choose_device
from macvo_ros.matching.flowformer import FlowFormerCov
from macvo_ros.matching.flowformer.matcher import FlowFormerMatcher, as_tensor, compile_network
from macvo_ros.matching.flowformer.resolution import inference_size, resize_flow, resize_image
from macvo_ros.matching.matcher import FlowMatch, Match, StereoMatch, make_matcher
from macvo_ros.matching.weights_file import write_safetensors
from macvo_ros.odometry.pipelined_odometry import MatchAhead
from macvo_ros.settings.config import Config, FlowFormerConfig

__all__ = ["one_thread"]
CPU = torch.device("cpu")
HEIGHT, WIDTH = 60, 84


@pytest.fixture(scope="module")
def network() -> FlowFormerCov:
    return named_network()


def picture(shift: float) -> Image:
    return np.round(waves(HEIGHT, WIDTH, shift)[0].permute(1, 2, 0).numpy() * 255).astype(np.uint8)


def frame(shift: float, grey: bool = False) -> StereoFrame:
    camera = StereoCamera(fx=80.0, fy=80.0, cx=41.5, cy=29.5, baseline=0.1, width=WIDTH, height=HEIGHT)
    left, right = picture(shift), picture(shift - 3)
    return StereoFrame(left[..., 0] if grey else left, right[..., 0] if grey else right, int(shift * 1e8), camera)


def matcher_of(network: FlowFormerCov, **settings: object) -> FlowFormerMatcher:
    return FlowFormerMatcher(network, FlowFormerConfig(**{"iterations": 2, **settings}), CPU)  # type: ignore[arg-type]


def assert_same(found: Match, expected: Match, tolerance: float = 1e-5) -> None:
    for name in ("disparity", "disparity_var", "flow", "flow_var"):
        assert (getattr(found, name) - getattr(expected, name)).abs().max() <= tolerance, name


def test_match_is_the_network_on_both_pairs(network: FlowFormerCov) -> None:
    earlier, now = frame(0), frame(1.5)
    match = matcher_of(network).match(earlier, now)
    with torch.inference_mode():
        stereo, stereo_var = network(as_tensor(now.left, CPU), as_tensor(now.right, CPU))
        flow, flow_var = network(as_tensor(earlier.left, CPU), as_tensor(now.left, CPU))
    assert_same(match, Match(StereoMatch(-stereo[0, 0], stereo_var[0, 0]), FlowMatch(flow[0], flow_var[0])))
    assert match.disparity.shape == (HEIGHT, WIDTH)
    assert match.flow is not None
    assert match.flow.shape == (2, HEIGHT, WIDTH)


def test_batched_pairs_give_the_same(network: FlowFormerCov) -> None:
    earlier, now = frame(0), frame(1.5)
    matcher = matcher_of(network)
    one_by_one = matcher.match(earlier, now)
    matcher.batched = True
    assert_same(matcher.match(earlier, now), one_by_one)
    first = matcher.match(None, now)
    assert first.flow is None
    assert (first.disparity - one_by_one.disparity).abs().max() < 1e-5


def test_each_left_image_is_encoded_once(network: FlowFormerCov, monkeypatch: pytest.MonkeyPatch) -> None:
    frames = [frame(shift) for shift in (0, 1, 2, 3)]
    matcher = matcher_of(network, iterations=1)
    contexts: list[bool] = []
    encode = network.encode

    def counted(image: torch.Tensor, with_context: bool = True):  # type: ignore[no-untyped-def]
        contexts.append(with_context)
        return encode(image, with_context)

    monkeypatch.setattr(network, "encode", counted)
    matcher.match(None, frames[0])
    matcher.match(frames[0], frames[1])
    kept = matcher.match(frames[0], frames[2])  # the reference stays where it was
    assert contexts == [True, False] * 3
    fresh = matcher_of(network, iterations=1).match(frames[0], frames[2])
    assert_same(kept, fresh, tolerance=0)
    contexts.clear()
    matcher.match(frames[1], frames[3])  # forgotten meanwhile: encoded again, with the right features
    assert sorted(contexts) == [False, True, True]
    matcher.reset()
    contexts.clear()
    matcher.match(None, frames[3])
    assert contexts == [True, False]


def test_grey_is_seen_as_colour(network: FlowFormerCov) -> None:
    now = frame(1, grey=True)
    colour = StereoFrame(np.dstack([now.left] * 3), np.dstack([now.right] * 3), now.stamp, now.camera)
    matcher = matcher_of(network, iterations=1)
    assert torch.equal(matcher.match(None, now).disparity, matcher.match(None, colour).disparity)


def test_other_threads_get_the_same(network: FlowFormerCov) -> None:
    frames = [frame(shift) for shift in (0, 1, 2)]
    matcher = matcher_of(network, iterations=1)
    expected = [matcher.match(frames[0], now) for now in frames[1:]]
    found: dict[int, Match] = {}
    threads = [
        threading.Thread(target=lambda i=i: found.__setitem__(i, matcher.match(frames[0], frames[i + 1])))
        for i in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i in range(2):
        assert_same(found[i], expected[i], tolerance=0)


def test_modes_set_iterations_and_precision(network: FlowFormerCov) -> None:
    accurate, fast = matcher_of(network, iterations=0), matcher_of(named_network(), iterations=0, mode="fast")
    assert accurate._network.iterations == 12
    assert fast._network.iterations == 4
    earlier, now = frame(0), frame(1.5)
    half = fast.match(earlier, now)
    full = matcher_of(network, iterations=4).match(earlier, now)
    assert half.disparity.dtype == half.disparity_var.dtype == torch.float32
    difference = (half.disparity - full.disparity).abs()
    assert 0 < difference.max() < 0.3
    assert (half.disparity_var / full.disparity_var - 1).abs().max() < 0.1


def test_inference_size_scales_the_result_back(network: FlowFormerCov) -> None:
    now = frame(1)
    match = matcher_of(network, iterations=1, height=40, width=42).match(None, now)
    small = [resize_image(as_tensor(image, CPU), 40, 42) for image in (now.left, now.right)]
    network.iterations = 1
    with torch.inference_mode():
        flow, variance = network(*small)
    assert match.disparity.shape == (HEIGHT, WIDTH)
    # The mean survives bilinear interpolation but for the borders; pixels are twice as wide in the small image.
    assert float(match.disparity.mean()) == pytest.approx(-2 * float(flow[0, 0].mean()), rel=0.02, abs=0.02)
    assert float(match.disparity_var.mean()) == pytest.approx(4 * float(variance[0, 0].mean()), rel=0.02)


def test_resized_flow_points_to_the_same_place() -> None:
    # An affine motion of the small image, written in its pixels (centres at integers) ...
    rows, columns, height, width = 20, 30, 50, 90
    y, x = torch.meshgrid(torch.arange(rows) * 1.0, torch.arange(columns) * 1.0, indexing="ij")
    flow = torch.stack([0.1 * x - 1, 0.2 * y + 0.5])[None]
    found, variance = resize_flow(flow, torch.full_like(flow, 0.25), height, width)
    # ... must take each pixel of the large one where the small one says.
    big_y, big_x = torch.meshgrid(torch.arange(height) * 1.0, torch.arange(width) * 1.0, indexing="ij")
    small_x, small_y = (big_x + 0.5) * columns / width - 0.5, (big_y + 0.5) * rows / height - 0.5
    expected = torch.stack([(0.1 * small_x - 1) * width / columns, (0.2 * small_y + 0.5) * height / rows])[None]
    inside = (..., slice(3, -3), slice(3, -3))
    assert torch.allclose(found[inside], expected[inside], atol=1e-4)
    assert torch.allclose(variance[0, 0], torch.tensor(0.25 * 9.0))
    assert torch.allclose(variance[0, 1], torch.tensor(0.25 * 6.25))


def test_sizes() -> None:
    assert inference_size(480, 640) == (480, 640)
    assert inference_size(480, 640, asked_width=320) == (240, 320)
    assert inference_size(480, 640, asked_height=360) == (360, 480)
    assert inference_size(480, 640, 400, 400) == (400, 400)
    with pytest.raises(ConfigError, match="at least"):
        inference_size(480, 640, asked_width=40)


@pytest.mark.parametrize("name", ["gpu", "cuda:99", "meta", ""])
def test_devices_that_are_not_there_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="device"):
        choose_device(name)


def test_the_configuration_makes_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"flowformer.weights: expected the path"):
        make_matcher(Config(matcher="flowformer"))
    with pytest.raises(WeightsError, match="does not exist"):
        make_matcher(Config(matcher="flowformer", flowformer=FlowFormerConfig(weights=str(tmp_path / "none.pth"))))
    path = tmp_path / "flowformer.safetensors"
    write_safetensors(path, named_state(), {})
    settings = FlowFormerConfig(weights=str(path), iterations=1)
    matcher = make_matcher(Config(matcher="flowformer", device="cpu", flowformer=settings))
    assert isinstance(matcher, FlowFormerMatcher)
    assert matcher.match(None, frame(0)).disparity.isfinite().all()


def test_compiled_network_gives_the_same(network: FlowFormerCov) -> None:
    other = named_network(iterations=2)
    compile_network(other, backend="eager")  # traces all parts, without minutes of a C++ compiler
    first, second = waves(40, 48), waves(40, 48, 1.0)
    network.iterations = 2
    with torch.inference_mode():
        for found, expected in zip(other(first, second), network(first, second), strict=True):
            assert (found - expected).abs().max() < 1e-5


def test_matching_ahead_gives_the_same_bits(network: FlowFormerCov) -> None:
    """The paper's parallel mode: a pair matched in the other thread, and one nobody prepared."""
    frames = [frame(0), frame(1.5), frame(3.0)]
    plain = matcher_of(network)
    expected = [plain.match(a, b) for a, b in ((frames[0], frames[1]), (frames[1], frames[2]), (frames[0], frames[2]))]
    ahead = MatchAhead(matcher_of(network))
    ahead.prepare(frames[0], frames[1])
    ahead.prepare(frames[1], frames[2])
    found = [ahead.match(a, b) for a, b in ((frames[0], frames[1]), (frames[1], frames[2]), (frames[0], frames[2]))]
    ahead.close()
    for mine, other in zip(found, expected, strict=True):
        assert_same(mine, other, tolerance=0.0)
