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

"""Are keypoints nearer than they are, because of how they were chosen? Against rendered truth.

    python -m bench.selection_bias [--scenes mixture:58 ...] [--frames 40] [--pixels 64000] [key=value ...]

Of the keypoints' disparities in the reference, and of where they are found again, which no choice was made by: mean
error (measured minus true) in pixels and in sigmas, over true disparity; and of the motions: by how much they are too
short, in percent of the way, and mean NEES (6 is perfect). Writes bench/results/selection_bias.txt.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from unittest.mock import patch

import numpy as np

from macvo_ros.atomic_write import atomic_write
from macvo_ros.evaluation.environment import measured_with
from macvo_ros.evaluation.table import format_table
from macvo_ros.geometry.camera import rays
from macvo_ros.geometry.se3 import inverse, log_so3
from macvo_ros.motion.two_frame import TwoFrameResult, two_frame_motion
from macvo_ros.odometry import attempt
from macvo_ros.odometry.stereo_odometry import StereoOdometry
from macvo_ros.rendering.sequence import RenderedSequence
from macvo_ros.rendering.worlds import build
from macvo_ros.settings.config import load_config

SCENES = ("room:51", "corridor:52", "park:53", "shapes:54", "drone:55", "street:56", "dark:57", "mixture:58")
EDGES = (0.0, 1.0, 2.0, 4.0, 8.0, 1000.0)


@dataclass
class Found:
    """Of all keypoints of a scene: true disparity, and errors in pixels and sigmas; of all motions: errors, NEES."""

    true: list[np.ndarray] = field(default_factory=list)
    error: list[np.ndarray] = field(default_factory=list)
    sigma: list[np.ndarray] = field(default_factory=list)
    short: list[float] = field(default_factory=list)
    way: list[float] = field(default_factory=list)
    nees: list[float] = field(default_factory=list)


def measure(name: str, frames: int, pixels: int, words: list[str]) -> Found:
    """Run one scene, world:seed, in images of about so many pixels."""
    world, _, seed = name.partition(":")
    built = build(world, int(seed), 512)
    scale = min(1.0, (pixels / (built.camera.width * built.camera.height)) ** 0.5)
    camera = built.camera.resized(round(built.camera.width * scale), round(built.camera.height * scale))
    sequence = RenderedSequence(built, frames, int(seed), camera=camera)
    poses = sequence.ground_truth
    assert poses is not None
    seen: list[tuple[int, TwoFrameResult]] = []

    def remembering(*given: object, near: bool = False) -> TwoFrameResult:
        result = two_frame_motion(*given, near=near)  # type: ignore[arg-type]
        seen.append((given[3].reference.stamp, result))  # type: ignore[attr-defined]
        return result

    found, odometry = Found(), StereoOdometry(load_config(assignments=words))
    with patch.object(attempt, "two_frame_motion", remembering):
        for index in range(frames):
            seen.clear()
            odometry.track(sequence[index])
            if not seen:
                continue
            stamp, result = seen[-1]
            start = int(np.flatnonzero(sequence.stamps == stamp)[0])
            motion, truth, points = inverse(poses[start]) @ poses[index], sequence.truth(start), result.points
            u, v = np.rint(points.pixel).astype(int).T
            true = truth.disparity[v, u].astype(np.float64)
            good = truth.disparity_valid[v, u] & truth.flow_valid[v, u] & ~truth.moving[v, u] & (true > 0)
            depth = camera.fx * camera.baseline / np.where(good, true, 1.0)
            later = (rays(camera, points.pixel) * depth[:, None] - motion[:3, 3]) @ motion[:3, :3]
            after = camera.fx * camera.baseline / later[:, 2]
            error = np.stack((points.disparity - true, points.matched_disparity - after))[:, good]
            sigma = np.sqrt(np.stack((points.disparity_var, points.matched_disparity_var)))[:, good]
            found.true.append(true[good])
            found.error.append(error)
            found.sigma.append(error / sigma)
            relative = result.relative
            off = np.concatenate(
                (motion[:3, 3] - relative.motion[:3, 3], log_so3(motion[:3, :3] @ relative.motion[:3, :3].T))
            )
            found.short.append(float(off[:3] @ motion[:3, 3]))
            found.way.append(float(motion[:3, 3] @ motion[:3, 3]))
            found.nees.append(float(off @ np.linalg.solve(relative.covariance, off)))
    return found


def rows(name: str, found: Found) -> list[list[str]]:
    """The scene's lines of the table: all keypoints, then by true disparity."""
    true, error, sigma = (np.concatenate(each, axis=-1) for each in (found.true, found.error, found.sigma))
    short = f"{100 * sum(found.short) / sum(found.way):+.1f} %"
    lines = [[name, "all", *_cells(error, sigma), short, f"{np.mean(found.nees):.1f}"]]
    for low, high in pairwise(EDGES):
        among = (true >= low) & (true < high)
        if among.sum() >= 30:
            between = f"{low:g} to {high:g}" if high < EDGES[-1] else f"above {low:g}"
            lines.append(["", between, *_cells(error[:, among], sigma[:, among]), "", ""])
    return lines


def _cells(error: np.ndarray, sigma: np.ndarray) -> list[str]:
    pixels = [f"{each:+.2f}" for each in error.mean(axis=1)]
    sigmas = [f"{each:+.2f}" for each in np.clip(sigma, -10, 10).mean(axis=1)]
    return [str(error.shape[1]), pixels[0], sigmas[0], pixels[1], sigmas[1]]


def main() -> None:
    """Run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenes", nargs="+", default=SCENES, metavar="WORLD:SEED")
    parser.add_argument("--frames", type=int, default=40)
    parser.add_argument("--pixels", type=int, default=64_000)
    parser.add_argument("settings", nargs="*", help="key=value")
    args = parser.parse_args()
    table: list[list[str]] = []
    for name in args.scenes:
        table += rows(name, measure(name, args.frames, args.pixels, args.settings))
        print(table[-1], flush=True)
    head = ["scene", "true disparity", "keypoints", "reference [px]", "[sigma]", "found again [px]", "[sigma]"]
    text = f"errors of keypoints' disparities, mean\n{format_table([*head, 'motion short by', 'NEES'], table)}\n"
    atomic_write(Path(__file__).parent / "results" / "selection_bias.txt", f"{text}\n{measured_with()}\n")
    print(text)


if __name__ == "__main__":
    main()
