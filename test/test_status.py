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

"""What is made of the evidence for a motion."""

from __future__ import annotations

from typing import Any

import pytest

from macvo_ros.status import Status, errors_are_shared, is_contested, judge

SOUND: dict[str, Any] = {"inliers": 80, "keypoints": 82, "min_points": 20, "prior_share": 0.0, "chi2": 0.9}


@pytest.mark.parametrize(
    ("evidence", "status"),
    [
        ({}, Status.TRACKING),
        ({"inliers": 19, "keypoints": 60}, Status.LOST),
        ({"inliers": 22, "keypoints": 22}, Status.DEGRADED),
        ({"chi2": 7.0}, Status.LOST),
        ({"row_error": 1.1}, Status.LOST),
        ({"dissent": 0.05, "unlike": 0.05}, Status.TRACKING),
        ({"dissent": 0.3}, Status.DEGRADED),
        ({"dissent": 0.5}, Status.LOST),
        ({"dissent": 0.15, "two_motions": True}, Status.DEGRADED),
        ({"dissent": 0.3, "two_motions": True}, Status.LOST),
        ({"unlike": 0.1}, Status.DEGRADED),
        ({"unlike": 0.1, "jumps": True}, Status.LOST),
        ({"unlike": 0.3}, Status.LOST),
        ({"dissent": 0.05, "wary": True, "coverage": 0.5}, Status.LOST),
        ({"dissent": 0.05, "wary": True, "coverage": 0.9}, Status.TRACKING),
        ({"wary": True, "coverage": 0.5}, Status.TRACKING),
        ({"unlike": 0.05, "still": True, "coverage": 0.5}, Status.LOST),
        ({"unlike": 0.05, "still": True, "coverage": 0.9}, Status.TRACKING),
    ],
)
def test_evidence_decides(evidence, status):
    judged, reason = judge(**{**SOUND, **evidence})
    assert judged is status
    assert bool(reason) is (status is not Status.TRACKING)


def test_what_has_the_whole_image_is_not_contested():
    plain = {"two_motions": False, "jumps": False, "still": False}
    assert is_contested(0.15, 0.0, 0.5, **{**plain, "two_motions": True})
    assert not is_contested(0.15, 0.0, 0.9, **{**plain, "two_motions": True})
    assert is_contested(0.0, 0.1, 0.5, **{**plain, "jumps": True})
    assert is_contested(0.0, 0.05, 0.5, **{**plain, "still": True})
    assert not is_contested(0.0, 0.1, 0.5, **plain)
    assert is_contested(0.0, 0.3, 0.5, **plain)


def test_doubtful_keypoints_share_their_errors():
    assert not errors_are_shared(80, 82, 20, 0.9, 0.0, bridged=False)
    assert errors_are_shared(80, 82, 20, 0.9, 0.0, unlike=0.1, bridged=False)
    assert errors_are_shared(80, 82, 20, 0.9, 0.2, bridged=False)
    assert errors_are_shared(30, 82, 20, 0.9, 0.0, bridged=False)
    assert errors_are_shared(30, 31, 20, 0.9, 0.0, bridged=True)
