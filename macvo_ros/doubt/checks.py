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

"""The checks on a measured motion: what each says of a frame, as a figure that is small on sound frames."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from macvo_ros.doubt.consistency import Outliers, appearance_mismatch, find_flow_outliers
from macvo_ros.doubt.second_motion import SecondMotion, find_second_motion
from macvo_ros.images.frame import StereoFrame
from macvo_ros.matching.epipolar_error import RowCheck
from macvo_ros.matching.matcher import Match
from macvo_ros.motion.covariance import beyond_infinity, depth_is_linear, lost_depth
from macvo_ros.motion.two_frame import METRIC, TwoFrameResult
from macvo_ros.settings.config import Config

Float64 = npt.NDArray[np.float64]

STEREO = ("epipolar_error", "unconfirmed_stereo")
"""Checks on the stereo match: where one of them speaks, the frame's depths are no measurement."""


@dataclass(frozen=True)
class Checks:
    """Figures of one frame; what is usual for each is measured by `python -m bench.sound_frames`.

    residuals: mean squared residual of the inliers per degree of freedom (1: as promised).
    epipolar_error: by how much stereo matches leave their rows beyond what is usual for these cameras, pixels.
    unconfirmed_stereo: by how much more of the image's corners have no confirmed stereo match than is usual (0 to 1).
    missing_keypoints: the part (0 to 1) of the chosen keypoints that were not found again in all four images, or whose
    depth was well known and is not.
    rejected_keypoints: the part of those found, and of known depth, that contradict the motion, and agree on no second
    one; beyond infinity any.
    flow_outliers: the part of the certain matches of the image that contradict the motion, likewise.
    appearance_mismatch: the part of the image's texture that does not look as the motion predicts.
    second_motion: the part of the image, or of the keypoints, that agrees on another motion; 0: there is none.
    """

    residuals: float
    epipolar_error: float
    unconfirmed_stereo: float
    missing_keypoints: float
    rejected_keypoints: float
    flow_outliers: float
    appearance_mismatch: float
    second_motion: float

    @staticmethod
    def names() -> tuple[str, ...]:
        """Of the checks, in order."""
        return tuple(field.name for field in fields(Checks))


def run_checks(
    config: Config,
    frames: tuple[StereoFrame, StereoFrame],
    matches: tuple[Match, Match],
    result: TwoFrameResult,
    predicted: Float64,
    usual: RowCheck,
) -> tuple[Checks, SecondMotion | None]:
    """Check the motion of a result; frames, matches: the reference's and the current one's; predicted: (4, 4) motion.

    usual: how well the stereo matches of these cameras keep to their rows (`RectificationMonitor`).
    """
    camera, motion = frames[1].camera, result.solution.motion
    metric = config.covariance.model in METRIC  # else residuals say nothing
    outliers = find_flow_outliers(camera, *matches, motion)
    full = frames[1].full.camera
    known = depth_is_linear(full, result.points)
    impossible = beyond_infinity(full, result.points)
    rejected = impossible | (known & ~result.solution.inlier)
    keypoints = frames[0].from_full(result.landmarks.pixel - result.flow)
    disagree = Outliers(float(rejected.sum() / max((known | impossible).sum(), 1)), keypoints[rejected])
    second = find_second_motion(config, camera, matches, (disagree, outliers), predicted)
    passing = (0.0, 0.0) if second is None else second.agree
    images = frames[0].grey[0], frames[1].grey[0]
    mismatch = appearance_mismatch(camera, images, matches[0], motion, frames[1].masked)
    rows = matches[1].row_check()
    checks = Checks(
        residuals=result.solution.chi2 if metric else 0.0,
        epipolar_error=math.sqrt(max(rows.epipolar_var - usual.epipolar_var, 0.0)),
        unconfirmed_stereo=max(rows.unconfirmed - usual.unconfirmed, 0.0),
        missing_keypoints=1.0 - len(rejected) / result.chosen * (1.0 - lost_depth(full, result.points)),
        rejected_keypoints=max(disagree.share - passing[0], 0.0) if metric else 0.0,
        flow_outliers=max(outliers.share - passing[1], 0.0),
        appearance_mismatch=mismatch,
        second_motion=0.0 if second is None or not metric else second.support,
    )
    return checks, second
