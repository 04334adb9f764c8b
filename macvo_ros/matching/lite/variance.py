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

"""Variances of a match from the evidence about it: the network of `lite` at work, in PyTorch or compiled."""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt
import torch

from macvo_ros.matching.lite.network import LIMITS, LiteNetwork, packed_weights
from macvo_ros.matching.native.library import kernels

Float32 = npt.NDArray[np.float32]

_GROUP = 16
"""Channels that the compiled network does at once: its first level has as many, the others multiples of it."""


class VarianceNetwork:
    """A trained network as it is; weights that change later are not seen."""

    def __init__(self, network: LiteNetwork) -> None:
        self._network = network
        self._weights = packed_weights(network)
        self._widths = np.array(network.widths, np.int64)

    def __call__(self, evidence: Float32) -> Float32:
        """(C, h, w) evidence to (4, h, w) variances (`network.OUTPUTS`), pixels^2."""
        native = kernels()
        if native is None or self._widths[0] != _GROUP or (self._widths % _GROUP).any():
            return self._in_torch(evidence)
        variance = np.empty((4, *evidence.shape[1:]), np.float32)
        native("macvo_lite_network", evidence, *evidence.shape, self._weights, self._widths, *LIMITS, variance)
        return variance

    @torch.inference_mode()
    def _in_torch(self, evidence: Float32) -> Float32:
        rows, columns = evidence.shape[-2:]
        even = evidence
        if rows % 2 or columns % 2:
            even = np.pad(evidence, ((0, 0), (0, rows % 2), (0, columns % 2)), mode="edge")
        # Channels last, as its convolutions want them; cv2.merge is three times as fast as torch at it.
        log_sigma = self._network(torch.from_numpy(cv2.merge(list(even)))[None].permute(0, 3, 1, 2))
        return np.asarray(torch.exp(2 * log_sigma)[0, :, :rows, :columns].contiguous().numpy())
