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

"""How long the renderer takes for a stereo pair and for its truth: python bench/render_speed.py [WORLD ...]."""

from __future__ import annotations

import sys
import time

import cv2
import numpy as np

from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.rendering.sequence import RenderedSequence

SIZES = ((320, 240), (640, 640), (960, 600))


def median_ms(work: object, frames: int = 12) -> float:
    """Median milliseconds of work(index) over some frames, after one to warm up."""
    times = []
    for index in range(frames + 1):
        start = time.perf_counter()
        work(index)  # type: ignore[operator]
        times.append(1e3 * (time.perf_counter() - start))
    return float(np.median(times[1:]))


def main() -> None:
    """Print a table; one core."""
    cv2.setNumThreads(1)
    print(f"{'world':12s} {'size':>9s} {'pair ms':>8s} {'truth ms':>9s}")
    for name in sys.argv[1:] or ("room", "street", "shapes"):
        world = RenderedSequence(name, 1).world
        for width, height in SIZES:
            camera = StereoCamera(width / 2, width / 2, (width - 1) / 2, (height - 1) / 2, 0.12, width, height)
            sequence = RenderedSequence(world, 20, camera=camera)
            pair, truth = median_ms(sequence.__getitem__), median_ms(sequence.truth)
            print(f"{name:12s} {width:>4d}x{height:<4d} {pair:8.1f} {truth:9.1f}")


if __name__ == "__main__":
    main()
