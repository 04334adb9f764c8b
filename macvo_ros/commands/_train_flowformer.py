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

"""macvo train flowformer: the covariance branch of the paper's network."""

from __future__ import annotations

import argparse
from pathlib import Path

from macvo_ros.commands._image_size import image_size
from macvo_ros.commands._parser import ConfigurableParser
from macvo_ros.commands._train_options import add_training_options, check_positive, write_options


def add_parser(networks: argparse._SubParsersAction[ConfigurableParser]) -> None:
    """Add `macvo train flowformer`, with the authors' defaults."""
    parser = networks.add_parser(
        "flowformer",
        help="the covariance branch of the paper's network",
        description="Train the covariance branch of FlowFormerCov on a frozen FlowFormer. Killed runs resume where "
        "their progress was last saved when started again with the same options.",
    )
    parser.add_argument("--backbone", metavar="FILE", type=Path, required=True, help="FlowFormer checkpoint")
    parser.add_argument("--iterations", type=int, choices=range(1, 13), default=12, metavar="N", help="1 to 12 (12)")
    parser.add_argument(
        "--data", nargs="+", metavar="DATA", required=True,
        help="TartanAir folders (also with many trajectories below them) and render:WORLD:SEED:FRAMES",
    )  # fmt: skip
    parser.add_argument(
        "--held-out", nargs="+", metavar="DATA", default=[], help="data to measure on, never trained on"
    )
    parser.add_argument("--pairs", choices=("temporal", "stereo", "both"), default="temporal", help="(temporal)")
    parser.add_argument("--crop", metavar="WxH", type=image_size, default=(640, 480), help="(640x480)")
    parser.add_argument("--readers", type=int, default=2, help="processes that read images, for each that trains (2)")
    add_training_options(parser, steps=120_000, batch=6, learning_rate=12.5e-5, save_every=1000)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Train, and write flowformer.safetensors when all steps are done."""
    check_positive(args)
    import torch

    from macvo_ros.matching.flowformer.checkpoint import load_backbone
    from macvo_ros.matching.weights_file import sha256
    from macvo_ros.training.distributed import join_workers
    from macvo_ros.training.flowformer import CovarianceTraining, held_out_nll, write_network
    from macvo_ros.training.loop import TrainingSettings, train
    from macvo_ros.training.pair_sources import open_pairs

    settings = TrainingSettings(
        steps=args.steps, batch=args.batch, width=args.crop[0], height=args.crop[1],
        learning_rate=args.learning_rate, seed=args.seed,
    )  # fmt: skip
    pairs, held_out = open_pairs(args.data, args.pairs), open_pairs(args.held_out, args.pairs)
    with join_workers(args.device) as worker:
        if worker.leads:
            write_options(args)
        torch.manual_seed(args.seed)  # of a fresh covariance branch
        training = CovarianceTraining(load_backbone(args.backbone, args.iterations))
        train(
            training, pairs, settings, args.out, worker,
            run={"backbone": sha256(args.backbone), "iterations": args.iterations, "pairs": args.pairs},
            readers=args.readers, save_every=args.save_every, report_every=args.report_every,
            amp=not args.no_amp, tensorboard=args.tensorboard,
            validate=(lambda: held_out_nll(training, held_out, worker.device)) if len(held_out) else None,
        )  # fmt: skip
        if worker.leads:
            write_network(training, args.out / "flowformer.safetensors")
            print(f"written {args.out / 'flowformer.safetensors'}")
    return 0
