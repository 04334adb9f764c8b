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

"""What comes out of the odometry for each frame."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from macvo_ros.images.frame import StereoFrame
from macvo_ros.matching.matcher import Match
from macvo_ros.motion.landmarks import Landmarks
from macvo_ros.odometry.status import Status
from macvo_ros.uncertainty.learned_calibration import LearnedCalibration
from macvo_ros.uncertainty.path_step import PathStep
from macvo_ros.uncertainty.relative_motion import RelativeMotion

Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Estimate:
    """The odometry after one frame.

    status, reason: how much the pose is worth, and why when it is not TRACKING (a sentence).
    pose: (4, 4) of the base frame in odom, metres.
    covariance: (6, 6) of [dt in odom axes, dtheta fixed-axis in odom], R_true = Exp(dtheta) R.
    relative: motion of the *left camera* over the last `elapsed` seconds: since the previous frame, or, where that was
    lost, since the frame that this one was measured against; None for the first frame.
    relative_base: the same for the base frame.
    elapsed: seconds (0 for the first frame).
    fault: probability that something is wrong with the measured motion (`doubt/posterior.py`), 0 where none was
    measured. checks: figures of the checks it comes from, by name.
    chi2: mean squared Mahalanobis residual of the inliers per degree of freedom (1 is perfect).
    calibration: what was learned of the calibration so far; None where nothing is learned or nothing was measured.
    step: how this pose hangs on that of an earlier frame; None where tracking begins.
    match: dense maps of this frame, for whoever wants to see them.
    corrections: stamp and (4, 4) pose of the base, as they are thought of now, of earlier frames that are still in the
    window (`window.frames`); what was published of them is not changed by it.
    timings: seconds of each stage: match, select, covariance, pose, total.
    """

    frame: StereoFrame
    status: Status
    pose: Float64
    covariance: Float64
    reason: str = ""
    relative: RelativeMotion | None = None
    relative_base: RelativeMotion | None = None
    elapsed: float = 0.0
    landmarks: Landmarks | None = None
    fault: float = 0.0
    checks: dict[str, float] = field(default_factory=dict)
    chi2: float = float("nan")
    calibration: LearnedCalibration | None = None
    step: PathStep | None = None
    match: Match | None = None
    corrections: tuple[tuple[int, Float64], ...] = ()
    timings: dict[str, float] = field(default_factory=dict)
