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

"""Arithmetic of a frame in the flowformer network, counted without computing it.

    python -m bench.flowformer_flops

A frame is a stereo and a temporal pair; features of the earlier left image are kept. Counted are convolutions and
matrix products, a multiplication and its addition as two. Writes bench/results/flowformer_flops.txt.
"""

from __future__ import annotations

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.flop_counter import FlopCounterMode

from bench.accuracy import RESULTS
from macvo_ros.atomic_write import atomic_write
from macvo_ros.evaluation.environment import versions
from macvo_ros.evaluation.table import format_table
from macvo_ros.matching.flowformer.network import FlowFormerCov

SIZES = ((640, 12), (640, 4), (320, 12), (320, 4))


def flops(side: int, iterations: int) -> int:
    """Floating-point operations of a frame of side x side pixels."""
    counter = FlopCounterMode(display=False)
    with FakeTensorMode(), torch.no_grad():  # tensors with shapes and without numbers
        network = FlowFormerCov().eval()
        network.iterations = iterations
        image = torch.empty(1, 3, side, side)
        with counter:
            left, right = network.encode(image), network.encode(image, with_context=False)
            for other in (right, left):
                for state in network.refinements(left, other):
                    last = state
                network.memory_decoder.full_size(last)
    return counter.get_total_flops()


def main() -> None:
    """Count, print, write."""
    rows = [[f"{side}x{side}, {n} iterations", f"{flops(side, n) / 1e12:.2f}"] for side, n in SIZES]
    text = format_table(["a frame", "TFLOP"], rows)
    atomic_write(
        RESULTS / "flowformer_flops.txt",
        f"{text}\n\nmacvo_ros: {versions()['macvo_ros']}\ntorch: {versions()['torch']}\n",
    )
    print(text)


if __name__ == "__main__":
    main()
