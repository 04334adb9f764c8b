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

"""Where the time of a frame goes with `lite`, at several sizes: `python -m bench.lite_profile`. Run nothing beside it.

The frames are rendered and scaled to each size. Times the functions below as they are called, in whatever thread;
those of the two matching threads overlap, and a function's time holds that of the ones it calls (indented).
Writes bench/results/lite_profile.txt.
"""

from __future__ import annotations

import argparse
import functools
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from bench.sizes import SIZES, resized
from macvo_ros.atomic_write import atomic_write
from macvo_ros.commands._image_size import image_size
from macvo_ros.evaluation.environment import measured_with
from macvo_ros.evaluation.table import format_table
from macvo_ros.images.frame import StereoFrame
from macvo_ros.matching.lite import features, matcher
from macvo_ros.motion import keypoint_matches, two_frame
from macvo_ros.odometry import attempt
from macvo_ros.odometry import stereo_odometry as odometry
from macvo_ros.rendering.sequence import RenderedSequence
from macvo_ros.settings.config import load_config

TIMED: list[tuple[int, Any, str, str]] = [
    (0, odometry.StereoOdometry, "track", "whole frame"),
    (1, odometry, "find_trouble", "look at the images"),
    (1, attempt, "seed_motion", "where the search begins"),
    (1, matcher.LiteMatcher, "match", "match"),
    (2, matcher.LiteMatcher, "_match_stereo", "stereo, one thread"),
    (2, matcher.LiteMatcher, "_match_temporal", "flow, the other thread"),
    (3, matcher, "search_rows", "search along the rows, stereo"),
    (3, matcher, "check_rows", "vertical part, stereo"),
    (3, matcher.FlowSearch, "flow", "dense search, flow"),
    (3, matcher, "stereo_features", "evidence, stereo"),
    (3, matcher, "temporal_features", "evidence, flow"),
    (4, features, "rigid_departure", "departure from a rigid motion"),
    (3, matcher.LiteMatcher, "variances", "network (both)"),
    (1, attempt, "two_frame_motion", "motion"),
    (2, keypoint_matches, "select_keypoints", "choose keypoints"),
    (2, matcher.LiteMatcher, "refine", "refine"),
    (2, two_frame, "patch_disparity_variance", "disparity around the match"),
    (2, two_frame, "_solve", "pose"),
    (2, two_frame, "regional_chi2", "pattern of the residuals"),
    (1, attempt, "run_checks", "does the image agree"),
    (1, odometry.StereoOdometry, "_append_motion", "trajectory and covariance"),
]


def main() -> None:
    """Print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frames", type=int, default=30)
    parser.add_argument("--sizes", nargs="+", default=SIZES, metavar="WIDTHxHEIGHT")
    options = parser.parse_args()
    count = options.frames
    sequence = RenderedSequence("shapes", count, 1)
    frames = [sequence[index] for index in range(count)]
    spent: dict[str, float] = defaultdict(float)
    for _, owner, name, label in TIMED:
        setattr(owner, name, _timed(getattr(owner, name), label, spent))
    columns = [_spent_at(size, frames, spent) for size in options.sizes]
    rows = [
        ["  " * depth + label, *(f"{1e3 * column.get(label, 0.0) / (count - 1):.2f}" for column in columns)]
        for depth, _, _, label in TIMED
    ]
    table = format_table(["", *options.sizes], rows)
    text = f"lite, shapes 1, {count} frames scaled to each size, ms a frame\n{table}\n\n{measured_with()}\n"
    print(text)
    atomic_write(Path(__file__).parent / "results" / "lite_profile.txt", text)


def _spent_at(size: str, frames: list[StereoFrame], spent: dict[str, float]) -> dict[str, float]:
    """Seconds in each function over the frames, scaled to WxH: the median of three rounds."""
    scaled = [resized(frame, *image_size(size)) for frame in frames]
    tracker = odometry.StereoOdometry(load_config(assignments=["matcher=lite"]))
    rounds: list[dict[str, float]] = []
    for _ in range(4):  # the first warms up
        tracker.reset()
        tracker.track(scaled[0])
        spent.clear()
        for frame in scaled[1:]:
            tracker.track(frame)
        rounds.append(dict(spent))
    return {label: float(np.median([each.get(label, 0.0) for each in rounds[1:]])) for _, _, _, label in TIMED}


def _timed(function: Any, label: str, spent: dict[str, float]) -> Any:
    @functools.wraps(function)
    def timed(*args: Any, **kwargs: Any) -> Any:
        start = time.perf_counter()
        try:
            return function(*args, **kwargs)
        finally:
            spent[label] += time.perf_counter() - start

    return timed


if __name__ == "__main__":
    main()
