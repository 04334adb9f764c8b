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


"""How much of a followed point's error is the same in all frames, because its patch is the same.

    python -m bench.shared_errors [--seeds 20] [--frames 40] [--matcher lite]

On rendered walks, whose poses are known: how far each sighting lies from the epipolar line of the point's first view,
which does not depend on its depth, in units of the variance it was given. Mean square (1: honest), and the mean product
of two sightings of a point one, two, three and more frames apart, over the mean square: the share that does not average
out. It is what `pose_window._SHARED` stands for. Writes bench/results/shared_errors.txt.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path

import numpy as np

from macvo_ros.atomic_write import atomic_write
from macvo_ros.evaluation.environment import measured_with
from macvo_ros.evaluation.table import format_table
from macvo_ros.odometry.pose_window import PoseWindow
from macvo_ros.odometry.stereo_odometry import StereoOdometry
from macvo_ros.rendering.sequence import RenderedSequence
from macvo_ros.rendering.worlds import ZED_X
from macvo_ros.settings.config import load_config

RESULTS = Path(__file__).parent / "results"
WORLDS = ("room", "corridor", "street")
APART = ((1, 1), (2, 2), (3, 4), (5, 8))
LARGEST = 4.0  # sigmas: one mismatch must not decide


def off_line(window: PoseWindow, poses: dict[int, np.ndarray]) -> list[tuple[tuple[float, ...], float]]:
    """Of each point seen in the newest frame: what names it, and its distance from its epipolar line in sigmas."""
    inside, stamps = window._window, window._stamps  # it is what is measured here
    if inside is None:
        return []
    camera, points, now = inside.camera, inside.points, poses[stamps[-1]]
    # Points that begin in the frame before have only the two-frame match, which is not compared with their patch.
    seen = np.flatnonzero((points.inverse_sigma[-1, 0] > 0) & (points.anchor < len(inside) - 2))
    out = []
    for p in seen:
        first = poses[stamps[points.anchor[p]]]
        ends = []
        for disparity in (points.disparity[p], 0.8 * points.disparity[p]):
            depth = camera.fx * camera.baseline / max(disparity - camera.disparity_offset, 0.1)
            u, v = points.pixel[:, p]
            at = np.array([(u - camera.cx) / camera.fx * depth, (v - camera.cy) / camera.fy * depth, depth])
            x, y, z = now[:3, :3].T @ (first[:3, :3] @ at + first[:3, 3] - now[:3, 3])
            ends.append(np.array([camera.fx * x / z + camera.cx, camera.fy * y / z + camera.cy]))
        along = ends[1] - ends[0]
        if np.linalg.norm(along) < 0.5:
            continue  # no line to speak of
        across = np.array([-along[1], along[0]]) / np.linalg.norm(along)
        variance = points.inverse_sigma[-1, :2, p] ** -2.0 + points.shared_var[:2, p]
        distance = float(across @ (points.seen[-1, :2, p] - ends[0]) / np.sqrt(across**2 @ variance))
        name = (float(stamps[points.anchor[p]]), *points.pixel[:, p].tolist())
        out.append((name, float(np.clip(distance, -LARGEST, LARGEST))))
    return out


def main() -> None:
    """Walk, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="*", default=[20])
    parser.add_argument("--frames", type=int, default=40)
    parser.add_argument("--matcher", default="lite")
    args = parser.parse_args()
    rows = []
    for world, seed in [(world, seed) for world in WORLDS for seed in args.seeds]:
        sequence = RenderedSequence(world, args.frames, seed, camera=ZED_X.resized(640, 400), texels=512)
        assert sequence.ground_truth is not None
        poses = {int(stamp): pose for stamp, pose in zip(sequence.stamps, sequence.ground_truth, strict=True)}
        odometry = StereoOdometry(load_config(assignments=[f"matcher={args.matcher}", "window.frames=10"]))
        tracks: dict[tuple[float, ...], dict[int, float]] = defaultdict(dict)
        for index in range(len(sequence)):
            odometry.track(sequence[index])
            window = None if odometry._now is None else odometry._now.window
            assert window is not None
            for name, distance in off_line(window, poses):
                tracks[name][index] = distance
        squares = float(np.mean([d * d for track in tracks.values() for d in track.values()]))
        cells = []
        for low, high in APART:
            products = [
                track[i] * track[j] for track in tracks.values() for i in track for j in track if low <= j - i <= high
            ]
            cells.append(f"{np.mean(products) / squares:.2f}" if products else "")
        rows.append([f"{world} {seed}", str(sum(map(len, tracks.values()))), f"{squares:.2f}", *cells])
    heading = ["walk", "sightings", "mean square", *(f"{a} to {b} apart" for a, b in APART)]
    text = f"{args.matcher}, {args.frames} frames of 640x400\n{format_table(heading, rows)}\n\n{measured_with()}\n"
    print(text)
    atomic_write(RESULTS / "shared_errors.txt", text)


if __name__ == "__main__":
    main()
