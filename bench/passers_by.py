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

"""How much of the image does not look as the motion predicts where people and cars pass by, and the motion is right.

    python -m bench.passers_by [--first-seed 5201] [--scenes 12]

Rendered `dynamic` worlds, thirty frames each, whose motions are known: quantiles of the appearance mismatch over the
motions that are right to 2 cm and 10 mrad. What `doubt/checks.py` forgives is the 99 % one. Writes
bench/results/passers_by.txt.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import numpy.typing as npt

import macvo_ros.doubt.checks as checks
from macvo_ros.atomic_write import atomic_write
from macvo_ros.doubt.consistency import appearance_mismatch
from macvo_ros.evaluation.environment import measured_with
from macvo_ros.geometry.se3 import difference
from macvo_ros.odometry.stereo_odometry import StereoOdometry
from macvo_ros.rendering.sequence import RenderedSequence
from macvo_ros.settings.config import load_config

Float64 = npt.NDArray[np.float64]

RESULTS = Path(__file__).parent / "results" / "passers_by.txt"
FRAMES, METRES, RADIANS = 30, 0.02, 0.01
QUANTILES = (0.5, 0.9, 0.95, 0.99, 1.0)


def mismatches(seed: int) -> list[float]:
    """Of each right motion of a scene; of several attempts at a frame that of the best."""
    sequence = RenderedSequence("dynamic", FRAMES, seed)
    poses = sequence.ground_truth
    assert poses is not None
    odometry = StereoOdometry(load_config(assignments=["matcher=lite"]))
    attempts, found = list[tuple[Float64, float]](), list[float]()

    def noted(camera: Any, images: Any, reference: Any, motion: Float64, masked: Any) -> float:
        attempts.append((motion, appearance_mismatch(camera, images, reference, motion, masked)))
        return attempts[-1][1]

    with patch.object(checks, "appearance_mismatch", noted):
        for index in range(FRAMES):
            attempts.clear()
            odometry.track(sequence[index])
            truth = np.linalg.inv(poses[max(index - 1, 0)]) @ poses[index]
            errors = [np.abs(difference(motion, truth)) for motion, _ in attempts]
            sizes = [max(error[:3].max() / METRES, error[3:].max() / RADIANS) for error in errors]
            if sizes and min(sizes) < 1.0:
                found.append(attempts[int(np.argmin(sizes))][1])
    return found


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first-seed", type=int, default=5201)
    parser.add_argument("--scenes", type=int, default=12)
    args = parser.parse_args()
    found = [each for seed in range(args.first_seed, args.first_seed + args.scenes) for each in mismatches(seed)]
    values = ", ".join(f"{100 * q:g} %: {v:.3f}" for q, v in zip(QUANTILES, np.quantile(found, QUANTILES), strict=True))
    text = f"dynamic, seeds from {args.first_seed}, {args.scenes} scenes: {len(found)} right motions; {values}"
    print(text)
    atomic_write(RESULTS, f"{text}\n\n{measured_with()}\n")


if __name__ == "__main__":
    main()
