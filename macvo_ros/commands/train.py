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

"""macvo train: train a matching network. Start with torchrun to use several processes."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING

from macvo_ros.commands import _train_lite

if TYPE_CHECKING:
    from macvo_ros.training.loop import TrainingSettings


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `macvo train`, with one sub-command a network."""
    parser = subparsers.add_parser(
        "train",
        help="train a matching network",
        description="Train a matching network. Several processes: torchrun --nproc-per-node N -m macvo_ros.cli train",
    )
    networks = parser.add_subparsers(title="networks", metavar="NETWORK", required=True)
    flowformer = networks.add_parser(
        "flowformer",
        help="the covariance branch of the paper's network",
        description="Train the covariance branch of FlowFormerCov on a frozen FlowFormer. Killed runs resume where "
        "their progress was last saved when started again with the same options.",
    )
    flowformer.add_argument("--backbone", metavar="FILE", type=Path, required=True, help="FlowFormer checkpoint")
    flowformer.add_argument(
        "--iterations", type=int, choices=range(1, 13), default=12, metavar="N", help="1 to 12 (12)"
    )
    add_training_options(flowformer, steps=120_000, batch=6, size=(640, 480), learning_rate=12.5e-5)
    flowformer.set_defaults(run=run_flowformer)
    _train_lite.add_parser(networks)


def add_training_options(
    parser: argparse.ArgumentParser, *, steps: int, batch: int, size: tuple[int, int], learning_rate: float
) -> None:
    """Options that the training of any network takes, with a network's defaults."""
    parser.add_argument(
        "--data", nargs="+", metavar="DATA", required=True,
        help="TartanAir folders (also with many trajectories below them) and render:WORLD:SEED:FRAMES",
    )  # fmt: skip
    parser.add_argument(
        "--held-out", nargs="+", metavar="DATA", default=[], help="data to measure on, never trained on"
    )
    parser.add_argument("--pairs", choices=("temporal", "stereo", "both"), default="temporal", help="(temporal)")
    parser.add_argument("--out", metavar="DIR", type=Path, required=True, help="folder for progress and weights")
    parser.add_argument("--steps", type=int, default=steps, help=f"({steps})")
    parser.add_argument("--batch", type=int, default=batch, help=f"pairs a step, over all processes ({batch})")
    parser.add_argument("--crop", metavar="WxH", type=_size, default=size, help=f"({size[0]}x{size[1]})")
    parser.add_argument("--learning-rate", type=float, default=learning_rate, help=f"largest one ({learning_rate:g})")
    parser.add_argument("--seed", type=int, default=0, help="of the order of pairs and their crops (0)")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N (auto)")
    parser.add_argument("--readers", type=int, default=2, help="processes that read images, for each that trains (2)")
    parser.add_argument("--save-every", metavar="STEPS", type=int, default=1000, help="(1000)")
    parser.add_argument("--report-every", metavar="STEPS", type=int, default=100, help="(100)")


def training_settings(args: argparse.Namespace) -> TrainingSettings:
    """The settings that `add_training_options` asked for."""
    from macvo_ros.errors import ConfigError
    from macvo_ros.training.loop import TrainingSettings

    for name in ("steps", "batch", "save_every", "report_every", "learning_rate"):
        if not getattr(args, name) > 0:
            raise ConfigError(f"--{name.replace('_', '-')}: expected a positive number, got {getattr(args, name)}")
    return TrainingSettings(
        steps=args.steps, batch=args.batch, width=args.crop[0], height=args.crop[1],
        learning_rate=args.learning_rate, seed=args.seed,
    )  # fmt: skip


def run_flowformer(args: argparse.Namespace) -> int:
    """Train, and write flowformer.safetensors when all steps are done."""
    from macvo_ros.matching.flowformer.checkpoint import load_backbone
    from macvo_ros.matching.weights_file import sha256
    from macvo_ros.training.distributed import join_workers
    from macvo_ros.training.flowformer import CovarianceTraining, held_out_nll, write_network
    from macvo_ros.training.loop import train
    from macvo_ros.training.pair_sources import open_pairs

    settings = training_settings(args)
    pairs, held_out = open_pairs(args.data, args.pairs), open_pairs(args.held_out, args.pairs)
    with join_workers(args.device) as worker:
        import torch

        torch.manual_seed(args.seed)  # of a fresh covariance branch
        training = CovarianceTraining(load_backbone(args.backbone, args.iterations))
        train(
            training, pairs, settings, args.out, worker,
            run={"backbone": sha256(args.backbone), "iterations": args.iterations, "pairs": args.pairs},
            readers=args.readers, save_every=args.save_every, report_every=args.report_every,
            validate=(lambda: held_out_nll(training, held_out, worker.device)) if len(held_out) else None,
        )  # fmt: skip
        if worker.leads:
            write_network(training, args.out / "flowformer.safetensors")
            print(f"written {args.out / 'flowformer.safetensors'}")
    return 0


def _size(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d+)x(\d+)", text)
    if not found or min(int(found[1]), int(found[2])) < 32:
        raise argparse.ArgumentTypeError(f"expected WIDTHxHEIGHT of at least 32x32, for example 640x480, got {text!r}")
    return int(found[1]), int(found[2])
