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

"""Time and memory of the flowformer matcher on a CPU, stage by stage, beside the authors' network.

    python bench/flowformer.py [--size 640x640] [--iterations 12] [--threads 2] [--mode accurate]

One frame: stereo pair and temporal pair, the second call of a sequence (the reference's features are cached). Weights
and images are random: neither time nor memory depends on them. On a machine that has other work, only the CPU time with
one thread means anything.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from macvo_ros.evaluation.environment import measured_with
from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.images.frame import StereoFrame
from macvo_ros.matching.flowformer import FlowFormerCov
from macvo_ros.matching.flowformer.matcher import FlowFormerMatcher
from macvo_ros.settings.config import FlowFormerConfig

AUTHORS = {
    (640, 12): "authors: total 50.7 s, encoders 3.6, cost encoder 28.2, decoder 18.6, peak 5.3 GB",
    (640, 4): "authors: total 43.0 s, encoders 4.7, cost encoder 29.9, decoder 8.1, peak 4.7 GB",
    (320, 12): "authors: total 8.6 s, encoders 0.7, cost encoder 2.5, decoder 5.4, peak 1.0 GB",
}
"""Their public code, 2 CPU threads, float32, one machine of this class."""


class Stopwatch:
    """Adds up the seconds spent in methods it wraps."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)

    def wrap(self, owner: Any, method: str, stage: str) -> None:
        """Count the time of `owner.method` under `stage`."""
        inner: Callable[..., Any] = getattr(owner, method)

        def timed(*args: Any, **kwargs: Any) -> Any:
            start = time.perf_counter()
            try:
                return inner(*args, **kwargs)
            finally:
                self.seconds[stage] += time.perf_counter() - start

        setattr(owner, method, timed)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", default="640x640")
    parser.add_argument("--iterations", type=int, default=12)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--mode", choices=("accurate", "fast"), default="accurate")
    parser.add_argument("--compile", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    width, height = map(int, args.size.split("x"))
    random = np.random.default_rng(0)
    camera = StereoCamera(320.0, 320.0, width / 2, height / 2, 0.25, width, height)

    def frame(stamp: int) -> StereoFrame:
        left, right = random.integers(0, 256, (2, height, width, 3), dtype=np.uint8)
        return StereoFrame(left, right, stamp, camera)

    torch.manual_seed(0)
    network = FlowFormerCov()
    config = FlowFormerConfig(iterations=args.iterations, mode=args.mode, compile=args.compile)
    matcher = FlowFormerMatcher(network, config, torch.device("cpu"))
    watch = Stopwatch()
    watch.wrap(network, "encode", "encoders")
    watch.wrap(network.memory_encoder, "forward", "cost encoder")
    watch.wrap(network.memory_encoder.cost_perceiver_encoder, "read", "  its patch embedding")
    for method in ("start", "forward", "full_size"):
        watch.wrap(network.memory_decoder, method, "decoder")
    first, second = frame(0), frame(1)
    start = time.perf_counter()
    matcher.match(None, first)
    print(f"first frame (stereo only{', compiling' if args.compile else ''}): {time.perf_counter() - start:.1f} s")
    watch.seconds.clear()
    start, cpu = time.perf_counter(), time.process_time()
    matcher.match(first, second)
    total, cpu = time.perf_counter() - start, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"{width}x{height}, {args.iterations} iterations, {args.mode}, {args.threads} threads")
    print(f"ours: total {total:.1f} s ({cpu:.1f} s of CPU time), peak {peak:.1f} GB")
    for stage, seconds in watch.seconds.items():
        print(f"  {stage:22s}{seconds:6.1f} s")
    if width == height and (width, args.iterations) in AUTHORS:
        print(AUTHORS[width, args.iterations])
    print(f"\n{measured_with()}", end="")


if __name__ == "__main__":
    main()
