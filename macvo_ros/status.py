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
_UNANIMOUS = 0.9
"""A few keypoints are enough where nearly all agree (small images have no more): their covariance holds as well."""
_PRIOR_LIMIT = 0.3
_ROW_LIMIT = 0.5
_DISSENT_LOST = 0.4
_CONTESTED_LOST = 0.2
_DISSENT_ODD = 0.25
_DISSENT_DOUBTED = 0.1
_UNLIKE_JUMP, _UNLIKE_GAP = 0.06, 0.2
"""Shares of the image beyond which a motion is not believed that contradicts its prediction, or bridges a gap. Sound
frames of rendered scenes mostly have 0, at most 0.03 in 98 %; streets at two metres a frame reach 0.2."""
_DISSENT_WARY, _UNLIKE_WARY = 0.03, 0.04
"""The same limits while two motions were to be seen just now (`wariness.py`)."""
_UNLIKE_STILL = 0.04
"""The same where the camera seems to stand but the keypoints that say so are in one part of the image."""
_COVERED = 0.65
"""Coverage by keypoints from which a motion is that of the world: half an image reaches 0.6."""

ROW_TROUBLE = (
    "stereo matches leave their rows: left and right were not taken at the same moment, or the calibration is wrong"
)


def errors_are_shared(
    inliers: int, keypoints: int, min_points: int, chi2: float, dissent: float, unlike: float = 0.0, *, bridged: bool
) -> bool:
    """Whether the keypoints' errors must be feared to be alike, so that many of them are worth no more than a few.

    So it is where residuals are too large to be noise, where only a minority agrees or much of the image dissents or
    looks otherwise than it should, or where few agree after a gap (bridged), over which everything changed its looks.
    """
    doubt = chi2 > _CHI2_LIMIT or inliers < _INLIER_LIMIT * keypoints
    doubt = doubt or dissent > _DISSENT_DOUBTED or looks_wrong(unlike)
    return doubt or (bridged and inliers < 2 * min_points)


def looks_wrong(unlike: float) -> bool:
    """Whether more of the image looks otherwise than it would after a motion (`unlike`, a share) than is ordinary."""
    return unlike > _UNLIKE_JUMP


def is_contested(
    dissent: float, unlike: float, coverage: float, *, two_motions: bool, jumps: bool, still: bool
) -> bool:
    """Whether so much of the image speaks against a motion that something else may have been taken for the world.

    coverage: the part of the image over which the keypoints are spread that agree (`scene_check.coverage`). What they
    have nearly all of is the world, whatever passes before it. still: the keypoints hardly move in the image, as all
    of it would before a camera that stands.
    """
    limit = _UNLIKE_STILL if still else _UNLIKE_JUMP if jumps else _UNLIKE_GAP
    against = two_motions or dissent > _DISSENT_LOST or unlike > limit
    return against and coverage < _COVERED


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
    unlike: float = 0.0,
    jumps: bool = False,
    wary: bool = False,
    still: bool = False,
    coverage: float = 1.0,
) -> tuple[Status, str]:
    """Whether a measured motion rests on enough evidence, and a sentence if it does not.

    prior_share: part of the information in the weakest direction that came from the prediction; chi2: mean squared
    residual per degree of freedom; row_error, dissent, two_motions, unlike: see `scene_check.py` (unlike: 0 where not
    asked for); jumps: the motion contradicts its prediction; wary: two motions were to be seen just now; still,
    coverage: see `is_contested`.
    """
    if row_error > 1.0:
        return Status.LOST, ROW_TROUBLE
    if dissent > (_CONTESTED_LOST if two_motions else _DISSENT_LOST):
        return (
            Status.LOST,
            f"{dissent:.0%} of the image moves otherwise than the keypoints: which is the world?",
        )
    if jumps and unlike > _UNLIKE_JUMP:
        return Status.LOST, f"the motion jumps, and {unlike:.0%} of the image does not look as it would after it"
    if unlike > _UNLIKE_GAP:
        return Status.LOST, f"after the gap {unlike:.0%} of the image does not look as the motion would have it"
    if still and coverage < _COVERED and unlike > _UNLIKE_STILL:
        return Status.LOST, f"the keypoints stand still, but {unlike:.0%} of the image changed its looks"
    doubtful = dissent > _DISSENT_WARY or unlike > _UNLIKE_WARY
    if wary and coverage < _COVERED and doubtful and not two_motions:
        return Status.LOST, (
            f"two motions were to be seen just now, and {max(dissent, unlike):.0%} of the image still contradicts"
        )
    if inliers < 2 * min_points and inliers < _INLIER_LIMIT * keypoints:
        # A minority of a few: in faults staged on rendered scenes these were coincidences more often than motions.
        return Status.LOST, f"only {inliers} of {keypoints} keypoints agree on a motion"
    if chi2 > _CHI2_LOST:
        return Status.LOST, f"the matches contradict each other: residuals are {chi2:.0f} times what was promised"
    if inliers < 1.25 * min_points or (inliers < 2 * min_points and inliers < _UNANIMOUS * keypoints):
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
    if looks_wrong(unlike):
        return Status.DEGRADED, f"{unlike:.0%} of the image does not look as the motion would have it"
    if row_error > _ROW_LIMIT:
        return Status.DEGRADED, "stereo matches leave their rows: calibration or synchronization of the cameras is poor"
    if chi2 > _CHI2_LIMIT:
        return Status.DEGRADED, f"residuals are {chi2:.1f} times what the matcher promised"
    return Status.TRACKING, ""
