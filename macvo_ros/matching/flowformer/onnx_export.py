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

"""FlowFormerCov as an ONNX file: both images in, flow and variance out (the paper's TensorRT row starts here)."""

from __future__ import annotations

import inspect
import tempfile
import warnings
from pathlib import Path
from typing import Any

import torch

from macvo_ros.atomic_write import atomic_write
from macvo_ros.errors import ConfigError
from macvo_ros.matching.flowformer.network import FlowFormerCov

INPUTS = ("image1", "image2")
OUTPUTS = ("flow", "variance")
OPSET = 17
NETWORK = "flowformer_cov"


def export_onnx(network: FlowFormerCov, path: str | Path, height: int, width: int, dynamic: bool = False) -> None:
    """Write the network with its number of iterations unrolled.

    Fixed: one pair of `height` x `width` (what TensorRT likes best). Dynamic: any batch and size, `height` and `width`
    only serve as an example. Cost maps are embedded all at once here, not in chunks.
    """
    onnx = require_onnx()
    example = (torch.rand(1, 3, height, width), torch.rand(1, 3, height, width))
    axes = {name: {0: "batch", 2: "height", 3: "width"} for name in (*INPUTS, *OUTPUTS)} if dynamic else None
    # The exporter that works from a trace: in all releases since 2.1 and without further packages.
    tracing: dict[str, Any] = {"dynamo": False} if "dynamo" in inspect.signature(torch.onnx.export).parameters else {}
    perceiver = network.memory_encoder.cost_perceiver_encoder
    chunk, perceiver.memory_mb = perceiver.memory_mb, 0
    try:
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(), torch.inference_mode():
            warnings.simplefilter("ignore")  # the tracer's remarks about shapes; the result is compared with torch
            draft = Path(folder) / "network.onnx"
            torch.onnx.export(
                network.cpu().eval(),
                example,
                str(draft),
                input_names=list(INPUTS),
                output_names=list(OUTPUTS),
                dynamic_axes=axes,
                opset_version=OPSET,
                **tracing,
            )
            model = onnx.load(str(draft))
    finally:
        perceiver.memory_mb = chunk
    onnx.helper.set_model_props(model, {"network": NETWORK, "iterations": str(network.iterations)})
    onnx.checker.check_model(model)
    atomic_write(path, model.SerializeToString())


def largest_difference(network: FlowFormerCov, path: str | Path, height: int, width: int) -> tuple[float, float]:
    """Largest differences of flow (px) and variance (relative) between torch and onnxruntime on a random pair."""
    from macvo_ros.matching.flowformer.onnx_matcher import open_session

    generator = torch.Generator().manual_seed(0)
    first = torch.rand(1, 3, height, width, generator=generator)
    second = torch.roll(first, (1, 2), (2, 3))
    with torch.inference_mode():
        flow, variance = network.cpu().eval()(first, second)
    session = open_session(Path(path), "cpu")
    inputs = dict(zip(INPUTS, (first.numpy(), second.numpy()), strict=True))
    found_flow, found_variance = (torch.from_numpy(array) for array in session.run(list(OUTPUTS), inputs))
    return float((found_flow - flow).abs().max()), float((found_variance / variance - 1).abs().max())


def require_onnx() -> Any:
    """The package onnx, or a message that says how to get it."""
    try:
        import onnx
        import onnx.checker
        import onnx.helper
    except ImportError:
        raise ConfigError("exporting needs the package onnx; pip install onnx onnxruntime") from None
    return onnx
