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

"""The faults of test/faults staged in real sequences: what is published, what is lost, what is wrong.

    python -m bench.real_faults SEQUENCE[:FIRST] [SEQUENCE[:FIRST] ...] [--frames 200] [--only WORD] [--matcher lite]

Each fault begins in the eighth of so many frames. Real truth is too coarse for three sigma of a motion, so a published
motion counts as wrong as in `bench.sound_frames`: beyond a tenth of its length and 3 cm together, or half a degree.
Writes bench/results/real_faults.txt.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import cv2
import numpy as np

from bench.sound_frames import WRONG
from macvo_ros.atomic_write import atomic_write
from macvo_ros.evaluation.environment import measured_with
from macvo_ros.evaluation.table import format_table
from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.geometry.se3 import difference, inverse
from macvo_ros.images.frame import StereoFrame
from macvo_ros.odometry.status import Status
from macvo_ros.odometry.stereo_odometry import StereoOdometry
from macvo_ros.sequences import Sequence, open_sequence
from macvo_ros.settings.config import load_config

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "test"), str(ROOT / "test" / "faults")]

from faulty_sequence import FAULTS, Shot, Source, Worth, apply  # noqa: E402


class RealSource(Source):
    """Frames of a real sequence; another lens is a zoom, another resolution a resize of what was taken."""

    def __init__(self, sequence: Sequence) -> None:
        self.sequence = sequence  # type: ignore[assignment]
        self._frames: dict[tuple[int, StereoCamera], StereoFrame] = {}

    def frame(self, index: int, camera: StereoCamera | None = None) -> StereoFrame:
        own = self.sequence.camera
        camera = camera or own
        if (index, camera) not in self._frames:
            frame = self.sequence[index]
            frame = StereoFrame(_colour(frame.left), _colour(frame.right), frame.stamp, own)
            if camera != own:
                scale = np.array([[camera.fx / own.fx, 0.0], [0.0, camera.fy / own.fy]])
                shift = np.array([camera.cx, camera.cy]) - scale @ (own.cx, own.cy)
                matrix, size = np.column_stack((scale, shift)), (camera.width, camera.height)
                left, right = (cv2.warpAffine(i, matrix, size, flags=cv2.INTER_AREA) for i in (frame.left, frame.right))
                frame = StereoFrame(left, right, frame.stamp, camera)
            self._frames[index, camera] = frame
        return self._frames[index, camera]


def _colour(image: np.ndarray) -> np.ndarray:
    """The faults paint in colour."""
    return image if image.ndim == 3 else np.asarray(cv2.cvtColor(image, cv2.COLOR_GRAY2RGB))


def judge(shots: list[Shot], odometry: StereoOdometry) -> list[str]:
    """Cells of a row: states, lies, recovery, published motions and how many of them are wrong."""
    states: list[Status] = []
    lies = published = wrong = waiting = recovery = 0
    for i, shot in enumerate(shots):
        estimate = odometry.track(shot.frame)
        states.append(estimate.status)
        if shot.worth is Worth.BLIND and (estimate.status is Status.TRACKING or estimate.landmarks is not None):
            lies += 1
        if estimate.status in (Status.TRACKING, Status.DEGRADED) and estimate.relative is not None:
            since = shot.frame.stamp - round(1e9 * estimate.elapsed)
            start = min(range(i), key=lambda k: abs(shots[k].frame.stamp - since))
            truth = inverse(shots[start].pose) @ shot.pose
            error = difference(estimate.relative.motion, truth)
            # Where the covariance says so itself, it is no lie.
            admitted = 3 * np.sqrt(np.trace(estimate.relative.covariance[:3, :3]))
            far = np.linalg.norm(error[:3]) > max(WRONG[0] * np.linalg.norm(truth[:3, 3]) + WRONG[1], admitted)
            turned = 3 * np.sqrt(np.trace(estimate.relative.covariance[3:, 3:]))
            published += 1
            wrong += bool(far or np.linalg.norm(error[3:]) > max(np.radians(WRONG[2]), turned))
        waiting = 0 if shot.worth is not Worth.GOOD or i == 0 else waiting + 1
        if waiting and (estimate.status is Status.TRACKING or i == len(shots) - 1):
            recovery, waiting = max(recovery, waiting), 0
    counts = "/".join(str(states.count(s)) for s in (Status.TRACKING, Status.DEGRADED, Status.LOST))
    return [counts, str(lies), str(recovery), f"{wrong} of {published}"]


def main() -> None:
    """Run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sequences", nargs="+", metavar="SEQUENCE[:FIRST]")
    parser.add_argument("--frames", type=int, default=200)
    parser.add_argument("--only", default="")
    parser.add_argument("--matcher", default="lite")
    args = parser.parse_args()
    rows = []
    for name in args.sequences:
        path, _, first = name.partition(":")
        begin = int(first or 0)
        source = RealSource(open_sequence(path, frames=(begin, begin + args.frames)))
        for fault in FAULTS:
            if args.only in fault:
                odometry = StereoOdometry(load_config(assignments=[f"matcher={args.matcher}"]))
                shots = apply(fault, source, 7, after=24)
                rows.append([source.sequence.name, fault, *judge(shots, odometry)])
                print("  ".join(rows[-1]), flush=True)
    head = ["sequence", "fault", "T/D/L", "lies", "recovery", "wrong motions published"]
    bad = sum(int(row[3]) > 0 or int(row[4]) > 5 or not row[5].startswith("0 ") for row in rows)
    text = f"{format_table(head, rows)}\n\n{len(rows)} runs, {bad} with a lie, a slow recovery or a wrong motion\n"
    atomic_write(Path(__file__).parent / "results" / "real_faults.txt", f"{text}\n{measured_with()}\n")
    print(text)


if __name__ == "__main__":
    main()
