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

"""Give each frame its ground truth pose, from samples that have times of their own."""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from macvo_ros.errors import SequenceError
from macvo_ros.sequences.image_files import StereoImageFiles
from macvo_ros.sequences.poses import interpolate_poses, longest_run

Float64 = npt.NDArray[np.float64]

MAX_GAP = 100_000_000
"""Nanoseconds between ground truth samples up to which a pose is interpolated."""

_log = logging.getLogger(__name__)


def with_truth(
    sequence: StereoImageFiles,
    times: npt.NDArray[np.int64],
    translations: Float64,
    quaternions: Float64,
    body_from_camera: Float64,
) -> StereoImageFiles:
    """The sequence with ground truth interpolated to its stamps.

    times: (M,) nanoseconds, translations (M, 3) metres, quaternions (M, 4) x y z w: poses of some body.
    body_from_camera: (4, 4) pose of the left rectified optical frame in that body.

    Every frame must have a pose, so a sequence whose truth starts late or stops early is cut to the longest run of
    frames that have one; if no two frames in a row do, the truth is left out. Either is logged as a warning.
    """
    order = np.argsort(times, kind="stable")
    times, translations, quaternions = times[order], translations[order], quaternions[order]
    if not len(times):
        raise SequenceError(f"{sequence.name}: the ground truth file has no poses; complete or remove it")
    poses, known = interpolate_poses(times, translations, quaternions, sequence.stamps, MAX_GAP)
    first, last = longest_run(known)
    if last <= first:
        _log.warning(
            "%s: no two frames in a row have ground truth (images %.3f .. %.3f s, truth %.3f .. %.3f s); "
            "continuing without it",
            sequence.name,
            *(n / 1e9 for n in (sequence.stamps[0], sequence.stamps[-1], times[0], times[-1])),
        )
        return sequence
    if last - first + 1 < len(sequence):
        _log.warning(
            "%s: ground truth covers frames %d to %d of %d; the others are left out",
            sequence.name,
            first,
            last,
            len(sequence),
        )
    return replace(sequence, ground_truth=poses @ body_from_camera).between(first, last)
