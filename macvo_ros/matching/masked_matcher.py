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

"""A matcher that knows nothing of what is masked: there its matches are worth nothing.

Keypoints, consistency checks and the seed of a search all go by the variance of matches, so one that says "unknown"
keeps masked pixels out of all of them.
"""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
import numpy.typing as npt
import torch

from macvo_ros.images.frame import StereoFrame
from macvo_ros.matching.matcher import IGNORED_VARIANCE, Match, PointMatches, Prediction
from macvo_ros.matching.wrapped_matcher import WrappedMatcher
from macvo_ros.uncertainty.row_field import RowField

Mask = npt.NDArray[np.bool_]


class MaskedMatcher(WrappedMatcher):
    """A matcher for frames with a mask."""

    def match(self, reference: StereoFrame | None, current: StereoFrame, prediction: Prediction | None = None) -> Match:
        """See `Matcher.match`: variances under the mask, and of flow that leads there, are IGNORED_VARIANCE."""
        match = super().match(reference, current, prediction)
        if current.masked is None:
            return match
        stereo, temporal = match.known_stereo, match.temporal
        stereo = replace(
            stereo,
            disparity_var=_ignored(stereo.disparity_var, current.masked),
            keypoint_disparity_var=_ignored_if_any(stereo.keypoint_disparity_var, current.masked),
        )
        if temporal is not None and reference is not None and reference.masked is not None:
            hidden = reference.masked | _leads_to(current.masked, temporal.flow)
            temporal = replace(
                temporal,
                flow_var=_ignored(temporal.flow_var, hidden),
                keypoint_flow_var=_ignored_if_any(temporal.keypoint_flow_var, hidden),
            )
        return Match(stereo, temporal)

    def refine(
        self,
        reference: StereoFrame,
        reference_match: Match,
        current: StereoFrame,
        match: Match,
        pixel: npt.NDArray[np.float64],
        rows: RowField | None = None,
    ) -> PointMatches:
        """See `Matcher.refine`; keypoints that went behind the mask are left out."""
        points = super().refine(reference, reference_match, current, match, pixel, rows)
        masked = current.full.masked
        if masked is None:
            return points
        column, row = np.rint(points.pixel + points.flow).astype(np.intp).T
        height, width = masked.shape
        return points.subset(~masked[np.clip(row, 0, height - 1), np.clip(column, 0, width - 1)])


def _ignored_if_any(variance: torch.Tensor | None, hidden: Mask) -> torch.Tensor | None:
    return None if variance is None else _ignored(variance, hidden)


def _ignored(variance: torch.Tensor, hidden: Mask) -> torch.Tensor:
    """A copy of (..., h, w) variances, of every s-th pixel, that are unknown where the (H, W) mask is."""
    stride = hidden.shape[0] // variance.shape[-2]
    rows, columns = variance.shape[-2:]
    at = hidden[stride // 2 : stride * rows : stride, stride // 2 : stride * columns : stride]
    return variance.masked_fill(torch.from_numpy(np.ascontiguousarray(at)).to(variance.device), IGNORED_VARIANCE)


def _leads_to(masked: Mask, flow: torch.Tensor) -> Mask:
    """(H, W) whether the (2, H, W) flow of a pixel ends under the mask."""
    rows, columns = masked.shape
    u, v = flow.numpy(force=True)
    u = u + np.arange(columns, dtype=np.float32)
    v = v + np.arange(rows, dtype=np.float32)[:, None]
    return np.asarray(cv2.remap(masked.astype(np.uint8), u, v, cv2.INTER_NEAREST) > 0)
