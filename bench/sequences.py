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

"""Whole sequences: ours, the KLT + PnP baseline, the figures of the paper and of others, and what is worse than those.

    python -m bench.sequences PATH... [--matchers lite classic] [--frames A:B] [--step N] [--log NAME]

PATH: sequences with ground truth in any layout macvo reads (KITTI 09 and EuRoC MH_01 for README's table). Run nothing
beside it: frames a second are measured too. Writes bench/results/NAME.txt and NAME.json (sequences).
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from typing import Any

from bench.accuracy import RESULTS
from bench.klt_pnp_baseline import run_baseline
from macvo_ros.atomic_write import atomic_write
from macvo_ros.commands._options import add_frame_options
from macvo_ros.commands.run import run_and_measure
from macvo_ros.errors import MacvoError, SequenceError
from macvo_ros.evaluation.environment import machine, measured_with, versions
from macvo_ros.evaluation.kitti_measure import kitti_measure
from macvo_ros.evaluation.metrics import absolute_trajectory_error, relative_errors
from macvo_ros.evaluation.paper import paper_rows, paper_sequence
from macvo_ros.evaluation.report import Evaluation
from macvo_ros.evaluation.result import result, write_json
from macvo_ros.evaluation.status_summary import describe, summarise
from macvo_ros.evaluation.table import cells, format_table, headings, horizon_table
from macvo_ros.sequences import Sequence, open_sequence
from macvo_ros.settings.config import load_config

Figures = dict[str, Any]


@dataclass(frozen=True)
class Anchor:
    """What others say of themselves, by the keys of `evaluation/table.py`."""

    name: str
    figures: Figures


KITTI_ANCHORS = (
    Anchor("cuVSLAM (theirs)", {"t_err": 0.85, "r_err": 0.23}),
    Anchor("ORB-SLAM2 without loops (theirs)", {"t_err": 0.81, "r_err": 0.26}),
    Anchor("Stereo DSO (theirs)", {"t_err": 0.84, "r_err": 0.20}),
)
"""Percent and degrees per 100 m, as they print them for KITTI's odometry benchmark, not for one sequence of it."""


def baseline_figures(sequence: Sequence) -> Figures:
    """Figures of KLT + PnP, which has no covariance and is never lost."""
    assert sequence.ground_truth is not None
    poses, fps = run_baseline(sequence)
    translation, rotation = relative_errors(poses, sequence.ground_truth)
    drift = kitti_measure(poses, sequence.ground_truth)
    figures = {"t_rel": float(translation.mean()), "r_rel": float(rotation.mean()), "fps": fps}
    figures["ate_rmse"] = absolute_trajectory_error(poses, sequence.ground_truth)[0]
    return figures if drift is None else {**figures, "t_err": drift.t_err, "r_err": drift.r_err}


def anchors(sequence: Sequence) -> list[Anchor]:
    """What the figures of a sequence can be held against."""
    found = [
        Anchor(f"paper: {row.method}", {"t_rel": row.t_rel, "r_rel": row.r_rel})
        for row in paper_rows(sequence.name, sequence.camera.fx)
    ]
    return found + (list(KITTI_ANCHORS) if sequence.name.startswith("kitti") else [])


def worse(name: str, figures: Figures, others: list[Anchor]) -> list[str]:
    """A line for each figure that is worse than that of another; their failures (NaN) are no anchors."""
    lines = []
    for other in others:
        keys = [key for key, value in other.figures.items() if figures.get(key, float("nan")) > value]
        if keys:
            pairs = ", ".join(f"{key} {figures[key]:.4g} > {other.figures[key]:.4g}" for key in keys)
            lines.append(f"  {name} is worse than {other.name}: {pairs}")
    return lines


def report(sequence: Sequence, ours: list[Evaluation], baseline: Figures) -> str:
    """The tables of one sequence."""
    rows, complaints, sections = [], [], []
    others = [Anchor("OpenCV KLT + PnP", baseline), *anchors(sequence)]
    for evaluation in ours:
        assert evaluation.metrics is not None
        name, figures = f"macvo_ros, {evaluation.config.matcher}", evaluation.metrics.as_dict()
        rows.append([name, *cells(figures)])
        comparable = [Anchor(o.name, {k: v for k, v in o.figures.items() if k != "fps"}) for o in others]
        complaints += worse(name, figures, comparable)
        honesty = format_table(*horizon_table(evaluation.metrics.horizons)) if evaluation.metrics.horizons else ""
        sections.append("\n".join(filter(None, [f"{name}:", describe(summarise(evaluation.run)), honesty])))
    rows += [[other.name, *cells(other.figures)] for other in others]
    title = f"{sequence.name}, {len(sequence)} frames"
    if (whole := paper_sequence(sequence.name, sequence.camera.fx)) is not None:
        title += f" (the paper's figures are of the whole of {whole}; * scale fitted to the truth)"
    verdict = ["Worse than others:", *complaints] if complaints else ["Nothing is worse than the others' figures."]
    return "\n".join([title, format_table(["", *headings()], rows), "", *verdict, "", "\n\n".join(sections), ""])


def main() -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", metavar="PATH")
    parser.add_argument("--matchers", nargs="+", default=["lite", "classic"], metavar="NAME", help="(lite classic)")
    add_frame_options(parser)
    parser.add_argument("--log", default="sequences", help="name of the files (sequences)")
    args = parser.parse_args()
    texts: list[str] = []
    document: dict[str, Any] = {"versions": versions(), "machine": machine(), "sequences": []}
    try:
        for path in args.paths:
            sequence = open_sequence(path, frames=args.frames, step=args.step, strict=True)
            if sequence.ground_truth is None:
                raise SequenceError(f"{path} has no ground truth; give a sequence that has")
            configs = [load_config(assignments=[f"matcher={name}"]) for name in args.matchers]
            ours = [run_and_measure(sequence, config) for config in configs]
            baseline = baseline_figures(sequence)
            texts.append(report(sequence, ours, baseline))
            print(texts[-1], flush=True)
            kept = [result(each.run, each.metrics, each.config) for each in ours]
            kept = [{k: v for k, v in each.items() if k not in ("versions", "machine")} for each in kept]
            document["sequences"].append({"name": sequence.name, "ours": kept, "klt_pnp": baseline})
    except MacvoError as error:
        print(f"sequences: {error}", file=sys.stderr)
        return 2
    write_json(RESULTS / f"{args.log}.json", document)
    atomic_write(RESULTS / f"{args.log}.txt", "\n".join(texts) + "\n" + measured_with())
    return 0


if __name__ == "__main__":
    sys.exit(main())
