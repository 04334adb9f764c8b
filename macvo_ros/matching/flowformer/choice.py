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

"""From the configuration to a matcher: PyTorch for checkpoints, onnxruntime for exported networks."""

from __future__ import annotations

from pathlib import Path

from macvo_ros.errors import ConfigError
from macvo_ros.matching.device import choose_device
from macvo_ros.matching.matcher import Matcher
from macvo_ros.settings.config import Config


def make_flowformer(config: Config) -> Matcher:
    """The matcher for `flowformer.weights`."""
    settings = config.flowformer
    if not settings.weights:
        raise ConfigError(
            "flowformer.weights: expected the path of a checkpoint (.pth, .safetensors) or of an exported network "
            "(.onnx); docs/flowformer.md says where the authors publish theirs"
        )
    path = Path(settings.weights).expanduser()
    if path.suffix == ".onnx":
        from macvo_ros.matching.flowformer.onnx_matcher import FlowFormerOnnxMatcher

        return FlowFormerOnnxMatcher(path, settings)
    from macvo_ros.matching.flowformer.checkpoint import load_checkpoint
    from macvo_ros.matching.flowformer.matcher import FlowFormerMatcher

    return FlowFormerMatcher(load_checkpoint(path), settings, choose_device(config.device))
