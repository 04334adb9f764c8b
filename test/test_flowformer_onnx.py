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

"""The exported network: same numbers as torch, at any size where that was asked for."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pytest
import torch
from flowformer_weights import named_network, named_state, one_thread, waves

from macvo_ros.commands import export as command
from macvo_ros.errors import ConfigError, WeightsError
from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.images.frame import StereoFrame
from macvo_ros.matching.flowformer.matcher import FlowFormerMatcher
from macvo_ros.matching.flowformer.onnx_matcher import FlowFormerOnnxMatcher, open_session
from macvo_ros.matching.matcher import make_matcher
from macvo_ros.matching.weights_file import write_safetensors
from macvo_ros.settings.config import Config, FlowFormerConfig

onnx = pytest.importorskip("onnx", reason='pip install "macvo_ros[onnx]" to run this')
pytest.importorskip("onnxruntime", reason='pip install "macvo_ros[onnx]" to run this')

__all__ = ["one_thread"]


def export(folder: Path, *options: str) -> Path:
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers())
    write_safetensors(folder / "weights.safetensors", named_state(), {})
    path = folder / "network.onnx"
    args = parser.parse_args(["export", "onnx", str(folder / "weights.safetensors"), str(path), *options])
    assert args.run(args) == 0
    return path


@pytest.fixture(scope="module")
def dynamic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    options = ("--size", "64x48", "--iterations", "4", "--dynamic", "--no-check")
    return export(tmp_path_factory.mktemp("dynamic"), *options)


def frame(height: int, width: int, shift: float) -> StereoFrame:
    camera = StereoCamera(fx=80.0, fy=80.0, cx=40.0, cy=30.0, baseline=0.1, width=width, height=height)
    left, right = (
        np.round(waves(height, width, s)[0].permute(1, 2, 0).numpy() * 255).astype(np.uint8) for s in (shift, shift - 3)
    )
    return StereoFrame(left, right, int(shift * 1e8), camera)


def test_exported_network_matches_like_torch_at_sizes_it_has_not_seen(dynamic: Path) -> None:
    settings = FlowFormerConfig(weights=str(dynamic), provider="cpu")
    exported = make_matcher(Config(matcher="flowformer", flowformer=settings))
    assert isinstance(exported, FlowFormerOnnxMatcher)
    torch_matcher = FlowFormerMatcher(named_network(), FlowFormerConfig(iterations=4), torch.device("cpu"))
    for height, width in ((61, 83), (96, 64)):
        earlier, now = frame(height, width, 0), frame(height, width, 1.5)
        found, expected = exported.match(earlier, now), torch_matcher.match(earlier, now)
        assert found.flow is not None
        assert expected.flow is not None
        assert (found.disparity - expected.disparity).abs().max() < 1e-3
        assert (found.flow - expected.flow).abs().max() < 1e-3
        assert (found.disparity_var / expected.disparity_var - 1).abs().max() < 1e-3
    assert exported.match(None, now).flow is None


def test_fixed_size_sets_the_size_of_the_images(tmp_path: Path) -> None:
    path = export(tmp_path, "--size", "56x40", "--iterations", "1")
    now = frame(80, 84, 1.0)
    exported = FlowFormerOnnxMatcher(path, FlowFormerConfig())
    config = FlowFormerConfig(iterations=1, height=40, width=56)
    expected = FlowFormerMatcher(named_network(), config, torch.device("cpu")).match(None, now)
    assert (exported.match(None, now).disparity - expected.disparity).abs().max() < 1e-3
    with pytest.raises(ConfigError, match="exported for 56x40"):
        FlowFormerOnnxMatcher(path, FlowFormerConfig(width=64))


def test_other_files_and_providers_are_refused(tmp_path: Path) -> None:
    (tmp_path / "text.onnx").write_text("not a network")
    with pytest.raises(WeightsError, match="cannot be opened"):
        open_session(tmp_path / "text.onnx", "cpu")
    with pytest.raises(WeightsError, match="does not exist"):
        open_session(tmp_path / "none.onnx", "cpu")
    value = onnx.helper.make_tensor_value_info("image1", onnx.TensorProto.FLOAT, [1])
    result = onnx.helper.make_tensor_value_info("flow", onnx.TensorProto.FLOAT, [1])
    graph = onnx.helper.make_graph([onnx.helper.make_node("Identity", ["image1"], ["flow"])], "g", [value], [result])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, str(tmp_path / "other.onnx"))
    with pytest.raises(WeightsError, match="not an exported FlowFormerCov"):
        open_session(tmp_path / "other.onnx", "cpu")
    import onnxruntime

    if "TensorrtExecutionProvider" not in onnxruntime.get_available_providers():
        with pytest.raises(ConfigError, match="tensorrt is not in this onnxruntime"):
            open_session(tmp_path / "other.onnx", "tensorrt")
