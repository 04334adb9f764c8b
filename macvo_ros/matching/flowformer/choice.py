"""From the configuration to a matcher: PyTorch for checkpoints, onnxruntime for exported networks."""

from __future__ import annotations

from pathlib import Path

from macvo_ros.config import Config
from macvo_ros.errors import ConfigError
from macvo_ros.matching.device import choose_device
from macvo_ros.matching.matcher import Matcher


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
