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

"""Ours and the KLT + PnP baseline on every sequence of a folder, with the machine and the versions that measured them.

    python -m bench.accuracy [DATA] [--matcher NAME] [--ablation] [--log NAME]

DATA: a folder that holds sequences with ground truth in any layout macvo reads; `../shared/data` when left out. Writes
bench/results/accuracy.json and .txt (accuracy_NAME for a matcher other than classic; --log: another name, for the
development sequences for instance).
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.klt_pnp_baseline import run_baseline
from macvo_ros.atomic_write import atomic_write
from macvo_ros.commands.run import run_and_measure
from macvo_ros.errors import MacvoError, SequenceError
from macvo_ros.evaluation.ablation import run_ablation
from macvo_ros.evaluation.environment import machine, measured_with, versions
from macvo_ros.evaluation.metrics import absolute_trajectory_error, relative_errors
from macvo_ros.evaluation.paper import paper_rows
from macvo_ros.evaluation.report import Evaluation
from macvo_ros.evaluation.result import result, write_json
from macvo_ros.evaluation.table import cells, format_table, headings, number
from macvo_ros.sequences import Sequence, open_sequence, recognise
from macvo_ros.settings.config import Config, load_config

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench" / "results"


def find_sequences(data: Path) -> list[Sequence]:
    """Every sequence with ground truth directly in `data`, by name."""
    if not data.is_dir():
        raise SequenceError(f"{data} is not a folder; give one that holds sequences")
    found = [open_sequence(path) for path in sorted(data.iterdir()) if path.is_dir() and recognise(path) is not None]
    known = [sequence for sequence in found if sequence.ground_truth is not None]
    if not known:
        raise SequenceError(f"{data} holds no sequence with ground truth")
    return known


def measure_baseline(sequence: Sequence) -> dict[str, float]:
    """Figures of the baseline on a sequence."""
    assert sequence.ground_truth is not None
    poses, fps = run_baseline(sequence)
    translation, rotation = relative_errors(poses, sequence.ground_truth)
    ate, _ = absolute_trajectory_error(poses, sequence.ground_truth)
    return {"t_rel": float(translation.mean()), "r_rel": float(rotation.mean()), "ate_rmse": ate, "fps": fps}


def measure(sequence: Sequence, config: Config, ablation: bool) -> tuple[Evaluation, dict[str, float]]:
    """Ours and the baseline on a sequence."""
    evaluation = run_and_measure(sequence, config)
    if ablation:
        evaluation = replace(evaluation, ablation=run_ablation(sequence, config, evaluation.metrics))
    return evaluation, measure_baseline(sequence)


def table(measured: list[tuple[Evaluation, dict[str, float]]]) -> str:
    """Ours, the baseline and the paper's MAC-VO sequence by sequence, as text."""
    lines = []
    for evaluation, baseline in measured:
        sequence, metrics = evaluation.sequence, evaluation.metrics
        assert metrics is not None
        rows = [
            [f"macvo_ros, {evaluation.config.matcher}", *cells(metrics.as_dict())],
            ["OpenCV KLT + PnP", *cells(baseline)],
        ]
        for row in paper_rows(sequence.name, sequence.camera.fx):
            if row.method.startswith("MAC-VO"):
                rows.append(["paper's MAC-VO, whole sequence", *cells({"t_rel": row.t_rel, "r_rel": row.r_rel})])
        for name, variant in (evaluation.ablation or {}).items():
            rows.append([f"ablation: {name}", *cells(variant.as_dict())])
        share = metrics.t_rel / baseline["t_rel"]
        gain = f"{number(100 * abs(1 - share), 0)} % {'less' if share < 1 else 'more'} t_rel than the baseline"
        lines += [f"{sequence.name}, {len(sequence)} frames: {gain}", format_table(["", *headings()], rows), ""]
    return "\n".join(lines)


def main() -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(
        description="accuracy of macvo_ros and of a baseline on every sequence of a folder"
    )
    parser.add_argument("data", nargs="?", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--matcher", default="classic")
    parser.add_argument("--log", help="name of the files instead of accuracy")
    parser.add_argument("--ablation", action="store_true", help="the paper's ablations too")
    args = parser.parse_args()
    try:
        config = load_config(assignments=[f"matcher={args.matcher}"])
        measured = [measure(sequence, config, args.ablation) for sequence in find_sequences(args.data)]
    except MacvoError as error:
        print(f"accuracy: {error}", file=sys.stderr)
        return 2
    text = table(measured)
    document: dict[str, Any] = {"versions": versions(), "machine": machine(), "sequences": []}
    for evaluation, baseline in measured:
        ours = result(evaluation.run, evaluation.metrics, evaluation.config, evaluation.ablation)
        ours = {key: value for key, value in ours.items() if key not in ("versions", "machine")}
        document["sequences"].append({**ours, "baseline": baseline})
    name = args.log or "accuracy"
    name = name if args.matcher == "classic" else f"{name}_{args.matcher}"
    write_json(RESULTS / f"{name}.json", document)
    atomic_write(RESULTS / f"{name}.txt", f"{text}\n{measured_with()}")
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
