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

"""How much a pose is worth: tracking, degraded or lost."""

from __future__ import annotations

from enum import IntEnum


class Status(IntEnum):
    """State of the odometry after a frame. The numbers are those of `msg/Status.msg`."""

    INITIALIZING = 0
    """First frame: a reference was taken, there is no motion yet."""
    TRACKING = 1
    """The motion was measured and its covariance is the measured one."""
    DEGRADED = 2
    """A motion was measured from little evidence; its covariance says so."""
    LOST = 3
    """No motion was measured; the pose is a prediction with a covariance that covers what may have happened."""


_CHI2_LIMIT = 3.0
_CHI2_LOST = 6.0
"""In faults staged on rendered scenes, motions with larger residuals were wrong by far more than these tell: two
motions mixed, or chance. Sound frames have about 1."""
_INLIER_LIMIT = 0.5
_PRIOR_LIMIT = 0.3
_ROW_LIMIT = 0.5
_DISSENT_LOST = 0.4
_CONTESTED_LOST = 0.2
_DISSENT_ODD = 0.25

ROW_TROUBLE = (
    "stereo matches leave their rows: left and right were not taken at the same moment, or the calibration is wrong"
)


def judge(
    *,
    inliers: int,
    keypoints: int,
    min_points: int,
    prior_share: float,
    chi2: float,
    row_error: float = 0.0,
    dissent: float = 0.0,
    two_motions: bool = False,
) -> tuple[Status, str]:
    """Whether a measured motion rests on enough evidence, and a sentence if it does not.

    prior_share: part of the information in the weakest direction that came from the prediction; chi2: mean squared
    residual per degree of freedom; row_error, dissent, two_motions: see `scene_check.py`.
    """
    if row_error > 1.0:
        return Status.LOST, ROW_TROUBLE
    if dissent > (_CONTESTED_LOST if two_motions else _DISSENT_LOST):
        return (
            Status.LOST,
            f"{dissent:.0%} of the image moves otherwise than the keypoints: which is the world?",
        )
    if inliers < 2 * min_points and inliers < _INLIER_LIMIT * keypoints:
        # A minority of a few: in faults staged on rendered scenes these were coincidences more often than motions.
        return Status.LOST, f"only {inliers} of {keypoints} keypoints agree on a motion"
    if chi2 > _CHI2_LOST:
        return Status.LOST, f"the matches contradict each other: residuals are {chi2:.0f} times what was promised"
    if inliers < 2 * min_points:
        return Status.DEGRADED, f"only {inliers} keypoints agree on the motion"
    if inliers < _INLIER_LIMIT * keypoints:
        return Status.DEGRADED, f"only {inliers} of {keypoints} keypoints agree: moving objects or bad matches"
    if prior_share > _PRIOR_LIMIT:
        return Status.DEGRADED, "the keypoints do not constrain the motion in every direction"
    if two_motions:
        return Status.DEGRADED, (
            f"{dissent:.0%} of the image agrees on another motion: something large moves, or moves with the camera"
        )
    if dissent > _DISSENT_ODD:
        return Status.DEGRADED, f"{dissent:.0%} of the image does not follow the motion: moving objects or bad matches"
    if row_error > _ROW_LIMIT:
        return Status.DEGRADED, "stereo matches leave their rows: calibration or synchronization of the cameras is poor"
    if chi2 > _CHI2_LIMIT:
        return Status.DEGRADED, f"residuals are {chi2:.1f} times what the matcher promised"
    return Status.TRACKING, ""
