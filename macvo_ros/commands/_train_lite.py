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

"""macvo train lite: render or cut clips, match them, train the network of the lite matcher, show what it learned."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from macvo_ros.commands._image_size import image_size
from macvo_ros.commands._parser import ConfigurableParser
from macvo_ros.commands._train_options import add_training_options, check_positive, write_options

if TYPE_CHECKING:
    import torch

    from macvo_ros.training.distributed import Worker
    from macvo_ros.training.lite import LiteTraining


def add_parser(networks: argparse._SubParsersAction[ConfigurableParser]) -> None:
    """Add `macvo train lite`."""
    parser = networks.add_parser(
        "lite",
        help="the variance network of the real-time matcher",
        description="Train the network of the lite matcher on scenes that are rendered for it, on TartanAir, or both. "
        "Everything is seeded and kept in the output folder; killed runs go on where they were when started again "
        "with the same options.",
    )
    parser.add_argument("--worlds", type=int, default=240, help="worlds to render, four clips of each (240)")
    parser.add_argument(
        "--photographs", metavar="DIR", type=Path, help="image files to paint half of the textures with"
    )
    parser.add_argument("--data", nargs="+", metavar="DIR", default=[], help="TartanAir folders, also with many below")
    parser.add_argument(
        "--held-out", nargs="+", metavar="DIR", default=[],
        help="TartanAir folders to measure on, beside a twelfth of the rendered worlds",
    )  # fmt: skip
    parser.add_argument("--crop", metavar="WxH", type=image_size, default=(512, 352), help="pixels (512x352)")
    add_training_options(parser, steps=8000, batch=8, learning_rate=2e-3, save_every=500)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Train, and write lite.safetensors, held_out.csv and training.png when all steps are done."""
    from macvo_ros.errors import ConfigError

    check_positive(args)
    if args.worlds < 0 or not (args.worlds or args.data):
        raise ConfigError(f"--worlds {args.worlds}: nothing to train on; render some worlds or give --data")
    photographs = find_photographs(args.photographs) if args.photographs is not None else []

    import torch

    from macvo_ros.matching.lite.network import LiteNetwork, save_network
    from macvo_ros.training.distributed import join_workers
    from macvo_ros.training.lite import LiteTraining, held_out_loss
    from macvo_ros.training.lite_clips import BLOCK
    from macvo_ros.training.lite_samples import LiteSamples
    from macvo_ros.training.loop import TrainingSettings, train

    width, height = (side // (2 * BLOCK) * 2 for side in args.crop)  # on the network's grid, even
    settings = TrainingSettings(
        steps=args.steps, batch=args.batch, height=height, width=width, learning_rate=args.learning_rate, seed=args.seed
    )
    facts = {"worlds": args.worlds, "photographs": len(photographs)}
    with join_workers(args.device) as worker:
        if worker.leads:
            write_options(args)
        clips, kept_apart = prepare(args, photographs, worker)
        samples = LiteSamples(clips, args.out / "evidence")
        held_out = LiteSamples(kept_apart, args.out / "evidence")
        torch.manual_seed(args.seed)
        training = LiteTraining(LiteNetwork())
        train(
            training, samples, settings, args.out, worker,
            run={**facts, **({"clips": len(clips)} if args.data else {})},
            save_every=args.save_every, report_every=args.report_every,
            amp=not args.no_amp, tensorboard=args.tensorboard,
            validate=(lambda: held_out_loss(training, held_out, worker.device)) if len(held_out) else None,
        )  # fmt: skip
        if worker.leads:
            facts |= {"clips": len(clips), "steps": args.steps, "seed": args.seed}
            named = {"network": "lite", **{name: str(value) for name, value in facts.items()}}
            save_network(training.network, args.out / "lite.safetensors", named)
            print(f"written {args.out / 'lite.safetensors'}")
            show(training, kept_apart, args.out, worker.device)
    return 0


def prepare(args: argparse.Namespace, photographs: list[Path], worker: Worker) -> tuple[list[Path], list[Path]]:
    """Make what is missing of clips and evidence, each process its share; the clips to train on and those kept apart.

    On several machines the output folder must be one that all of them see.
    """
    from macvo_ros.training.lite_samples import make_evidence
    from macvo_ros.training.lite_scenes import find_clips, is_held_out, render_clips
    from macvo_ros.training.lite_tartanair import tartanair_clips

    folder, share = args.out / "clips", (worker.rank, worker.count)
    render_clips(folder, args.worlds, photographs, share, report=worker.leads and args.worlds > 0)
    real = tartanair_clips(folder, args.data, share, report=worker.leads and bool(args.data))
    apart = tartanair_clips(folder, args.held_out, share)
    worker.wait()
    rendered = list(find_clips(folder, args.worlds))
    clips = [*(clip for clip in rendered if not is_held_out(clip)), *(clip for clip in real if clip not in apart)]
    kept_apart = [*(clip for clip in rendered if is_held_out(clip)), *apart]
    make_evidence([*clips, *kept_apart], args.out / "evidence", share, report=worker.leads)
    worker.wait()
    return clips, kept_apart


def show(training: LiteTraining, kept_apart: list[Path], out: Path, device: torch.device) -> None:
    """Write and print how honest the network is on what it was not trained on."""
    from macvo_ros.evaluation.table import format_table
    from macvo_ros.training.lite_report import ALL, calibrations, draw, held_out_errors, write_table

    if not kept_apart:
        print("no figures: nothing was held out (render at least 4 worlds, or give --held-out)")
        return
    errors = held_out_errors(training, kept_apart, out / "evidence", device)
    rows = calibrations(errors)
    write_table(out / "held_out.csv", rows)
    draw(out / "training.png", out, errors, rows)
    heading = ["held out", "", "z deviation", "in 1 sigma", "beyond 4", "correlation"]
    cells = [
        [row.match, row.stage, f"{row.z_deviation:.2f}", f"{row.within_1_sigma:.0%}", f"{row.beyond_4_sigma:.1%}",
         f"{row.correlation:.2f}"]
        for row in rows if row.sequence == ALL
    ]  # fmt: skip
    print(format_table(heading, cells))
    print(f"written {out / 'held_out.csv'} and {out / 'training.png'}")


def find_photographs(folder: Path) -> list[Path]:
    """All .jpg and .png files of a folder and below."""
    from macvo_ros.errors import SequenceError

    found = sorted(path for path in folder.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg", ".png"))
    if not found:
        raise SequenceError(f"{folder} holds no .jpg or .png files; leave --photographs out or give another")
    return found
