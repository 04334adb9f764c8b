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

"""macvo export: a network in a form that other runtimes take."""

from __future__ import annotations

import argparse
from pathlib import Path

from macvo_ros.commands._image_size import image_size
from macvo_ros.errors import WeightsError

TOLERANCE = 1e-3


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `macvo export`."""
    parser = subparsers.add_parser("export", help="export a network to ONNX", description="Export a network to ONNX.")
    formats = parser.add_subparsers(title="formats", metavar="FORMAT", required=True)
    onnx = formats.add_parser(
        "onnx",
        help="the flowformer network as ONNX, checked against torch",
        description="Write FlowFormerCov as ONNX and compare it with torch on this machine.",
    )
    onnx.add_argument("weights", metavar="WEIGHTS", type=Path, help="checkpoint: .pth, .pt or .safetensors")
    onnx.add_argument("output", metavar="OUTPUT", type=Path, help="file to write, .onnx")
    onnx.add_argument("--size", metavar="WxH", type=image_size, default=(640, 640), help="image size (default 640x640)")
    onnx.add_argument("--dynamic", action="store_true", help="any size and batch; --size is an example")
    onnx.add_argument("--iterations", type=int, choices=range(1, 13), default=12, metavar="N", help="1 to 12 (12)")
    onnx.add_argument("--no-check", action="store_true", help="do not compare with torch")
    onnx.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Export, then compare."""
    from macvo_ros.matching.flowformer.checkpoint import load_checkpoint
    from macvo_ros.matching.flowformer.onnx_export import export_onnx, largest_difference

    if args.output.suffix != ".onnx":
        raise WeightsError(f"{args.output}: expected a name that ends with .onnx")
    width, height = args.size
    network = load_checkpoint(args.weights, args.iterations)
    export_onnx(network, args.output, height, width, dynamic=args.dynamic)
    size = "any size" if args.dynamic else f"{width}x{height}"
    print(f"written {args.output} ({args.output.stat().st_size / 1e6:.1f} MB): {size}, {args.iterations} iterations")
    if not args.no_check:
        flow, variance = largest_difference(network, args.output, height, width)
        print(f"largest difference from torch: flow {flow:.2e} px, variance {variance:.2e} relative")
        if not flow <= TOLERANCE:
            raise WeightsError(
                f"{args.output} differs from torch by {flow:.2e} px (at most {TOLERANCE:g}); do not use it"
            )
    return 0
