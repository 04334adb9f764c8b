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

"""Memory that tracking takes above what Python with its libraries takes, 640x640 images.

    python -m bench.matcher_memory [--matchers lite classic] [--frames 12]

Each matcher runs in a process of its own. Writes bench/results/matcher_memory.txt.
"""

from __future__ import annotations

import argparse
import resource
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

from bench.accuracy import RESULTS
from macvo_ros.atomic_write import atomic_write
from macvo_ros.evaluation.environment import measured_with
from macvo_ros.evaluation.table import format_table


def resident() -> float:
    """Megabytes in use now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6


def measure(matcher: str, count: int) -> tuple[float, float, float]:
    """Megabytes before the odometry exists, after `count` frames, and the largest in between."""
    import torch

    from macvo_ros.odometry.stereo_odometry import StereoOdometry
    from macvo_ros.rendering.sequence import RenderedSequence
    from macvo_ros.rendering.worlds import ZED_X
    from macvo_ros.settings.config import load_config

    sequence = RenderedSequence("room", frames=3, seed=1, camera=ZED_X.resized(640, 640), texels=128)
    frames = [replace(sequence[index % 3], stamp=index * 66_666_667) for index in range(count)]
    torch.ones(64, 64) @ torch.ones(64, 64)  # what PyTorch loads on first use
    before, most = resident(), 0.0
    odometry = StereoOdometry(load_config(assignments=[f"matcher={matcher}"]))
    for frame in frames:
        odometry.track(frame)
        most = max(most, resident())
    return before, resident(), most


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--matchers", nargs="+", default=["lite", "classic"])
    parser.add_argument("--frames", type=int, default=12)
    args = parser.parse_args()
    rows = []
    for matcher in args.matchers:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as alone:
            before, after, most = alone.submit(measure, matcher, args.frames).result()
        rows.append([matcher, f"{before:.0f}", f"{after:.0f}", f"{most:.0f}", f"{most - before:.0f}"])
    text = format_table(["resident memory [MB]", "before", "after", "largest", "taken"], rows)
    atomic_write(RESULTS / "matcher_memory.txt", f"{text}\n\n{measured_with()}")
    print(text)


if __name__ == "__main__":
    main()
