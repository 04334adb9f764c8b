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

"""The matchers beside KLT + PnP, on rendered drives, walks, flights and near scenes that nothing was chosen on.

    python -m bench.matchers [--first-seed 4001] [--seeds 2] [--frames 30] [--sizes 640x640 640x360 320x240]

Errors are means over all motions of a family, beside the counts of DEGRADED and LOST frames; the first size is the one
that is rendered, the others are scaled from it. Writes bench/results/matchers.txt.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from itertools import accumulate
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bench.klt_pnp_baseline import KltPnpOdometry
from bench.sizes import resized
from macvo_ros.atomic_write import atomic_write
from macvo_ros.commands._image_size import image_size
from macvo_ros.evaluation.environment import measured_with
from macvo_ros.evaluation.metrics import relative_errors
from macvo_ros.evaluation.table import format_table
from macvo_ros.images.frame import StereoFrame
from macvo_ros.odometry.status import Status
from macvo_ros.odometry.stereo_odometry import StereoOdometry
from macvo_ros.rendering.sequence import RenderedSequence
from macvo_ros.rendering.worlds import ZED_X
from macvo_ros.settings.config import load_config

RESULTS = Path(__file__).parent / "results"
FAMILIES = {
    "drive": ("street", "motorway"),
    "walk": ("room", "corridor", "park"),
    "drone": ("drone",),
    "near": ("near", "landing"),
}
"""Worlds by how the camera moves in them."""
TRACKERS = ("lite", "classic", "KLT + PnP")
Float64 = npt.NDArray[np.float64]


def follow(tracker: str, frames: list[StereoFrame]) -> tuple[Float64, int, int]:
    """(N, 4, 4) poses, and how many frames are DEGRADED and LOST."""
    if tracker not in ("lite", "classic"):
        baseline = KltPnpOdometry()
        return np.array(list(accumulate((baseline.track(frame) for frame in frames), np.matmul))), 0, 0
    odometry = StereoOdometry(load_config(assignments=[f"matcher={tracker}"]))
    found = [odometry.track(frame) for frame in frames]
    states = [estimate.status for estimate in found]
    return np.array([each.pose for each in found]), states.count(Status.DEGRADED), states.count(Status.LOST)


def main() -> None:
    """Run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first-seed", type=int, default=4001)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--frames", type=int, default=30)
    parser.add_argument("--sizes", nargs="+", type=image_size, default=[(640, 640), (640, 360), (320, 240)])
    args = parser.parse_args()
    errors: dict[tuple[tuple[int, int], str, str], list[Float64]] = defaultdict(list)
    doubted: dict[tuple[tuple[int, int], str, str], Float64] = defaultdict(lambda: np.zeros(2))
    scenes = [(family, world) for family, worlds in FAMILIES.items() for world in worlds]
    for number, (family, world) in enumerate(scenes * args.seeds):
        camera = ZED_X.resized(*args.sizes[0])
        sequence = RenderedSequence(world, args.frames, args.first_seed + number, camera=camera)
        rendered = [sequence[index] for index in range(args.frames)]
        assert sequence.ground_truth is not None
        for size in args.sizes:
            frames = rendered if size == args.sizes[0] else [resized(frame, *size) for frame in rendered]
            for tracker in TRACKERS:
                poses, degraded, lost = follow(tracker, frames)
                t, r = relative_errors(poses, sequence.ground_truth)
                errors[size, family, tracker].append(np.stack((t, r)))
                doubted[size, family, tracker] += degraded, lost
                label = f"{world} {args.first_seed + number} {size[0]}x{size[1]} {tracker}"
                print(f"{label}: {t.mean():.5f} / {r.mean():.4f}, {degraded} DEGRADED, {lost} LOST", flush=True)
    rows = []
    for (size, family, tracker), parts in errors.items():
        t, r = np.hstack(parts).mean(axis=1)
        degraded, lost = doubted[size, family, tracker]
        cells = [f"{t:.5f}", f"{r:.4f}", f"{degraded:g}", f"{lost:g}"]
        rows.append([f"{size[0]}x{size[1]}", family, tracker, *cells])
    head = ["size", "family", "", "t_rel [m]", "r_rel [deg]", "DEGRADED", "LOST"]
    command = f"seeds {args.first_seed} to {args.first_seed + len(scenes) * args.seeds - 1}, {args.frames} frames each"
    text = f"{command}\n{format_table(head, sorted(rows, key=lambda row: (row[0], row[1])))}\n"
    atomic_write(RESULTS / "matchers.txt", f"{text}\n{measured_with()}\n")
    print(text)


if __name__ == "__main__":
    main()
