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

from macvo_ros.doubt.appearance import appearance_mismatch
from macvo_ros.doubt.second_motion import find_second_motion
from macvo_ros.motion.covariance import depth_is_known
from macvo_ros.motion.keypoint_matches import MatchedFrames
from macvo_ros.motion.point_pairs import point_pairs
from macvo_ros.motion.two_frame import METRIC, TwoFrameResult
from macvo_ros.settings.config import Config

Float64 = npt.NDArray[np.float64]

STEREO = ("epipolar_error", "unknown_depth")
"""Checks on the stereo match: where one of them speaks, the frame's depths are no measurement."""
WHOSE_MOTION = ("flow_sigma", "appearance_mismatch", "second_motion")
"""Figures that say whose motion was measured (`whose_motion.py`), and nothing by themselves."""
_ROWS = 0.1
"""Pixels that no rows are usually kept better: after a few frames of a new camera little is known; chosen."""
ELSEWHERE = "elsewhere"
"""No check: after a long gap the motion may lead to another place that looks alike (`whose_motion.py`)."""


@dataclass(frozen=True)
class Checks:
    """Figures of one frame; what is usual for each is measured by `python -m bench.sound_frames`.

    residuals: mean squared residual of the inliers per degree of freedom (1: as promised), but for what a turned right
    camera explains: that is the calibration's error, not the matches', and learned (`online_calibration.py`).
    epipolar_error: how many times farther than is usual for these cameras stereo matches leave their rows.
    unknown_depth: by how much more (0 to 1) of the keypoints have no known depth than in the reference frame.
    flow_sigma: standard deviation of a keypoint's flow (median) over the image's width: how well they are found again.
    rejected_keypoints: the part of the keypoints of known depth that contradict the motion, and agree on no
    second one.
    appearance_mismatch: the part of the image's texture that does not look as the motion predicts.
    second_motion: the part of those keypoints that agrees on another motion; 0: there is none.
    """

    residuals: float
    epipolar_error: float
    unknown_depth: float
    flow_sigma: float
    rejected_keypoints: float
    appearance_mismatch: float
    second_motion: float

    @staticmethod
    def names() -> tuple[str, ...]:
        """Of the checks, in order."""
        return tuple(field.name for field in fields(Checks))


def epipolar_error(variance: float, usual: float) -> float:
    """How many times farther than usual matches leave their rows; both: variances about them, pixels^2."""
    return math.sqrt((variance + _ROWS**2) / (usual + _ROWS**2))


def run_checks(
    config: Config, frames: MatchedFrames, result: TwoFrameResult, predicted: Float64, usual: float
) -> tuple[Checks, Float64 | None]:
    """Check the motion of a result; predicted: (4, 4) motion. Returns the second motion (4, 4) too, if there is one.

    usual: variance of stereo matches about their rows, as usual for these cameras (`RectificationMonitor`), pixels^2.
    """
    camera, motion = frames.current.full.camera, result.solution.motion
    metric = config.covariance.model in METRIC  # else residuals say nothing
    depth = depth_is_known(camera, result.points)
    known = depth.all(axis=0) & metric
    rejected = known & ~result.solution.inlier
    other, agree = find_second_motion(config.pose, point_pairs(camera, result.points.subset(rejected)), predicted)
    checks = Checks(
        residuals=result.unexplained_chi2 if metric else 0.0,
        epipolar_error=epipolar_error(frames.match.row_check().epipolar_var, usual),
        unknown_depth=max(float(depth[0].mean() - depth[1].mean()), 0.0),
        flow_sigma=float(np.median(result.landmarks.match_sigma) / camera.width),
        rejected_keypoints=float((rejected.sum() - agree) / max(known.sum(), 1)),
        appearance_mismatch=appearance_mismatch(frames.reference, frames.reference_match, frames.current, motion),
        second_motion=float(agree / max(known.sum(), 1)),
    )
    return checks, other
