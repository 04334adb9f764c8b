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

"""Frame time by image size, beside KLT + PnP on the same frames in the same run: `python -m bench.sizes [SEQUENCE]`.

Run nothing beside it. The frames of the sequence (by default a rendered one) are scaled to each size beforehand; both
estimators then get every frame in turn. The accuracy at each size is that over the same frames, where the sequence has
ground truth. Writes bench/results/sizes.txt, or the name given.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from time import perf_counter

import cv2
import numpy as np
import numpy.typing as npt

from bench.klt_pnp_baseline import KltPnpOdometry
from macvo_ros.atomic_write import atomic_write
from macvo_ros.commands._image_size import image_size
from macvo_ros.evaluation.environment import measured_with
from macvo_ros.evaluation.metrics import relative_errors
from macvo_ros.evaluation.table import format_table
from macvo_ros.images.frame import StereoFrame
from macvo_ros.odometry.status import Status
from macvo_ros.odometry.stereo_odometry import StereoOdometry
from macvo_ros.rendering.sequence import RenderedSequence
from macvo_ros.sequences import Sequence, open_sequence
from macvo_ros.settings.config import load_config

SIZES = ("640x360", "640x640", "960x600", "1280x720", "1920x1200")
_WARM = 2
"""Frames at the start that are not timed."""


def resized(frame: StereoFrame, width: int, height: int) -> StereoFrame:
    """The frame at another size, with the camera to it."""
    camera = frame.camera.resized(width, height)
    kind = cv2.INTER_AREA if width <= frame.camera.width else cv2.INTER_CUBIC
    left, right = (np.asarray(cv2.resize(i, (width, height), interpolation=kind)) for i in (frame.left, frame.right))
    return StereoFrame(left, right, frame.stamp, camera)


def size_row(size: str, sequence: Sequence, count: int, matcher: str) -> list[str]:
    """Milliseconds of both, their ratio, the longest hundredth, and errors, at one size."""
    frames = [resized(sequence[index], *image_size(size)) for index in range(count)]
    ours, theirs = StereoOdometry(load_config(assignments=[f"matcher={matcher}"])), KltPnpOdometry()
    seconds, klt_seconds, klt_poses, estimates = [], [], [np.eye(4)], []
    for kept in frames:
        frame = replace(kept)  # as from a camera: what is computed of a frame goes with it
        start = perf_counter()
        estimate = ours.track(frame)
        middle = perf_counter()
        motion = theirs.track(frame)
        klt_seconds.append(perf_counter() - middle)
        seconds.append(middle - start)
        klt_poses.append(klt_poses[-1] @ motion)
        estimates.append((estimate.status, estimate.pose))  # dense maps are not kept: no robot does
    spent, klt = (1e3 * np.array(each[_WARM:]) for each in (seconds, klt_seconds))
    status = [status for status, _ in estimates]
    errors = ["-", "-"]
    if sequence.ground_truth is not None:
        truth = sequence.ground_truth[:count]
        errors = [
            _errors(poses, truth) for poses in (np.array([pose for _, pose in estimates]), np.array(klt_poses[1:]))
        ]
    return [
        size, f"{np.median(spent):.1f}", f"{np.quantile(spent, 0.99):.1f}", f"{np.median(klt):.1f}",
        f"{np.median(spent) / np.median(klt):.2f}", f"{status.count(Status.DEGRADED)} / {status.count(Status.LOST)}",
        *errors,
    ]  # fmt: skip


def _errors(poses: npt.NDArray[np.float64], truth: npt.NDArray[np.float64]) -> str:
    t_rel, r_rel = relative_errors(poses, truth)
    return f"{t_rel.mean():.5f} / {r_rel.mean():.4f}"


def main() -> None:
    """Print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sequence", nargs="?", help="a folder that `macvo run` reads (default: rendered, shapes 1)")
    parser.add_argument("--frames", type=int, default=40)
    parser.add_argument("--sizes", nargs="+", default=SIZES, metavar="WIDTHxHEIGHT")
    parser.add_argument("--matcher", default="lite")
    parser.add_argument("--log", default="sizes", help="name of the file in bench/results (sizes)")
    options = parser.parse_args()
    sequence: Sequence = RenderedSequence("shapes", options.frames, 1)
    if options.sequence:
        sequence = open_sequence(options.sequence)
    rows = [size_row(size, sequence, options.frames, options.matcher) for size in options.sizes]
    table = format_table(
        ["size", "ms", "p99", "KLT ms", "ratio", "degraded / lost", "t_rel / r_rel", "KLT t_rel / r_rel"], rows
    )
    text = f"{options.matcher}, {sequence.name}, {options.frames} frames scaled to each size\n{table}\n\n"
    text += f"{measured_with()}\n"
    print(text)
    atomic_write(Path(__file__).parent / "results" / f"{options.log}.txt", text)


if __name__ == "__main__":
    main()
