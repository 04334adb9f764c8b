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

"""The `flowformer` matcher: the paper's network on the stereo pair and on the temporal pair."""

from __future__ import annotations

import threading
from functools import partial

import numpy as np
import numpy.typing as npt
import torch

from macvo_ros.errors import ConfigError
from macvo_ros.images.frame import Image, StereoFrame
from macvo_ros.matching.epipolar_error import RowCheck, dense_epipolar_variance
from macvo_ros.matching.flowformer.network import Encoded, FlowFormerCov, crop
from macvo_ros.matching.flowformer.resolution import inference_size, resize_flow, resize_image
from macvo_ros.matching.matcher import FlowMatch, Match, PointMatches, Prediction, StereoMatch, look_up
from macvo_ros.settings.config import FlowFormerConfig
from macvo_ros.uncertainty.error_correlation import ErrorCorrelation
from macvo_ros.uncertainty.row_field import RowField

Flow = tuple[torch.Tensor, torch.Tensor]
"""Flow (1, 2, H, W), pixels, and its variance, pixels^2."""

CORRELATION = ErrorCorrelation(share=0.3, length=30.0)
"""Of neighbouring errors. That of the classic matcher: not measured, since no trained weights come with the package."""


def as_tensor(image: Image, device: torch.device) -> torch.Tensor:
    """(H, W) grey or (H, W, 3) RGB of uint8 to (1, 3, H, W) in [0, 1]; grey is repeated."""
    pixels = torch.from_numpy(image).to(device)
    channels = pixels.expand(3, *pixels.shape) if pixels.ndim == 2 else pixels.permute(2, 0, 1)
    return channels[None].float() / 255


def as_match(stereo: Flow, temporal: Flow | None, masked: npt.NDArray[np.bool_] | None = None) -> Match:
    """The two flows as matches; masked: (H, W) where the image is no evidence of its rectification.

    Disparity is -u of the stereo flow, not |u| as in the authors' code: a match to the wrong side stays a negative
    disparity, which nobody takes for a near point.
    """
    disparity, disparity_var = -stereo[0][0, 0], stereo[1][0, 0]
    vertical, vertical_var = (part[0, 1].float().cpu().numpy() for part in stereo)
    if masked is not None:
        vertical_var = np.where(masked, np.float32(np.inf), vertical_var)
    row_check = partial(RowCheck, dense_epipolar_variance(vertical, vertical_var))
    found = StereoMatch(disparity, disparity_var, row_check)
    return Match(found, None if temporal is None else FlowMatch(temporal[0][0], temporal[1][0]))


class FlowFormerMatcher:
    """Runs FlowFormerCov with PyTorch. Calls from several threads are taken one after the other.

    Features and context of a left image are kept for the next call, where it is the first image of the temporal pair.
    On CUDA both pairs run as one batch, on a CPU one after the other (half the memory, same speed).
    """

    work_pixels = 0  # `flowformer.width`, `.height` say what the network sees
    uses_prediction = False
    name = "flowformer"
    disparity_correlation = CORRELATION
    flow_correlation = CORRELATION

    def __init__(self, network: FlowFormerCov, config: FlowFormerConfig, device: torch.device) -> None:
        self.device = device
        self.batched = device.type == "cuda"
        self._config = config
        self._network = network.to(device).eval().requires_grad_(False)
        self._network.iterations = config.iterations or (4 if config.mode == "fast" else 12)
        self._network.memory_encoder.cost_perceiver_encoder.memory_mb = config.memory_mb
        self._encoded: dict[int, tuple[StereoFrame, Encoded]] = {}
        self._lock = threading.Lock()
        if config.compile:
            compile_network(self._network)

    def begin(self, current: StereoFrame) -> None:
        """See `Matcher.begin`: nothing starts before it is asked for."""

    def match(self, reference: StereoFrame | None, current: StereoFrame, prediction: Prediction | None = None) -> Match:
        """See `Matcher.match`. The network needs no prediction."""
        try:
            return self._match(reference, current)
        except RuntimeError as error:
            if not self._config.compile:
                raise
            reason = " ".join(str(error).split())[:160]
            raise ConfigError(f"the compiled network failed ({reason}); set flowformer.compile to false") from error

    def _match(self, reference: StereoFrame | None, current: StereoFrame) -> Match:
        with (
            self._lock,
            torch.inference_mode(),
            torch.autocast(self.device.type, torch.bfloat16, enabled=self._config.mode == "fast"),
        ):
            left = self._left(current)
            right = self._encode(current.right, with_context=False)
            pairs = [(left, right)] if reference is None else [(left, right), (self._left(reference), left)]
            flows = self._flows(pairs, current.camera.height, current.camera.width)
            keep = {id(frame) for frame in (reference, current)}
            self._encoded = {key: entry for key, entry in self._encoded.items() if key in keep}
            return as_match(flows[0], flows[1] if reference is not None else None, current.masked)

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
        """Forget the features of earlier frames."""
        with self._lock:
            self._encoded.clear()

    def _left(self, frame: StereoFrame) -> Encoded:
        if id(frame) not in self._encoded:
            self._encoded[id(frame)] = frame, self._encode(frame.left, with_context=True)
        return self._encoded[id(frame)][1]

    def _encode(self, image: Image, with_context: bool) -> Encoded:
        height, width = image.shape[:2]
        size = inference_size(height, width, self._config.height, self._config.width)
        return self._network.encode(resize_image(as_tensor(image, self.device), *size), with_context)

    def _flows(self, pairs: list[tuple[Encoded, Encoded]], height: int, width: int) -> list[Flow]:
        if self.batched:
            sources, targets = zip(*pairs, strict=True)
            flow, variance = self._network.match(_stack(sources), _stack(targets, with_context=False))
            raw = list(zip(flow.split(1), variance.split(1), strict=True))  # type: ignore[no-untyped-call]
        else:
            raw = [self._network.match(source, target) for source, target in pairs]
        rows, columns = inference_size(height, width, self._config.height, self._config.width)
        cropped = [(crop(flow, rows, columns), crop(variance, rows, columns)) for flow, variance in raw]
        return [resize_flow(flow, variance, height, width) for flow, variance in cropped]


def _stack(images: tuple[Encoded, ...], with_context: bool = True) -> Encoded:
    features = torch.cat([image.features for image in images])
    contexts = [image.context for image in images if image.context is not None]
    return Encoded(features, torch.cat(contexts) if with_context else None)


def compile_network(network: FlowFormerCov, backend: str = "inductor") -> None:
    """Compile the parts that are called often, in place; they are translated when they first run."""
    if not hasattr(network, "compile"):
        raise ConfigError("flowformer.compile needs PyTorch 2.2 or later; set it to false")
    parts = [network.memory_encoder.feat_encoder, network.context_encoder, network.memory_decoder]
    for part in [*parts, *network.memory_encoder.cost_perceiver_encoder.vertical_encoder_layers]:
        part.compile(backend=backend, dynamic=False)
