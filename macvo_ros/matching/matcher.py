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

"""The interface every matcher implements, and the choice of one by name."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch

from macvo_ros.errors import ConfigError
from macvo_ros.geometry.interpolation import bilinear
from macvo_ros.images.frame import StereoFrame
from macvo_ros.matching.epipolar_error import RowCheck
from macvo_ros.settings.config import Config
from macvo_ros.uncertainty.error_correlation import ErrorCorrelation
from macvo_ros.uncertainty.row_field import RowField

IGNORED_VARIANCE = 1e8
"""Pixels^2, where nothing may be made of a match (`masked_matcher.py`): a sigma of more pixels than images have, and
finite, so that it can be interpolated."""


@dataclass(frozen=True, eq=False)
class StereoMatch:
    """Dense match of a frame's left image with its right one, float32, on the matcher's device.

    disparity: (H, W) pixels, positive: left pixel (u, v) is right pixel (u - disparity, v).
    disparity_var: (H, W) pixels^2.
    row_check: returns how well the match keeps to its rows, once that is known: it may still be worked on.
    keypoint_disparity_var: (H/s, W/s) pixels^2, on every s-th pixel: what the variance of a keypoint will be once it is
    refined. Keypoints are chosen by it, or by disparity_var where it is None.
    """

    disparity: torch.Tensor
    disparity_var: torch.Tensor
    row_check: Callable[[], RowCheck] = RowCheck
    keypoint_disparity_var: torch.Tensor | None = None


@dataclass(frozen=True, eq=False)
class FlowMatch:
    """Dense match of the reference's left image with the current one, float32, on the matcher's device.

    flow: (2, H, W) pixels (u, v): reference left pixel x is current left pixel x + flow.
    flow_var: (2, H, W) pixels^2, per axis.
    keypoint_flow_var: (2, H/s, W/s) pixels^2, see `StereoMatch`.
    motion: (4, 4) what was expected of the motion (`Prediction`), if anything was.
    """

    flow: torch.Tensor
    flow_var: torch.Tensor
    keypoint_flow_var: torch.Tensor | None = None
    motion: npt.NDArray[np.float64] | None = None


@dataclass(frozen=True, eq=False)
class Match:
    """Dense matches of a frame; pixels are those of the frame that was matched.

    stereo: known, or still worked on: whoever asks for it waits. temporal: None without a reference.
    """

    stereo: StereoMatch | Future[StereoMatch]
    temporal: FlowMatch | None = None

    @property
    def known_stereo(self) -> StereoMatch:
        """The stereo match, as soon as it is known."""
        return self.stereo if isinstance(self.stereo, StereoMatch) else self.stereo.result()

    @property
    def disparity(self) -> torch.Tensor:
        """See `StereoMatch`."""
        return self.known_stereo.disparity

    @property
    def disparity_var(self) -> torch.Tensor:
        """See `StereoMatch`."""
        return self.known_stereo.disparity_var

    @property
    def flow(self) -> torch.Tensor | None:
        """See `FlowMatch`."""
        return None if self.temporal is None else self.temporal.flow

    @property
    def flow_var(self) -> torch.Tensor | None:
        """See `FlowMatch`."""
        return None if self.temporal is None else self.temporal.flow_var

    def row_check(self) -> RowCheck:
        """See `StereoMatch`."""
        return self.known_stereo.row_check()


@dataclass(frozen=True, eq=False)
class Prediction:
    """What is known of the motion before matching, as a seed.

    motion: (4, 4) predicted pose of the current left camera in the reference left camera, metres.
    disparity: (H, W) disparity of the reference frame, pixels (the `Match.disparity` of that frame).
    """

    motion: npt.NDArray[np.float64]
    disparity: torch.Tensor


@dataclass(frozen=True, eq=False)
class PointMatches:
    """Matches at keypoints, float64.

    pixel: (N, 2) keypoints (u, v) in the reference left image, pixels.
    disparity, disparity_var: (N,) at those pixels, pixels and pixels^2.
    flow, flow_var: (N, 2) from reference to current, pixels and pixels^2.
    matched_disparity, matched_disparity_var: (N,) in the current frame at pixel + flow.
    """

    pixel: npt.NDArray[np.float64]
    disparity: npt.NDArray[np.float64]
    disparity_var: npt.NDArray[np.float64]
    flow: npt.NDArray[np.float64]
    flow_var: npt.NDArray[np.float64]
    matched_disparity: npt.NDArray[np.float64]
    matched_disparity_var: npt.NDArray[np.float64]

    def subset(self, keep: npt.NDArray[np.bool_]) -> PointMatches:
        """The keypoints where (N,) `keep` is true."""
        return PointMatches(*(getattr(self, item.name)[keep] for item in fields(self)))

    def in_full_image(self, frame: StereoFrame) -> PointMatches:
        """The same in pixels of the full image that a frame was reduced from."""
        if frame.reduced_from is None:
            return self
        scale = frame.reduction
        return PointMatches(
            frame.to_full(self.pixel),
            self.disparity * scale[0],
            self.disparity_var * scale[0] ** 2,
            self.flow * scale,
            self.flow_var * scale**2,
            self.matched_disparity * scale[0],
            self.matched_disparity_var * scale[0] ** 2,
        )


class Matcher(Protocol):
    """Turns images into dense matches with variances.

    The reference is usually, not always, the frame of the previous call (after a lost frame, or while the camera
    stands still, it is an older one), so a cache of features is keyed by the frame object.
    """

    name: str
    """By which the figures of sound frames are looked up (`doubt/sound_frames.json`), where they were measured."""
    device: torch.device
    work_pixels: int
    """Pixels that frames are reduced to before they are matched (`images/work_size.py`); 0: none are."""
    uses_prediction: bool
    """Whether the result depends on the predicted motion (then it cannot be computed ahead of it)."""
    disparity_correlation: ErrorCorrelation
    """How the errors of neighbouring pixels' disparities are related."""
    flow_correlation: ErrorCorrelation

    def begin(self, current: StereoFrame) -> None:
        """A frame that will be matched next: what does not depend on the prediction may start in the background."""
        ...

    def match(self, reference: StereoFrame | None, current: StereoFrame, prediction: Prediction | None = None) -> Match:
        """Disparity of `current`, and flow from `reference` (if any) to it."""
        ...

    def refine(
        self,
        reference: StereoFrame,
        reference_match: Match,
        current: StereoFrame,
        match: Match,
        pixel: npt.NDArray[np.float64],
        rows: RowField | None = None,
    ) -> PointMatches:
        """The matches at (N, 2) keypoints of the reference, improved, without those that prove wrong.

        pixel: of the frame that was matched. rows: where in the right images matches are; None: on their rows. What is
        returned is in pixels of the full images (`StereoFrame.full`), which are read here; a matcher with
        nothing to add returns `look_up`.
        """
        ...

    def reset(self) -> None:
        """Forget cached frames."""
        ...


def look_up(pixel: npt.NDArray[np.float64], reference: Match, current: Match) -> PointMatches:
    """Read dense matches at (N, 2) keypoints of the reference, and in the current frame where they went.

    All in pixels of the frames that were matched; see `PointMatches.in_full_image`.
    """
    assert current.flow is not None
    assert current.flow_var is not None
    d, d_var = bilinear((reference.disparity, reference.disparity_var), pixel)
    u, v, u_var, v_var = bilinear((*current.flow, *current.flow_var), pixel)
    flow = np.column_stack((u, v))
    matched, matched_var = bilinear((current.disparity, current.disparity_var), pixel + flow)
    return PointMatches(pixel, d, d_var, flow, np.column_stack((u_var, v_var)), matched, matched_var)


def make_matcher(config: Config) -> Matcher:
    """The matcher that the configuration names; `auto` is a choice between the others (`auto.py`)."""
    name = config.matcher
    if name == "auto":
        from macvo_ros.matching.auto import choose_matcher

        name = choose_matcher(config)
    if name == "classic":
        from macvo_ros.matching.classic import ClassicMatcher

        return ClassicMatcher(config.classic, config.stereo.min_depth, config.matching.work_pixels)
    if name == "lite":
        from macvo_ros.matching.lite.matcher import LiteMatcher
        from macvo_ros.matching.lite.network import WEIGHTS, load_network

        network = load_network(Path(config.lite.weights) if config.lite.weights else WEIGHTS)
        return LiteMatcher(network, config.stereo.min_depth, config.matching.work_pixels)
    if name == "flowformer":
        from macvo_ros.matching.flowformer.choice import make_flowformer

        return make_flowformer(config)
    raise ConfigError(f"matcher: expected auto, classic, lite or flowformer, got {config.matcher!r}")
