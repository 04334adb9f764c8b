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

"""macvo eval: how good the odometry is on a sequence with ground truth."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from macvo_ros.commands._options import add_config_options, add_sequence_options, load_config_of, open_input
from macvo_ros.commands.run import exit_code, run_and_measure, summary, write_all, written_to
from macvo_ros.errors import SequenceError


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `macvo eval`."""
    parser = subparsers.add_parser(
        "eval",
        help="measure the odometry on a sequence with ground truth",
        description="Run the odometry over a sequence with ground truth and print t_rel, r_rel, the KITTI benchmark's "
        "t_err and r_err, ATE, NEES, the share of errors within 3 sigma by horizon, speed and status counts; the "
        "paper's own figures beside them where it has any. Without ground truth it prints what needs none.",
    )
    add_sequence_options(parser)
    add_config_options(parser)
    parser.add_argument(
        "--ablation",
        action="store_true",
        help="run the paper's ablations and windows of 2 to 16 frames too (nine runs more)",
    )
    parser.add_argument(
        "--truth-noise", metavar="M,DEG,S[,M/S,S[,DEG/S,S[,DEG]]]",
        help="noise of the truth itself, for the honesty by horizon: one sigma of position (metres) and attitude "
        "(degrees), and the seconds over which it changes; then, for a truth that drifts, of its velocity, and the "
        "seconds over which that changes, the same of its attitude, and what all that has turned its attitude by",
    )  # fmt: skip
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the figures as JSON")
    parser.add_argument("--out", metavar="DIR", type=Path, help="write trajectories, JSON and report.html there")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run, measure, print and, if asked, write."""
    from macvo_ros.evaluation.ablation import OURS, format_ablation, run_ablation
    from macvo_ros.evaluation.result import result, write_json
    from macvo_ros.evaluation.truth_noise import parse_truth_noise

    config = load_config_of(args)
    if args.ablation:
        config = OURS.applied(config)
    sequence = open_input(args)
    if args.ablation and sequence.ground_truth is None:
        raise SequenceError(f"{sequence.name} has no ground truth to compare the variants by; leave out --ablation")
    if len(sequence) < 2:
        raise SequenceError(f"{sequence.name}: evaluation needs at least 2 frames, got {len(sequence)}; widen --frames")
    noise = None if args.truth_noise is None else parse_truth_noise(args.truth_noise)
    evaluation = run_and_measure(sequence, config, noise)
    if args.ablation:
        evaluation = replace(evaluation, ablation=run_ablation(sequence, config, evaluation.metrics))
    print(summary(evaluation))
    if evaluation.ablation is not None:
        print(f"\nAblation\n{format_ablation(sequence, evaluation.ablation)}")
    if args.json is not None:
        document = result(evaluation.run, evaluation.metrics, evaluation.config, evaluation.ablation)
        write_json(args.json, document)
    if args.out is not None:
        write_all(args.out, evaluation)
        print(written_to(args.out))
    return exit_code(evaluation)
