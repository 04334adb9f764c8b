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

"""macvo weights: look at a checkpoint of the flowformer matcher, and convert it to safetensors."""

from __future__ import annotations

import argparse
from pathlib import Path

from macvo_ros.errors import WeightsError


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `macvo weights`."""
    parser = subparsers.add_parser(
        "weights",
        help="inspect or convert a network checkpoint",
        description="Inspect a FlowFormerCov checkpoint or convert it to safetensors. Nothing is downloaded, and no "
        "code in the file is run.",
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    info = actions.add_parser("info", help="what is in the file, and whether the flowformer matcher can use it")
    info.add_argument("file", metavar="FILE", type=Path, help=".pth, .pt or .safetensors")
    info.add_argument("--tensors", action="store_true", help="list every tensor")
    info.set_defaults(run=run_info)
    convert = actions.add_parser("convert", help="write a checked checkpoint as safetensors")
    convert.add_argument("file", metavar="FILE", type=Path, help=".pth, .pt or .safetensors")
    convert.add_argument("output", metavar="OUTPUT", type=Path, help="file to write, .safetensors")
    convert.set_defaults(run=run_convert)


def run_info(args: argparse.Namespace) -> int:
    """Print what is in the file; raises WeightsError after it where the matcher cannot use it."""
    from macvo_ros.matching.flowformer import FlowFormerCov
    from macvo_ros.matching.flowformer.checkpoint import UNUSED, clean_state
    from macvo_ros.matching.weights_file import read_metadata, read_tensors, sha256

    tensors = read_tensors(args.file)
    types = sorted({str(tensor.dtype).removeprefix("torch.") for tensor in tensors.values()})
    print(f"file        {args.file} ({args.file.stat().st_size / 1e6:.1f} MB)")
    print(f"sha256      {sha256(args.file)}")
    print(
        f"tensors     {len(tensors)}, {sum(tensor.numel() for tensor in tensors.values())} values, {', '.join(types)}"
    )
    for key, value in sorted(read_metadata(args.file).items()):
        print(f"metadata    {key}: {value}")
    if args.tensors:
        for name, tensor in tensors.items():
            print(
                f"  {name}  {'x'.join(map(str, tensor.shape)) or 'scalar'}  {str(tensor.dtype).removeprefix('torch.')}"
            )
    network = FlowFormerCov()
    try:
        clean_state(tensors, network.state_dict())
    except WeightsError as error:
        raise WeightsError(f"{args.file}: {error}") from None
    unused = sum(name.removeprefix("module.") in UNUSED for name in tensors)
    parameters = sum(parameter.numel() for parameter in network.parameters())
    print(f"network     FlowFormerCov, {parameters} parameters, complete; {unused} unused tensors are ignored")
    return 0


def run_convert(args: argparse.Namespace) -> int:
    """Load strictly, write what the network uses."""
    from macvo_ros.matching.flowformer.checkpoint import load_checkpoint
    from macvo_ros.matching.flowformer.onnx_export import NETWORK
    from macvo_ros.matching.weights_file import sha256, write_safetensors

    if args.output.suffix != ".safetensors":
        raise WeightsError(f"{args.output}: expected a name that ends with .safetensors")
    network = load_checkpoint(args.file)
    metadata = {"network": NETWORK, "source": args.file.name, "source_sha256": sha256(args.file)}
    write_safetensors(args.output, network.state_dict(), metadata)
    print(f"written {args.output} ({args.output.stat().st_size / 1e6:.1f} MB)")
    return 0
