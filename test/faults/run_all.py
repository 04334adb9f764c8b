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

"""Every fault through the odometry core, in eight rendered scenes: `python test/faults/run_all.py`.

    python test/faults/run_all.py --scenes room:7 park:13 --only late arm --details matcher=classic
    python test/faults/run_all.py --log bench/results/faults

Each world keeps its own camera, made smaller (about 64 000 pixels; park and drone with a wider baseline). Prints a line
a run, then the runs that failed; --log also writes these to .txt and all figures to .json. Ends with 1 when one fails.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import traceback
from pathlib import Path
from typing import Any

import cv2
import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "test"), str(Path(__file__).resolve().parent)]

from faulty_sequence import FAULTS, Source, apply  # noqa: E402
from honesty import Verdict, run  # noqa: E402

from macvo_ros.atomic_write import atomic_write  # noqa: E402
from macvo_ros.evaluation.environment import machine, versions  # noqa: E402
from macvo_ros.geometry.camera import StereoCamera  # noqa: E402
from macvo_ros.odometry.status import Status  # noqa: E402
from macvo_ros.odometry.stereo_odometry import StereoOdometry  # noqa: E402
from macvo_ros.rendering.sequence import RenderedSequence  # noqa: E402
from macvo_ros.rendering.worlds import build  # noqa: E402
from macvo_ros.settings.config import load_config  # noqa: E402

SCENES = ("room:7", "room:11", "corridor:12", "park:13", "drone:14", "street:15", "shapes:16", "mixture:17")
FRAMES = 84
PIXELS = 64_000
OUTSIDE_REACH = {"park": 40.0, "drone": 40.0}


def small(camera: StereoCamera, reach: float) -> StereoCamera:
    """The same field of view in an image of about PIXELS pixels; disparity is at least 1 `reach` metres away.

    (In so small an image the ZED X's baseline of 12 cm shows too little of a park to track it even without faults.)
    """
    scale = (PIXELS / (camera.width * camera.height)) ** 0.5
    camera = camera.resized(round(camera.width * scale), round(camera.height * scale))
    return dataclasses.replace(camera, baseline=max(camera.baseline, reach / camera.fx))


def scene(name: str) -> Source:
    """The frames of world:seed."""
    world, _, seed = name.partition(":")
    built = build(world, int(seed or 7), 512)
    camera = small(built.camera, OUTSIDE_REACH.get(world, 0.0))
    return Source(RenderedSequence(built, FRAMES, seed=int(seed or 7), camera=camera))


def figures(fault: str, where: str, verdict: Verdict) -> dict[str, Any]:
    """What is kept of a run."""
    return {
        "fault": fault,
        "scene": where,
        "tracking": verdict.count(Status.TRACKING),
        "degraded": verdict.count(Status.DEGRADED),
        "lost": verdict.count(Status.LOST),
        "poses in 3 sigma": round(verdict.pose_inside, 3),
        "motions in 3 sigma": round(verdict.motion_inside, 3),
        "recovery": max(verdict.recovery, default=0),
        "end error [m]": round(verdict.end_error, 4),
        "end sigma [m]": round(verdict.end_sigma, 4),
        "complaints": verdict.complaints(),
    }


def line(row: dict[str, Any]) -> str:
    """A row of figures as text."""
    states = f"{row['tracking']}/{row['degraded']}/{row['lost']}"
    inside = f"{row['poses in 3 sigma']:5.0%} {row['motions in 3 sigma']:5.0%}"
    return (
        f"{row['scene']:12} {row['fault']:30} {states:9} {inside} "
        f"{row['recovery']:3} {row['end error [m]']:8.3f} {row['end sigma [m]']:8.3f}  {'; '.join(row['complaints'])}"
    ).rstrip()


HEAD = "scene        fault                          T/D/L     poses motions rec. error sigma [m]  complaints"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--scenes", nargs="+", default=SCENES, metavar="WORLD:SEED")
    parser.add_argument("--only", nargs="+", default=[""], help="faults whose name contains one of these")
    parser.add_argument("--details", action="store_true", help="states and NEES of every frame")
    parser.add_argument("--log", type=Path, help="write FILE.json and FILE.txt")
    parser.add_argument("--append", action="store_true", help="keep the runs that the log holds already")
    parser.add_argument("settings", nargs="*", help="key=value")
    options, more = parser.parse_known_args()
    words = [*options.settings, *more, *(word for word in (*options.scenes, *options.only) if "=" in word)]
    cv2.setNumThreads(1)
    rows: list[dict[str, Any]] = []
    print(HEAD)
    for where in (name for name in options.scenes if "=" not in name):
        source = scene(where)
        for fault in FAULTS:
            if not any(word in fault for word in options.only):
                continue
            try:
                verdict, _ = run(apply(fault, source, 7), StereoOdometry(load_config(None, words)))
            except Exception as error:
                traceback.print_exc()
                rows.append({"fault": fault, "scene": where, "complaints": [repr(error)]})
                continue
            rows.append(figures(fault, where, verdict))
            print(line(rows[-1]), flush=True)
            if options.details:
                print("".join("ITDL"[s] for s in verdict.states))
                print("pose", np.round(verdict.pose_nees, 1).tolist())
                print("motion", np.round(verdict.motion_nees, 1).tolist())
                print("\n".join(f"{i} {r}" for i, r in enumerate(verdict.reasons) if r))
    if options.log and options.append and options.log.with_suffix(".json").exists():
        rows = json.loads(options.log.with_suffix(".json").read_text())["runs"] + rows
    failed = [row for row in rows if row["complaints"]]
    summary = [f"{len(rows)} runs, {len(failed)} failed ({' '.join(words) or 'defaults'})"]
    summary += [f"  {row['scene']}, {row['fault']}: {'; '.join(row['complaints'])}" for row in failed]
    print("\n".join(summary))
    if options.log:
        made = {"versions": versions(), "machine": machine(), "settings": words}
        table = [HEAD, *(line(row) for row in rows if "tracking" in row), *summary]
        table += [f"{key}: {value}" for part in (versions(), machine()) for key, value in part.items()]
        atomic_write(options.log.with_suffix(".json"), json.dumps({**made, "runs": rows}, indent=1) + "\n")
        atomic_write(options.log.with_suffix(".txt"), "\n".join(table) + "\n")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
