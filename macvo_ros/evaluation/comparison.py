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

"""Runs side by side: their figures in one table and their trajectories in one picture."""

from __future__ import annotations

import html
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from macvo_ros.atomic_write import atomic_write
from macvo_ros.errors import SequenceError
from macvo_ros.evaluation import plots
from macvo_ros.evaluation.metrics import Float64, absolute_trajectory_error, anchored, relative_errors
from macvo_ros.evaluation.result import GROUND_TRUTH, RESULT, TRAJECTORY
from macvo_ros.evaluation.table import cells, headings
from macvo_ros.evaluation.theme import html_figure, html_table, page
from macvo_ros.sequences.tum import StampedPoses, read_tum

SAME_INSTANT = 5_000_000  # nanoseconds between an estimate and the truth it is compared with, at most


@dataclass(frozen=True, eq=False)
class Contender:
    """One row of the comparison: figures by JSON key and, where known, (N, 4, 4) poses and truth, anchored alike."""

    name: str
    sequence: str
    figures: dict[str, Any]
    poses: Float64 | None = None
    truth: Float64 | None = None


def load(path: Path, ground_truth: Path | None = None) -> Contender:
    """A run's folder, its result.json, or a TUM trajectory (the truth beside it or given)."""
    if path.is_dir():
        if not (path / RESULT).is_file():
            raise SequenceError(f"{path} holds no {RESULT}; expected a folder written by macvo run or eval --out")
        return _from_json(path / RESULT, path.name)
    if not path.is_file():
        raise SequenceError(f"{path} does not exist; expected a run's folder, a result JSON or a TUM trajectory")
    if path.suffix == ".json":
        return _from_json(path, path.parent.name if path.name == RESULT else path.stem)
    return _from_trajectory(path, ground_truth)


def _from_json(path: Path, name: str) -> Contender:
    try:
        document = json.loads(path.read_text())
    except (ValueError, OSError) as error:
        raise SequenceError(f"{path} is not a result of macvo: {error}") from error
    if not isinstance(document, dict) or "t_rel" not in document:
        raise SequenceError(f"{path} has no t_rel: it was not measured against ground truth")
    poses = truth = None
    if (path.parent / TRAJECTORY).is_file() and (path.parent / GROUND_TRUTH).is_file():
        poses = read_tum(path.parent / TRAJECTORY).poses
        truth = read_tum(path.parent / GROUND_TRUTH).poses
    return Contender(name, str(document.get("sequence", "")), document, poses, truth)


def _from_trajectory(path: Path, ground_truth: Path | None) -> Contender:
    truth_path = ground_truth or path.parent / GROUND_TRUTH
    if not truth_path.is_file():
        raise SequenceError(f"{path}: no ground truth to measure it against; give --groundtruth FILE (TUM format)")
    ours, true = paired(read_tum(path), read_tum(truth_path))
    if len(ours) < 2:
        raise SequenceError(
            f"{path} and {truth_path} share {len(ours)} instants (within 5 ms), at least 2 are needed; "
            "do their clocks agree, and are both in seconds?"
        )
    true = anchored(true, ours[0])
    translation, rotation = relative_errors(ours, true)
    figures = {
        "frames": len(ours),
        "t_rel": float(translation.mean()),
        "r_rel": float(rotation.mean()),
        "ate_rmse": absolute_trajectory_error(ours, true)[0],
    }
    return Contender(path.parent.name if path.name == TRAJECTORY else path.stem, "", figures, ours, true)


def paired(estimated: StampedPoses, true: StampedPoses) -> tuple[Float64, Float64]:
    """The poses, (M, 4, 4) each, at the instants the two trajectories share."""
    if not len(estimated.stamps) or not len(true.stamps):
        return np.zeros((0, 4, 4)), np.zeros((0, 4, 4))
    order = np.argsort(true.stamps, kind="stable")
    stamps = true.stamps[order]
    right = np.clip(np.searchsorted(stamps, estimated.stamps), 0, len(stamps) - 1)
    left = np.maximum(right - 1, 0)
    nearer = np.where(np.abs(stamps[left] - estimated.stamps) <= np.abs(stamps[right] - estimated.stamps), left, right)
    same = np.abs(stamps[nearer] - estimated.stamps) <= SAME_INSTANT
    return estimated.poses[same], true.poses[order[nearer[same]]]


def rows(contenders: list[Contender]) -> tuple[list[str], list[list[str]]]:
    """Heading and rows of the table, one row a contender."""
    heading = ["", "sequence", "frames", *headings()]
    return heading, [[c.name, c.sequence, str(c.figures.get("frames", "-")), *cells(c.figures)] for c in contenders]


def write_comparison(path: Path, contenders: list[Contender]) -> None:
    """Write the HTML page, whole or not at all."""
    body = f"<h1>{len(contenders)} runs compared</h1>{html_table(*rows(contenders))}"
    named = {c.sequence for c in contenders if c.sequence}
    only = named.pop() if len(named) == 1 else ""  # a bare trajectory belongs to the one sequence there is
    for name in dict.fromkeys(c.sequence or only for c in contenders):
        drawn = [c for c in contenders if (c.sequence or only) == name and c.poses is not None]
        if not drawn:
            continue
        longest = max((c.truth for c in drawn if c.truth is not None), key=len, default=None)
        lines = [(c.name, anchored(c.poses, np.eye(4))) for c in drawn if c.poses is not None]
        truth = anchored(longest, np.eye(4)) if longest is not None else None
        body += f"<h2>{html.escape(name) or 'Trajectories'}</h2>" + html_figure(
            plots.trajectory(lines, truth), "Left camera in the axes of its first frame; anchored there, not fitted."
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic_write(path, page("macvo: comparison", body))
