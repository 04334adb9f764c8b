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

"""Sentences that tell a user what speaks against a motion: the check, its figure, what is usual, the likely cause."""

from __future__ import annotations

from macvo_ros.doubt.checks import ELSEWHERE, WHOSE_MOTION, Checks
from macvo_ros.doubt.sound_frames import usual

_SENTENCES = {
    "residuals": "residuals are {figure:.1f} times what the matches promised (usually up to {usual:.1f}): bad matches",
    "epipolar_error": "stereo matches are {figure:.1f} times as far off their rows as before (usually up to "
    "{usual:.1f}): left and right were not taken at the same moment, or a camera moved",
    "unknown_depth": "the depth of {figure:.0%} of the keypoints is not known any more (usually up to {usual:.0%}): "
    "right lens covered, cameras swapped, or something close to one of them",
    "rejected_keypoints": "{figure:.0%} of the keypoints contradict the motion (usually up to {usual:.0%}): moving "
    "objects or bad matches",
    "appearance_mismatch": "{figure:.0%} of the image does not look as the estimated motion predicts (usually up to "
    "{usual:.0%}): bad matches, or something moves with the camera",
    "second_motion": "{figure:.0%} of the keypoints agree on a second motion (usually up to {usual:.0%}): something "
    "large moves, or moves with the camera",
}
_ELSEWHERE = "the keypoints and the time since the last measured frame leave room for another place that looks alike"
_REMAINS = "the frame before was doubtful; this one looks sound, but a fault mostly lasts for more than one frame"


def doubt_reason(matcher: str, check: str, checks: Checks) -> str:
    """Why a motion is doubted: by which check, its figure on this frame, and the figure of 99 % of sound frames.

    Where no check is unusual, the doubt is what remains of the frame before. (Of whose motion it is, a usual figure may
    say much where nothing was predicted.)
    """
    if check == ELSEWHERE:
        return _ELSEWHERE
    figure = getattr(checks, check)
    if figure <= usual(matcher, check) and check not in WHOSE_MOTION:
        return _REMAINS
    return _SENTENCES[check].format(figure=figure, usual=usual(matcher, check))
