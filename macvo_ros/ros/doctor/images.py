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

"""What is wrong with the images themselves: dark, not rectified, swapped, or too many for this machine."""

from __future__ import annotations

import time

import numpy as np

from macvo_ros.bags.pairing import pair_stamps
from macvo_ros.errors import MacvoError
from macvo_ros.images.blind_frames import find_trouble
from macvo_ros.images.camera_info import StereoInput
from macvo_ros.images.frame import Image, StereoFrame
from macvo_ros.images.pair_geometry import PairGeometry, pair_geometry
from macvo_ros.odometry.status import Status
from macvo_ros.odometry.stereo_odometry import StereoOdometry
from macvo_ros.ros.doctor.finding import Finding
from macvo_ros.ros.doctor.listening import Observation
from macvo_ros.ros.stereo_messages import decode, stamp_of
from macvo_ros.settings.config import Config

PAIRS = 4
"""Pairs whose features are compared."""
OFF_THE_ROW = 1.0
"""Pixels: median distance of features from their row above which a pair is not rectified. Sound sequences have up to
.84 (KITTI), images that are two rows off 1.3 and more (bench/results/pair_geometry.txt)."""
_BACKWARDS = 0.5
"""Part of the features beyond infinity from which left and right are swapped: sound .05 at most, swapped .94 at least
(the same log)."""
_ENOUGH = 30
"""Features below which nothing is said."""
_APART = 0.05
"""Seconds between the stamps of images that are compared at most; that they differ was said before."""


def recent_pairs(observation: Observation) -> list[tuple[Image, Image, int]]:
    """The last pairs, decoded, with the stamp of the left image, nanoseconds; MacvoError where one cannot be."""
    left, right = (list(observation.topics[f"{side} image"].kept) for side in ("left", "right"))
    times, right_times = (np.array([stamp_of(message) for message in side], dtype=np.int64) for side in (left, right))
    first, second = pair_stamps(times, right_times, round(_APART * 1e9))
    return [(decode(left[i]), decode(right[j]), int(times[i])) for i, j in zip(first, second, strict=True)]


def look_at_images(observation: Observation, stereo: StereoInput | None, config: Config) -> list[Finding]:
    """Decode, look for darkness, measure the rectification, and track. stereo: None without a usable calibration."""
    try:
        pairs = recent_pairs(observation)
        if not pairs:
            return []
        if stereo is None:
            return [_geometry(pair_geometry([(left, right) for left, right, _ in pairs[-PAIRS:]]))]
        frames = [stereo.frame(*pair) for pair in pairs]
    except MacvoError as error:
        return [Finding(f"images cannot be used: {error}", "see docs/troubleshooting.md, Pairs are refused")]
    trouble = find_trouble(frames[-1], None)
    if trouble is not None:
        return [Finding(trouble.reason, "take off the cap, light the scene, check the exposure")]
    if np.array_equal(frames[-1].left, frames[-1].right):
        return [Finding("left and right images are the same", "one camera is published on both topics: name the other")]
    geometry = pair_geometry([(frame.left, frame.right) for frame in frames[-PAIRS:]])
    findings = [_geometry(geometry, _raw_hint(observation, pairs, stereo))]
    if not findings[0].wrong:
        findings += _tracked(frames, config)
    return findings


def _geometry(geometry: PairGeometry, raw_hint: str = "") -> Finding:
    if geometry.matches < _ENOUGH:
        return Finding(
            f"{geometry.matches} features are found in both images of {PAIRS} pairs",
            "do both cameras see the same scene, in focus and with some texture? Point them at something and try again",
        )
    seen = f"features are {geometry.vertical:.2f} px off their rows (median of {geometry.matches})"
    if geometry.vertical > OFF_THE_ROW:
        shifted = f"; the right image is {geometry.offset:.1f} rows too low" if abs(geometry.offset) > 0.5 else ""
        cure = "the pair is not rectified: use the rectified topics, or calibrate again"
        return Finding(seen + shifted, raw_hint or cure)
    if geometry.backwards > _BACKWARDS:
        return Finding(
            f"{geometry.backwards:.0%} of the features lie beyond infinity",
            "left and right are swapped: exchange the topics",
        )
    return Finding(seen + ": rectified")


def _raw_hint(observation: Observation, pairs: list[tuple[Image, Image, int]], stereo: StereoInput) -> str:
    """Whether camera_info would rectify images that are taken for rectified (or the contrary)."""
    infos = [observation.topics[f"{side} camera_info"].info for side in ("left", "right")]
    left, right = infos
    if left is None or right is None:
        return ""
    rectify = stereo.rectifier is None
    try:
        other = StereoInput.from_camera_info(left, right, rectify=rectify)
        frames = [other.frame(*pair) for pair in pairs[-PAIRS:]]
    except MacvoError:
        return ""
    geometry = pair_geometry([(frame.left, frame.right) for frame in frames])
    if geometry.matches < _ENOUGH or geometry.vertical > OFF_THE_ROW:
        return ""
    value = "true" if rectify else "false"
    return f"set rectify to {value}: with it they are {geometry.vertical:.2f} px off their rows"


def _tracked(frames: list[StereoFrame], config: Config) -> list[Finding]:
    """Track the pairs: how long it takes, and whether anything is measured."""
    increasing = [frame for frame, step in zip(frames[1:], np.diff([f.stamp for f in frames]), strict=True) if step > 0]
    if len(increasing) < 3:
        return []
    odometry = StereoOdometry(config)
    estimates, seconds = [], []
    for frame in [frames[0], *increasing]:
        start = time.perf_counter()
        estimates.append(odometry.track(frame))
        seconds.append(time.perf_counter() - start)
    name = odometry.matcher.name
    took = float(np.median(seconds[2:]))
    interval = float(np.median(np.diff([frame.stamp for frame in frames]))) * 1e-9
    seen = f"{name} takes {took * 1e3:.0f} ms a pair, and one comes every {interval * 1e3:.0f} ms"
    slow = f"{1 - interval / took:.0%} of the pairs will be dropped: lower the driver's rate or image size" if (
        took > interval
    ) else ""  # fmt: skip
    findings = [Finding(seen, slow)]
    states = [estimate.status for estimate in estimates[1:]]
    lost = [estimate for estimate in estimates if estimate.status is Status.LOST]
    words = ", ".join(f"{states.count(state)} {state.name}" for state in Status if state in states)
    if len(lost) > len(states) / 2:
        cure = "docs/your_camera.md, LOST at the start"
        findings.append(Finding(f"of {len(states)} pairs {words}: {lost[-1].reason}", cure))
    else:
        findings.append(Finding(f"of {len(states)} pairs {words}"))
    return findings
