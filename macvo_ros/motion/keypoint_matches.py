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

"""Keypoints with their matches: chosen by uncertainty (paper III-B), looked up in the dense maps, refined."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np
import torch

from macvo_ros.images.frame import StereoFrame
from macvo_ros.matching.matcher import Match, Matcher, PointMatches
from macvo_ros.motion.keypoints import select_keypoints
from macvo_ros.settings.config import Config
from macvo_ros.uncertainty.row_field import RowField


class TooFewPoints(Exception):
    """There are not enough keypoints to speak of a motion."""

    stereo_at_fault = False
    """Those that there are lack a depth, which they had in the reference."""


@dataclass(frozen=True, eq=False)
class MatchedFrames:
    """Two frames with their dense matches; match: of the current frame, with the flow from the reference to it."""

    reference: StereoFrame
    reference_match: Match
    current: StereoFrame
    match: Match


class Laps:
    """Seconds of each stage, one after the other."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._begun = time.perf_counter()

    def end(self, stage: str) -> None:
        """A stage ends here, and the next begins."""
        now = time.perf_counter()
        self.seconds[stage], self._begun = now - self._begun, now


def match_keypoints(
    config: Config, matcher: Matcher, frames: MatchedFrames, rows: RowField | None, laps: Laps
) -> tuple[PointMatches, int]:
    """Choose keypoints in the reference and find them in the other three images, in pixels of the full ones.

    rows: see `Matcher.refine`. Returns those that were found, and how many were chosen.
    """
    reference, current = frames.reference_match, frames.match
    flow = current.temporal
    assert flow is not None
    needed = config.pose.min_points
    pixel = select_keypoints(
        reference.disparity,
        _first(reference.known_stereo.keypoint_disparity_var, reference.disparity_var),
        flow.flow,
        _first(flow.keypoint_flow_var, flow.flow_var),
        frames.current.camera,
        replace(config.keypoints, min_disparity=config.keypoints.min_disparity / frames.current.reduction[0]),
        config.seed,
    ).astype(np.float64)
    if len(pixel) < needed:
        raise TooFewPoints(f"{len(pixel)} keypoints passed the filters, {needed} are needed")
    laps.end("select")
    points = matcher.refine(frames.reference, reference, frames.current, current, pixel, rows)
    if config.keypoints.min_disparity > 0:
        shift = points.matched_disparity - frames.current.full.camera.disparity_offset
        points = points.subset(shift > 0.5 * config.keypoints.min_disparity)
    if len(points.pixel) < needed:
        raise TooFewPoints(f"{len(points.pixel)} of {len(pixel)} keypoints are found again, {needed} are needed")
    laps.end("refine")
    return points, len(pixel)


def _first(better: torch.Tensor | None, otherwise: torch.Tensor) -> torch.Tensor:
    return otherwise if better is None else better
