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

"""Every fault through the odometry core: `python test/faults/run_all.py [--worlds room shapes] [--seeds 2]`.

Prints a table (Markdown) and ends with 1 when a run fails.
"""

from __future__ import annotations

import argparse
import sys
import traceback
from pathlib import Path

import cv2
import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "test"), str(Path(__file__).resolve().parent)]

from faulty_sequence import FAULTS, Source, apply  # noqa: E402
from honesty import run  # noqa: E402

from macvo_ros.config import load_config  # noqa: E402
from macvo_ros.odometry import StereoOdometry  # noqa: E402
from macvo_ros.rendering.sequence import RenderedSequence  # noqa: E402
from macvo_ros.rendering.worlds import ZED_X  # noqa: E402
from macvo_ros.status import Status  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", nargs="+", default=["room"])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--frames", type=int, default=72)
    parser.add_argument("--only", default="", help="faults whose name contains this")
    parser.add_argument("--details", action="store_true", help="states and NEES of every frame")
    parser.add_argument("settings", nargs="*", help="key=value")
    options = parser.parse_args()
    cv2.setNumThreads(1)
    print(
        "| fault | world | tracking/degraded/lost | poses in 3 sigma | motions | recovery | end error / sigma (m) | |"
    )
    print("|---|---|---|---|---|---|---|---|")
    failed = 0
    for world in options.worlds:
        for seed in range(7, 7 + options.seeds):
            camera = ZED_X.resized(320, 200)
            source = Source(RenderedSequence(world, options.frames, seed=seed, camera=camera, texels=512))
            for name in FAULTS:
                if options.only not in name:
                    continue
                odometry = StereoOdometry(load_config(None, options.settings))
                try:
                    verdict, _ = run(apply(name, source, seed), odometry)
                except Exception:
                    traceback.print_exc()
                    failed += 1
                    continue
                complaints = verdict.complaints()
                failed += bool(complaints)
                states = "/".join(str(verdict.count(s)) for s in (Status.TRACKING, Status.DEGRADED, Status.LOST))
                print(
                    f"| {name} | {world} {seed} | {states} | {verdict.pose_inside:.0%} | {verdict.motion_inside:.0%} | "
                    f"{max(verdict.recovery, default=0)} | {verdict.end_error:.3f} / {verdict.end_sigma:.3f} | "
                    f"{'; '.join(complaints)} |",
                    flush=True,
                )
                if options.details:
                    print("".join("ITDL"[s] for s in verdict.states))
                    print("pose", np.round(verdict.pose_nees, 1).tolist())
                    print("motion", np.round(verdict.motion_nees, 1).tolist())
                    print("\n".join(f"{i} {r}" for i, r in enumerate(verdict.reasons) if r))
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
