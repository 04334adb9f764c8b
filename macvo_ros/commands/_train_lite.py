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

"""macvo train lite: render, match, and train the network of the lite matcher."""

from __future__ import annotations

import argparse
from pathlib import Path

from macvo_ros.commands._parser import ConfigurableParser


def add_parser(networks: argparse._SubParsersAction[ConfigurableParser]) -> None:
    """Add `macvo train lite`."""
    parser = networks.add_parser(
        "lite",
        help="the variance network of the real-time matcher",
        description="Train the network of the lite matcher on scenes that are rendered for it. Everything is seeded "
        "and kept in the output folder; killed runs go on where they were when started again with the same options.",
    )
    parser.add_argument("--out", metavar="DIR", type=Path, required=True, help="folder for clips, progress and weights")
    parser.add_argument("--worlds", type=int, default=240, help="worlds to render, four clips of each (240)")
    parser.add_argument(
        "--photographs", metavar="DIR", type=Path, help="image files to paint half of the textures with"
    )
    parser.add_argument("--steps", type=int, default=8000, help="(8000)")
    parser.add_argument("--batch", type=int, default=8, help="samples a step, over all processes (8)")
    parser.add_argument("--learning-rate", type=float, default=2e-3, help="largest one (0.002)")
    parser.add_argument("--seed", type=int, default=0, help="of the network, the order and the crops (0)")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N (auto)")
    parser.add_argument("--save-every", metavar="STEPS", type=int, default=500, help="(500)")
    parser.add_argument("--report-every", metavar="STEPS", type=int, default=100, help="(100)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Train, and write lite.safetensors when all steps are done."""
    from macvo_ros.errors import ConfigError, SequenceError

    for name in ("worlds", "steps", "batch", "learning_rate", "save_every", "report_every"):
        if not getattr(args, name) > 0:
            raise ConfigError(f"--{name.replace('_', '-')}: expected a positive number, got {getattr(args, name)}")
    photographs: list[Path] = []
    if args.photographs is not None:
        photographs = sorted(p for p in args.photographs.rglob("*") if p.suffix.lower() in (".jpg", ".jpeg", ".png"))
        if not photographs:
            raise SequenceError(
                f"{args.photographs} holds no .jpg or .png files; leave --photographs out or give another"
            )

    import torch
    import torch.distributed

    from macvo_ros.matching.lite.network import LiteNetwork, save_network
    from macvo_ros.training.distributed import join_workers
    from macvo_ros.training.lite import LiteTraining, held_out_loss
    from macvo_ros.training.lite_samples import LiteSamples
    from macvo_ros.training.lite_scenes import find_clips, is_held_out, render_clips
    from macvo_ros.training.loop import TrainingSettings, train

    clips, evidence = args.out / "clips", args.out / "evidence"
    with join_workers(args.device) as worker:
        render_clips(clips, args.worlds, photographs, (worker.rank, worker.count), report=worker.leads)
        if worker.count > 1:
            torch.distributed.barrier()
        files = list(find_clips(clips, args.worlds))
        samples = LiteSamples([f for f in files if not is_held_out(f)], evidence, report=worker.leads)
        held_out = LiteSamples([f for f in files if is_held_out(f)], evidence)
        torch.manual_seed(args.seed)
        training = LiteTraining(LiteNetwork())
        settings = TrainingSettings(
            steps=args.steps, batch=args.batch, height=88, width=128, learning_rate=args.learning_rate, seed=args.seed
        )
        train(
            training, samples, settings, args.out, worker,
            run={"worlds": args.worlds, "photographs": len(photographs)},
            save_every=args.save_every, report_every=args.report_every,
            validate=(lambda: held_out_loss(training, held_out, worker.device)) if len(held_out) else None,
        )  # fmt: skip
        if worker.leads:
            facts = {"network": "lite", "steps": str(args.steps), "worlds": str(args.worlds), "seed": str(args.seed)}
            save_network(training.network, args.out / "lite.safetensors", facts)
            print(f"written {args.out / 'lite.safetensors'}")
    return 0
