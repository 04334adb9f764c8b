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

"""Tables for the terminal, and the words and digits of a figure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from macvo_ros.evaluation.horizons import Horizon
from macvo_ros.evaluation.metrics import Metrics


@dataclass(frozen=True)
class Column:
    """One figure of a table: its JSON key, its heading, its digits and what it means."""

    key: str
    heading: str
    digits: int
    unit: str
    meaning: str


COLUMNS = (
    Column("t_rel", "t_rel", 5, "m", "mean error of the translation from one frame to the next"),
    Column("r_rel", "r_rel", 4, "deg", "mean error of the rotation from one frame to the next"),
    Column("t_err", "t_err", 2, "%", "drift over 100 to 800 m of the way, the KITTI benchmark's measure"),
    Column("r_err", "r_err", 3, "deg/100m", "the same in rotation"),
    Column("ate_rmse", "ATE", 4, "m", "root mean square position error after SE(3) alignment"),
    Column(
        "nees_relative_mean", "NEES rel", 2, "", "mean NEES of the relative motion; 6 is honest, more is overconfident"
    ),
    Column("nees_pose_mean", "NEES pose", 2, "", "mean NEES of the pose; 6 is honest, scatters widely in one run"),
    Column("within_3sigma", "in 3 sigma", 3, "", "share of relative errors within 3 sigma; Gaussian: .997"),
    Column("fps", "fps", 1, "1/s", "frames per second of tracking, without reading images"),
    Column("degraded", "degraded", 0, "", "frames measured from little evidence"),
    Column("lost", "lost", 0, "", "frames without a measurement"),
)


def number(value: float | int | None, digits: int) -> str:
    """A figure with `digits` decimals; "-" where it is unknown."""
    if value is None or not math.isfinite(value):
        return "-"
    return f"{value:.{digits}f}"


def cells(figures: Mapping[str, float | int | None]) -> list[str]:
    """The cells of `COLUMNS` for the figures of one run (or of a paper's row, which knows fewer)."""
    return [number(figures.get(column.key), column.digits) for column in COLUMNS]


def figures(metrics: Metrics) -> dict[str, float | int | None]:
    """The figures of a run that `COLUMNS` shows."""
    values = metrics.as_dict()
    return {column.key: values[column.key] for column in COLUMNS}


def headings() -> list[str]:
    """The headings of `COLUMNS` with their units."""
    return [f"{column.heading} [{column.unit}]" if column.unit else column.heading for column in COLUMNS]


def horizon_table(horizons: Sequence[Horizon]) -> tuple[list[str], list[list[str]]]:
    """Heading and rows of the honesty by horizon."""
    heading = ["over", "motions", "NEES mean", "median", "in 3 sigma", "components"]
    heading += ["error [mm]", "expected", "error [deg]", "expected"]
    rows = [["an honest Gaussian", "", "6.00", "5.35", "0.984", "0.997", "", "", "", ""]]
    for each in horizons:
        honest = (each.nees_mean, 2), (each.nees_median, 2), (each.frames_within_3sigma, 3), (each.within_3sigma, 3)
        sizes = (1e3 * each.t_error, 1), (1e3 * each.t_sigma, 1), (each.r_error, 4), (each.r_sigma, 4)
        rows.append([each.name, str(each.starts), *(number(*value) for value in (*honest, *sizes))])
    return heading, rows


def format_table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Plain text: the first column to the left, the others to the right; an empty row becomes a rule."""
    widths = [max(len(row[i]) for row in [heading, *rows] if row) for i in range(len(heading))]
    rule = "  ".join("-" * width for width in widths)

    def line(row: Sequence[str]) -> str:
        if not row:
            return rule
        padded = [row[0].ljust(widths[0])] + [
            cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)
        ]
        return "  ".join(padded).rstrip()

    return "\n".join([line(heading), rule, *(line(row) for row in rows)])
