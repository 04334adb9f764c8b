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

"""What the network of `lite` has learned, on clips it was not trained on: z-scores, correlation of sigma with error."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from macvo_ros.atomic_write import atomic_write
from macvo_ros.evaluation.theme import figure
from macvo_ros.training.lite import LARGEST_ERROR, LiteTraining
from macvo_ros.training.lite_clips import sequence_of
from macvo_ros.training.lite_samples import LiteSamples
from macvo_ros.training.run_log import read_log

Float64 = npt.NDArray[np.float64]

ALL = "all"
HONEST = (0.8, 1.25)
"""The deviation of z-scores within which a sigma counts as honest."""


@dataclass(frozen=True)
class Errors:
    """Errors (N,) and predicted sigmas (N,), pixels, of the matches of a sequence."""

    sequence: str
    match: str
    stage: str
    error: Float64
    sigma: Float64


@dataclass(frozen=True)
class Calibration:
    """One row of the table. z is error / sigma, which has a deviation of 1 when sigma is right."""

    sequence: str
    match: str
    stage: str
    matches: int
    z_deviation: float
    within_1_sigma: float
    beyond_4_sigma: float
    correlation: float


@torch.no_grad()
def held_out_errors(
    training: LiteTraining, clips: Sequence[Path], evidence: Path, device: torch.device
) -> list[Errors]:
    """Of every sequence, for disparity and flow, dense and refined; errors are clipped as in training."""
    training.eval()
    found = []
    for name in sorted({sequence_of(clip) for clip in clips}):
        samples = LiteSamples([clip for clip in clips if sequence_of(clip) == name], evidence)
        for match, first, axes in (("disparity", 0, 1), ("flow", 1, 2)):  # samples alternate
            parts: dict[str, list[Float64]] = {"dense": [], "refined": []}
            for index in range(first, len(samples), 2):
                sample, refined, dense, valid = samples[index]
                rows, columns = (size // 2 * 2 for size in valid.shape)
                log_sigma = training.network(sample[None, :, :rows, :columns].to(device)).float().cpu()[0]
                for stage, error, known, outputs in (
                    ("dense", dense, valid.expand_as(dense), log_sigma[:2]),
                    ("refined", refined, torch.isfinite(refined), log_sigma[2:]),
                ):
                    cut = (slice(axes), slice(rows), slice(columns))
                    kept = known[cut]
                    values = error[cut][kept].clamp(-LARGEST_ERROR, LARGEST_ERROR)
                    parts[stage].append(torch.stack((values, outputs[:axes][kept].exp())).double().numpy())
            for stage, arrays in parts.items():
                error, sigma = np.concatenate(arrays, axis=1)
                found.append(Errors(name, match, stage, error, sigma))
    return found


def calibrations(errors: Sequence[Errors]) -> list[Calibration]:
    """A row for each sequence, match and stage, those over all sequences last."""
    kinds = sorted({(item.match, item.stage) for item in errors})
    joined = [
        Errors(
            ALL, match, stage,
            *(np.concatenate([getattr(e, name) for e in errors if (e.match, e.stage) == (match, stage)])
              for name in ("error", "sigma")),
        )
        for match, stage in kinds
    ]  # fmt: skip
    return [_calibration(item) for item in [*errors, *joined] if len(item.error) > 1]


def _calibration(item: Errors) -> Calibration:
    z = item.error / item.sigma
    size = np.log(np.maximum(np.abs(item.error), 1e-3))
    varies = min(np.log(item.sigma).std(), size.std()) > 1e-6
    return Calibration(
        item.sequence, item.match, item.stage, len(z), float(np.sqrt(np.mean(z**2))), float(np.mean(np.abs(z) < 1)),
        float(np.mean(np.abs(z) > 4)), float(np.corrcoef(np.log(item.sigma), size)[0, 1]) if varies else float("nan"),
    )  # fmt: skip


def write_table(path: Path, rows: Sequence[Calibration]) -> None:
    """The rows as CSV."""
    text = io.StringIO()
    writer = csv.DictWriter(text, [item.name for item in fields(Calibration)], lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({k: f"{v:.4g}" if isinstance(v, float) else v for k, v in asdict(row).items()})
    atomic_write(path, text.getvalue())


def draw(path: Path, folder: Path, errors: Sequence[Errors], rows: Sequence[Calibration]) -> None:
    """A PNG of three panels: loss over steps (log of `folder`), error against predicted sigma, z-scores by sequence."""
    drawing = figure(13, 4)
    left, middle, right = drawing.subplots(1, 3)
    log = read_log(folder)
    for column, label in (("loss", "training"), ("held_out", "held out")):
        points = [(row["step"], row[column]) for row in log if np.isfinite(row.get(column, np.nan))]
        if points:
            left.plot(*zip(*points, strict=True), label=label, marker="." if len(points) < 30 else "")
    left.set(xlabel="step", ylabel="loss", title="Learning")
    left.legend()
    for match, stage in sorted({(item.match, item.stage) for item in errors}):
        mine = [item for item in errors if (item.match, item.stage) == (match, stage)]
        error, sigma = (np.concatenate([getattr(item, name) for item in mine]) for name in ("error", "sigma"))
        if len(error) < 40:
            continue
        parts = np.array_split(np.argsort(sigma), 20)
        middle.loglog(
            [sigma[part].mean() for part in parts], [np.sqrt(np.mean(error[part] ** 2)) for part in parts],
            marker=".", label=f"{match}, {stage}",
        )  # fmt: skip
    ends = np.array(middle.get_xlim())
    middle.plot(ends, ends, "k:", lw=1, label="perfect")
    middle.set(xlabel="predicted sigma [px]", ylabel="RMS error [px]", title="Held-out errors, by twentieths")
    middle.legend(fontsize=8)
    names = sorted({row.sequence for row in rows} - {ALL})
    for stage, mark in (("dense", "o"), ("refined", "x")):
        for match, colour in (("disparity", "C0"), ("flow", "C1")):
            mine_rows = [row for row in rows if (row.match, row.stage) == (match, stage) and row.sequence != ALL]
            places = [names.index(row.sequence) for row in mine_rows]
            right.plot(places, [row.z_deviation for row in mine_rows], mark, color=colour, label=f"{match}, {stage}")
    right.xaxis.get_major_locator().set_params(integer=True)
    right.axhspan(*HONEST, color="C2", alpha=0.15)
    right.set(
        xlabel="held-out sequence", ylabel="deviation of error / sigma", title="Honesty (1 is right)", yscale="log"
    )
    right.legend(fontsize=8)
    buffer = io.BytesIO()
    drawing.savefig(buffer, format="png", dpi=110)
    atomic_write(path, buffer.getvalue())
