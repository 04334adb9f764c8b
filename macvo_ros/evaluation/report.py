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

"""The HTML report of one run: figures, tables, pictures and everything needed to repeat it, in a single file."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from macvo_ros.atomic_write import atomic_write
from macvo_ros.evaluation import plots
from macvo_ros.evaluation.ablation import VARIANTS, ablation_table
from macvo_ros.evaluation.environment import machine, versions
from macvo_ros.evaluation.kitti_measure import kitti_measure
from macvo_ros.evaluation.metrics import Errors, Metrics, anchored
from macvo_ros.evaluation.nees import sigmas
from macvo_ros.evaluation.paper import paper_rows, paper_sequence
from macvo_ros.evaluation.pictures import frame_pictures
from macvo_ros.evaluation.runner import Run
from macvo_ros.evaluation.status_summary import summarise
from macvo_ros.evaluation.table import COLUMNS, cells, figures, headings, horizon_table, number
from macvo_ros.evaluation.theme import html_figure, html_table, page
from macvo_ros.sequences.sequence import Sequence
from macvo_ros.settings.config import Config
from macvo_ros.settings.declaration import settings, to_flat

STAGE_COLOURS = {"match": "estimate", "select": "third", "covariance": "fourth", "pose": "second", "rest": "truth"}


@dataclass(frozen=True, eq=False)
class Evaluation:
    """A run with all that is known of it; `metrics` and `errors` are None without ground truth."""

    sequence: Sequence
    run: Run
    config: Config
    metrics: Metrics | None = None
    errors: Errors | None = None
    ablation: dict[str, Metrics] | None = None


def write_report(path: Path, evaluation: Evaluation) -> None:
    """Write the report to `path`, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic_write(path, report(evaluation))


def report(evaluation: Evaluation) -> str:
    """The report as an HTML page that loads nothing."""
    run = evaluation.run
    sections = [
        _head(evaluation),
        _trajectory(evaluation),
        _drift(evaluation),
        _honesty(evaluation),
        _calibration(run),
        _paper(evaluation),
        _ablation(evaluation),
        _pictures(run),
        _time(run),
        _events(run),
        _settings(evaluation),
    ]
    return page(f"macvo: {run.name}", "\n".join(section for section in sections if section))


def table_rows(evaluation: Evaluation) -> tuple[list[str], list[list[str]]]:
    """Heading and rows of the main table: this run, then the paper's methods where it has the sequence."""
    run = evaluation.run
    own = summarise(run)
    known: dict[str, float | int | None] = {"fps": run.fps, "degraded": own.degraded, "lost": own.lost}
    measured = known if evaluation.metrics is None else figures(evaluation.metrics)
    rows = [[f"this run ({evaluation.config.matcher})", *cells(measured)]]
    for row in paper_rows(run.name, evaluation.sequence.camera.fx):
        rows.append([f"paper: {row.method}", *cells({"t_rel": row.t_rel, "r_rel": row.r_rel})])
    return ["", *headings()], rows


def _head(evaluation: Evaluation) -> str:
    run, metrics = evaluation.run, evaluation.metrics
    camera = evaluation.sequence.camera
    seconds = (run.stamps[-1] - run.stamps[0]) * 1e-9
    about = (
        f"{len(run.poses)} frames, {seconds:.1f} s, {camera.width}x{camera.height} pixels, "
        f"baseline {camera.baseline:.3f} m, matcher {evaluation.config.matcher}"
    )
    if metrics is None:
        own = summarise(run)
        cards = [
            ("path", *_length(own.path_length), "as estimated"),
            ("sigma of the last position", *_length(own.position_sigma), "in its weakest direction"),
            ("frames per second", number(run.fps, 1), "", f"{own.degraded} degraded, {own.lost} lost"),
        ]
        verdict = "There is no ground truth for this sequence: the report shows what the odometry says of itself."
    else:
        cards = [
            ("translation error", number(metrics.t_rel * 1e3, 2), "mm", "a frame (t_rel)"),
            ("rotation error", number(metrics.r_rel, 4), "°", "a frame (r_rel)"),
            ("trajectory error", *_length(metrics.ate_rmse), f"ATE over {metrics.path_length:.1f} m"),
            ("NEES of the motion", number(metrics.nees_relative_mean, 2), "", "6 is honest"),
            ("within 3 sigma", number(metrics.within_3sigma * 100, 1), "%", "99.7 is honest"),
            ("frames per second", number(metrics.fps, 1), "", f"{metrics.degraded} degraded, {metrics.lost} lost"),
        ]
        verdict = _verdict(metrics)
    boxes = "".join(
        f'<div class="card"><span>{title}</span><b>{value} <span class="unit">{unit}</span></b>'
        f"<span>{note}</span></div>"
        for title, value, unit, note in cards
    )
    return (
        f'<h1>{html.escape(run.name)}</h1><p class="muted">{html.escape(about)}</p>'
        f'<div class="cards">{boxes}</div><p>{html.escape(verdict)}</p>'
    )


def _length(metres: float) -> tuple[str, str]:
    return (number(metres, 2), "m") if metres >= 0.1 else (number(metres * 1e3, 1), "mm")


def _verdict(metrics: Metrics) -> str:
    words = [_ratio("relative motion", metrics.nees_relative_mean), _ratio("pose", metrics.nees_pose_mean)]
    return f"{words[0]} {words[1]} Errors of the pose add up along the path, so one run says little about them."


def _ratio(what: str, mean_nees: float) -> str:
    if not math.isfinite(mean_nees):
        return f"The covariance of the {what} is singular somewhere: it promises certainty, which is never true."
    ratio = math.sqrt(mean_nees / 6)
    word = "overconfident" if ratio > 1.15 else "cautious" if ratio < 0.87 else "honest"
    return (
        f"The covariance of the {what} is {word}: errors are {ratio:.2f} times as large as it says (root mean square)."
    )


def _trajectory(evaluation: Evaluation) -> str:
    run, truth = evaluation.run, evaluation.sequence.ground_truth
    true = anchored(truth, run.poses[0]) if truth is not None else None
    svg = plots.trajectory([("estimate", run.poses)], true, run.covariances)
    return "<h2>Trajectory</h2>" + html_figure(
        svg,
        "Position of the left camera in the axes of its first frame; the truth is anchored there, not fitted. "
        "Shaded: 3 sigma of the position, as propagated.",
    )


def _honesty(evaluation: Evaluation) -> str:
    run, errors = evaluation.run, evaluation.errors
    if len(run.poses) < 2:
        return ""
    seconds = (run.stamps[1:] - run.stamps[0]) * 1e-9
    status = run.status[1:]
    if errors is None:
        svg = plots.error_bounds(seconds, None, sigmas(run.covariances[1:]), status)
        return "<h2>Uncertainty of the pose</h2>" + html_figure(svg, "Plus and minus 3 sigma of the pose over time.")
    return (
        "<h2>Is the covariance honest?</h2>"
        + html_figure(
            plots.error_bounds(seconds, errors.relative, errors.relative_sigma, status),
            "Motion from each frame to the next: its error inside its own 3 sigma, axes of the earlier frame.",
        )
        + html_figure(
            plots.error_bounds(seconds, errors.pose, errors.pose_sigma, status),
            "Pose: its error inside its own 3 sigma, axes of the first frame. It grows along the path, as it must.",
        )
        + html_figure(
            plots.nees(seconds, errors.relative_nees, errors.pose_nees, status),
            "Squared error measured in standard deviations, summed over six components. Above the band the covariance "
            "was too small, below it too large. Shaded amber: degraded, red: lost.",
        )
        + html_table(*_sigma_table(evaluation.metrics))
        + _horizons(evaluation.metrics)
    )


def _horizons(metrics: Metrics | None) -> str:
    if metrics is None or not metrics.horizons:
        return ""
    return html_figure(
        plots.honesty_by_horizon(metrics.horizons),
        "The path since an earlier frame, by how much earlier: its squared error in standard deviations, and the root "
        "mean square of the error beside what was expected. Over one frame a real truth may be noisier than the "
        "estimate; what the calibration does shows over seconds.",
    ) + html_table(*horizon_table(metrics.horizons))


def _calibration(run: Run) -> str:
    known = [(index, learned) for index, learned in enumerate(run.calibration) if learned is not None]
    if not known:
        return ""
    seconds = (run.stamps[[index for index, _ in known]] - run.stamps[0]) * 1e-9
    figures = [learned.figures() for _, learned in known]
    last = known[-1][1]
    words = "; ".join(last.findings()) or "nothing is significantly off"
    return "<h2>Calibration</h2>" + html_figure(
        plots.calibration(seconds, figures),
        f"What the odometry corrected by, and 3 sigma of what remains. At the end: {words}. Altogether pixels of the "
        f"left image were corrected by {last.field_size():.2f} px (root mean square).",
    )


def _drift(evaluation: Evaluation) -> str:
    truth = evaluation.sequence.ground_truth
    measure = None if truth is None else kitti_measure(evaluation.run.poses, truth)
    if measure is None:
        return ""
    return "<h2>Drift</h2>" + html_figure(
        plots.drift_by_length(measure.by_length),
        f"The KITTI benchmark's measure: error of the motion over stretches of the way. Mean over all of them: "
        f"{measure.t_err:.2f} % and {measure.r_err:.3f} degrees per 100 m.",
    )


def _sigma_table(metrics: Metrics | None) -> tuple[list[str], list[list[str]]]:
    assert metrics is not None
    heading = ["share of error components", "within 1 sigma", "within 2 sigma", "within 3 sigma", "mean NEES"]
    values = metrics.as_dict()
    rows = [["an honest Gaussian", "0.683", "0.954", "0.997", "6.00"]]
    for name, prefix, mean in (
        ("relative motion", "", metrics.nees_relative_mean),
        ("pose", "pose_", metrics.nees_pose_mean),
    ):
        rows.append([name, *(number(values[f"{prefix}within_{k}sigma"], 3) for k in (1, 2, 3)), number(mean, 2)])
    return heading, rows


def _paper(evaluation: Evaluation) -> str:
    heading, rows = table_rows(evaluation)
    note = " ".join(f"{column.heading}: {column.meaning}." for column in COLUMNS)
    name = paper_sequence(evaluation.run.name, evaluation.sequence.camera.fx)
    if name is not None:
        note = (
            f"The paper ran the whole of {name}; this run has {len(evaluation.run.poses)} frames. A star marks methods "
            f"whose scale was fitted to the truth. {note}"
        )
    return f'<h2>Table</h2>{html_table(heading, rows, ours=(0,))}<p class="muted">{html.escape(note)}</p>'


def _ablation(evaluation: Evaluation) -> str:
    if evaluation.ablation is None:
        return ""
    heading, rows = ablation_table(evaluation.sequence, evaluation.ablation)
    note = "; ".join(f"{variant.name}: {variant.meaning}" for variant in VARIANTS)
    return (
        f'<h2>Ablation</h2>{html_table(heading, rows, ours=(len(rows) - 1,))}<p class="muted">{html.escape(note)}.</p>'
    )


def _pictures(run: Run) -> str:
    parts = []
    for index, reason, estimate in run.snapshots:
        drawn = "".join(html_figure(svg, caption) for svg, caption in frame_pictures(estimate))
        parts.append(f'<h2>Frame {index}: {html.escape(reason)}</h2><div class="pair">{drawn}</div>')
    return "".join(parts)


def _time(run: Run) -> str:
    if len(run.seconds) < 2:
        return ""
    total = 1e3 * float(run.seconds[1:].mean())
    stages = {stage: 1e3 * float(values[1:].mean()) for stage, values in run.stages.items()}
    stages["rest"] = max(total - sum(stages.values()), 0.0)
    bar = "".join(
        f'<div style="width:{100 * value / max(total, 1e-9):.2f}%;background:var(--{STAGE_COLOURS[stage]})"></div>'
        for stage, value in stages.items()
    )
    key = "".join(
        f'<span><i style="background:var(--{STAGE_COLOURS[stage]})"></i>{stage} {value:.1f} ms</span>'
        for stage, value in stages.items()
    )
    slowest = 1e3 * float(np.percentile(run.seconds[1:], 95))
    words = f"{total:.1f} ms a frame on average, 95 % of the frames below {slowest:.1f} ms."
    words += (
        f" Keypoints: {np.median(run.keypoints[1:]):.0f}, of them inliers: {np.median(run.inliers[1:]):.0f} (medians)."
    )
    return f'<h2>Time</h2><div class="bar">{bar}</div><div class="key">{key}</div><p class="muted">{words}</p>'


def _events(run: Run) -> str:
    if not run.reasons:
        return ""
    rows = [[str(index), reason or "no reason given"] for index, reason in run.reasons[:200]]
    more = f"<p>... and {len(run.reasons) - 200} more.</p>" if len(run.reasons) > 200 else ""
    return f"<h2>Frames that were degraded or lost</h2>{html_table(['frame', 'why'], rows)}{more}"


def _settings(evaluation: Evaluation) -> str:
    values = to_flat(evaluation.config)
    leaves = list(settings(type(evaluation.config)))
    rows = [[leaf.key, str(values[leaf.key]), str(leaf.default), leaf.doc] for leaf in leaves]
    changed = tuple(i for i, leaf in enumerate(leaves) if values[leaf.key] != leaf.default)
    made = "".join(
        f'<div><span class="muted">{html.escape(name)}</span> <b>{html.escape(value)}</b></div>'
        for name, value in {**versions(), **machine()}.items()
    )
    return (
        "<h2>How it was made</h2>"
        f'<div class="facts">{made}</div>'
        f"<details><summary>Configuration ({len(changed)} of {len(rows)} keys differ from the default)</summary>"
        f"{html_table(['key', 'value', 'default', 'what it does'], rows, ours=changed)}</details>"
    )
