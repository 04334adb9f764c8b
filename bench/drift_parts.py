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

"""Whether drift is noise or bias: the same rendered walk, seen again and again with other noise of the sensor.

    python -m bench.drift_parts [--worlds room corridor] [--seed 201] [--frames 100] [--noises 4] [--windows 2 4]
                                [--set NAME=VALUE ...] [--log NAME]

The error at the end of the walk: its mean over the noises is what they have in common, bias of matching, of what is
learned of the calibration, or of the world; what it scatters by is noise. A window averages the latter. Writes
bench/results/NAME.txt (drift_parts.txt).
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from macvo_ros.atomic_write import atomic_write
from macvo_ros.evaluation.environment import measured_with
from macvo_ros.evaluation.metrics import motion_error
from macvo_ros.evaluation.table import format_table
from macvo_ros.geometry.se3 import inverse
from macvo_ros.odometry.stereo_odometry import StereoOdometry
from macvo_ros.rendering.sensor import Digitizer
from macvo_ros.rendering.sequence import RenderedSequence
from macvo_ros.settings.config import load_config

RESULTS = Path(__file__).parent / "results"
HEADING = ["walk", "window", "bias [mm]", "noise [mm]", "bias [deg]", "noise [deg]"]


def end_errors(world: str, seed: int, frames: int, noises: int, settings: list[list[str]]) -> np.ndarray:
    """(settings, noises, 6) errors of the motion from the first frame to the last, metres and radians."""
    out = np.empty((len(settings), noises, 6))
    for noise in range(noises):
        sequence = RenderedSequence(world, frames, seed)
        assert sequence.ground_truth is not None
        sequence._digitizer = Digitizer(sequence.world.sensor, 1000 + noise)  # the world stays, its noise is another
        odometries = [StereoOdometry(load_config(assignments=each)) for each in settings]
        for index in range(frames):
            frame = sequence[index]
            poses = [odometry.track(frame).pose for odometry in odometries]
        true = inverse(sequence.ground_truth[0]) @ sequence.ground_truth[-1]
        out[:, noise] = [motion_error(pose[None], true[None])[0] for pose in poses]
    return out


def main() -> None:
    """Walk, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", nargs="*", default=["room", "corridor"])
    parser.add_argument("--seed", type=int, default=201)
    parser.add_argument("--frames", type=int, default=100)
    parser.add_argument("--noises", type=int, default=4)
    parser.add_argument("--windows", type=int, nargs="*", default=[2, 4])
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE")
    parser.add_argument("--log", default="drift_parts")
    args = parser.parse_args()
    settings = [["matcher=lite", f"window.frames={frames}", *args.set] for frames in args.windows]
    rows = []
    for world in args.worlds:
        errors = end_errors(world, args.seed, args.frames, args.noises, settings)
        for frames, found in zip(args.windows, errors, strict=True):
            common, scatter = found.mean(axis=0), found.std(axis=0, ddof=1)
            parts = [1e3 * np.linalg.norm(each[:3]) for each in (common, scatter)]
            turns = [np.degrees(np.linalg.norm(each[3:])) for each in (common, scatter)]
            cells = [*(f"{part:.2f}" for part in parts), *(f"{turn:.4f}" for turn in turns)]
            rows.append([f"{world} {args.seed}", str(frames), *cells])
    title = f"End of {args.frames} frames, {args.noises} noises {' '.join(args.set)}".rstrip()
    text = f"{title}\n{format_table(HEADING, rows)}\n\n{measured_with()}\n"
    print(text)
    atomic_write(RESULTS / f"{args.log}.txt", text)


if __name__ == "__main__":
    main()
