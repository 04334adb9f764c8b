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

"""macvo run: a trajectory from a stereo sequence, with or without ground truth."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from macvo_ros.commands._options import (
    add_config_options,
    add_output_option,
    add_sequence_options,
    load_config_of,
    open_input,
    output_folder,
)

if TYPE_CHECKING:
    from macvo_ros.evaluation.report import Evaluation
    from macvo_ros.evaluation.runner import Run
    from macvo_ros.evaluation.truth_noise import TruthNoise
    from macvo_ros.sequences.sequence import Sequence
    from macvo_ros.settings.config import Config


EXIT_NOTHING_TRACKED = 1


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `macvo run`."""
    parser = subparsers.add_parser(
        "run",
        help="run the odometry over a sequence and write its trajectory",
        description="Run the odometry over a stereo sequence. Writes trajectory.txt (TUM), trajectory_kitti.txt, "
        "result.json and report.html; measures the error where the sequence has ground truth.",
    )
    add_sequence_options(parser)
    add_config_options(parser)
    add_output_option(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the odometry and write everything it has to say."""
    config = load_config_of(args)
    sequence = open_input(args)
    evaluation = run_and_measure(sequence, config)
    directory = output_folder(args, sequence)
    write_all(directory, evaluation)
    print(summary(evaluation))
    print(written_to(directory))
    return exit_code(evaluation)


def run_and_measure(sequence: Sequence, config: Config, noise: TruthNoise | None = None) -> Evaluation:
    """Track the whole sequence and, where it has ground truth (with its own noise), measure the error."""
    from macvo_ros.evaluation.runner import run_sequence
    from macvo_ros.odometry.pipelined_odometry import make_odometry

    return measured(sequence, run_sequence(sequence, make_odometry(config)), config, noise)


def measured(sequence: Sequence, result: Run, config: Config, noise: TruthNoise | None = None) -> Evaluation:
    """A run with its errors, where the sequence has ground truth; `auto` gets the name of the matcher it stood for."""
    from macvo_ros.evaluation.metrics import evaluate
    from macvo_ros.evaluation.report import Evaluation
    from macvo_ros.matching.auto import choose_matcher

    if config.matcher == "auto":
        config = replace(config, matcher=choose_matcher(config))
    if sequence.ground_truth is None or len(sequence) < 2:
        return Evaluation(sequence, result, config)
    metrics, errors = evaluate(result, sequence.ground_truth, noise)
    return Evaluation(sequence, result, config, metrics, errors)


def write_all(directory: Path, evaluation: Evaluation) -> None:
    """Write trajectories, figures and report; the folder appears only now, with whole files."""
    from macvo_ros.evaluation.report import write_report
    from macvo_ros.evaluation.result import REPORT, RESULT, result, write_json, write_trajectories

    write_trajectories(directory, evaluation.run, evaluation.sequence.ground_truth)
    document = result(evaluation.run, evaluation.metrics, evaluation.config, evaluation.ablation)
    write_json(directory / RESULT, document)
    write_report(directory / REPORT, evaluation)


def written_to(directory: Path) -> str:
    """What to say of a folder that was written."""
    return f"\nwritten to {directory}/: {', '.join(sorted(entry.name for entry in directory.iterdir()))}"


def exit_code(evaluation: Evaluation) -> int:
    """0, or EXIT_NOTHING_TRACKED where there is no trajectory to speak of."""
    from macvo_ros.evaluation.status_summary import summarise

    return EXIT_NOTHING_TRACKED if summarise(evaluation.run).nothing_tracked else 0


def summary(evaluation: Evaluation) -> str:
    """The table for the terminal, and what the run says of itself."""
    from macvo_ros.evaluation.paper import paper_sequence
    from macvo_ros.evaluation.report import table_rows
    from macvo_ros.evaluation.status_summary import describe, summarise
    from macvo_ros.evaluation.table import format_table, horizon_table

    run = evaluation.run
    lines = [f"{run.name}, {len(run.poses)} frames", "", format_table(*table_rows(evaluation))]
    if (name := paper_sequence(run.name, evaluation.sequence.camera.fx)) is not None:
        lines.append(f"(the paper ran the whole of {name}; * scale fitted to the truth)")
    if evaluation.metrics is None:
        lines.append("(no ground truth: the errors are unknown)")
    elif evaluation.metrics.horizons:
        lines += ["", "Is the covariance honest?", format_table(*horizon_table(evaluation.metrics.horizons))]
    lines += ["", describe(summarise(run))]
    return "\n".join(lines)
