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

"""The `flowformer` matcher on an exported network: onnxruntime on CPU, CUDA or TensorRT.

Only the CPU provider has been run by us; CUDA and TensorRT are onnxruntime's own, selected by name.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from macvo_ros.errors import ConfigError, WeightsError
from macvo_ros.images.frame import Image, StereoFrame
from macvo_ros.matching.flowformer.matcher import CORRELATION, Flow, as_match, as_tensor
from macvo_ros.matching.flowformer.onnx_export import INPUTS, NETWORK, OUTPUTS
from macvo_ros.matching.flowformer.resolution import inference_size, resize_flow, resize_image
from macvo_ros.matching.matcher import Match, PointMatches, Prediction, look_up
from macvo_ros.settings.config import FlowFormerConfig
from macvo_ros.uncertainty.row_field import RowField

PROVIDERS = {
    "cpu": ["CPUExecutionProvider"],
    "cuda": ["CUDAExecutionProvider", "CPUExecutionProvider"],
    "tensorrt": ["TensorrtExecutionProvider", "CUDAExecutionProvider", "CPUExecutionProvider"],
}


def open_session(path: Path, provider: str) -> Any:
    """An onnxruntime session of an exported FlowFormerCov; other files and absent providers are refused."""
    try:
        import onnxruntime
    except ImportError:
        raise ConfigError("an .onnx file needs onnxruntime; pip install onnxruntime (or onnxruntime-gpu)") from None
    available = onnxruntime.get_available_providers()
    if provider == "auto":
        provider = "cuda" if "CUDAExecutionProvider" in available else "cpu"
    if PROVIDERS[provider][0] not in available:
        raise ConfigError(
            f"flowformer.provider: {provider} is not in this onnxruntime, which has {', '.join(available)}; "
            "use cpu or install onnxruntime-gpu"
        )
    if not path.is_file():
        raise WeightsError(f"{path} does not exist; make it with macvo export onnx")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=PROVIDERS[provider])
    except Exception as error:  # onnxruntime's own exception types share no public base
        raise WeightsError(f"{path} cannot be opened ({' '.join(str(error).split())[:160]}); export it again") from None
    names = tuple(item.name for item in session.get_inputs()), tuple(item.name for item in session.get_outputs())
    if names != (INPUTS, OUTPUTS) or session.get_modelmeta().custom_metadata_map.get("network") != NETWORK:
        raise WeightsError(f"{path} is not an exported FlowFormerCov; make one with macvo export onnx")
    return session


class FlowFormerOnnxMatcher:
    """Runs an exported FlowFormerCov; images are resized to the size of a network exported with a fixed one."""

    work_pixels = 0  # `flowformer.width`, `.height` say what the network sees
    uses_prediction = False
    name = "flowformer"
    disparity_correlation = CORRELATION
    flow_correlation = CORRELATION

    def __init__(self, path: str | Path, config: FlowFormerConfig) -> None:
        self.device = torch.device("cpu")
        self._config = config
        self._session = open_session(Path(path), config.provider)
        self._lock = threading.Lock()
        rows, columns = self._session.get_inputs()[0].shape[2:]
        fixed = isinstance(rows, int) and isinstance(columns, int)
        self._asked = (rows, columns) if fixed else (config.height, config.width)
        if fixed and (config.height or config.width) and (config.height, config.width) != (rows, columns):
            raise ConfigError(
                f"flowformer.height and flowformer.width ask for {config.width}x{config.height}, but {path} was "
                f"exported for {columns}x{rows}; set both to 0 or export it again"
            )

    def begin(self, current: StereoFrame) -> None:
        """See `Matcher.begin`: nothing starts before it is asked for."""

    def match(self, reference: StereoFrame | None, current: StereoFrame, prediction: Prediction | None = None) -> Match:
        """See `Matcher.match`. The network needs no prediction."""
        with self._lock:
            stereo = self._flow(current.left, current.right)
            temporal = None if reference is None else self._flow(reference.left, current.left)
            return as_match(stereo, temporal, current.masked)

    def refine(
        self,
        reference: StereoFrame,
        reference_match: Match,
        current: StereoFrame,
        match: Match,
        pixel: npt.NDArray[np.float64],
        rows: RowField | None = None,
    ) -> PointMatches:
        """The dense matches are all there is."""
        return look_up(pixel, reference_match, match).in_full_image(reference)

    def reset(self) -> None:
        """Nothing is kept between frames."""

    def _flow(self, first: Image, second: Image) -> Flow:
        height, width = first.shape[:2]
        size = inference_size(height, width, *self._asked)
        images = (resize_image(as_tensor(image, self.device), *size).numpy() for image in (first, second))
        flow, variance = self._session.run(list(OUTPUTS), dict(zip(INPUTS, images, strict=True)))
        return resize_flow(torch.from_numpy(flow), torch.from_numpy(variance), height, width)
