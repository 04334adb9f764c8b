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

"""Figures of a run: the way it took, its errors against what the covariance promised, and NEES over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from macvo_ros.evaluation import theme
from macvo_ros.evaluation.horizons import Horizon
from macvo_ros.evaluation.kitti_measure import StretchDrift
from macvo_ros.evaluation.theme import to_svg
from macvo_ros.odometry.status import Status
from macvo_ros.uncertainty.learned_calibration import Figure

Float64 = npt.NDArray[np.float64]
POINTS = 1500  # of a line at most; more only makes the page heavy
CHI2_6_95 = (1.237, 14.449)  # between these lie 95 % of the NEES of a six-vector


def trajectory(lines: Sequence[tuple[str, Float64]], truth: Float64 | None, covariance: Float64 | None = None) -> str:
    """Top view (x right, z forward) and side view (z forward, up) of (N, 4, 4) poses, metres, first camera's axes.

    covariance: (N, 6, 6) of the first line; its 3 sigma ellipses are drawn along the way.
    """
    with theme.style():
        drawing = theme.figure(10.2, 4.6)
        top, side = drawing.subplots(1, 2)
        for axes, (i, j), sign, labels in (
            (top, (0, 2), 1.0, ("x, right [m]", "z, forward [m]")),
            (side, (2, 1), -1.0, ("z, forward [m]", "up [m]")),
        ):
            if truth is not None:
                p = thinned(truth[:, :3, 3])
                axes.plot(
                    p[:, i], sign * p[:, j], color=theme.TRUTH, lw=3.2, label="ground truth", solid_capstyle="round"
                )
            for number, (name, poses) in enumerate(lines):
                p = thinned(poses[:, :3, 3])
                axes.plot(p[:, i], sign * p[:, j], color=theme.SERIES[number % len(theme.SERIES)], lw=1.5, label=name)
            if covariance is not None:
                _ellipses(axes, lines[0][1], covariance, i, j, sign)
            axes.plot(0, 0, "o", ms=5, color=theme.INK)
            axes.set_aspect("equal", adjustable="datalim")
            axes.margins(0.08)
            axes.set_xlabel(labels[0])
            axes.set_ylabel(labels[1])
        top.set_title("Seen from above")
        side.set_title("Seen from the side")
        theme.legend(drawing, top)
        return to_svg(drawing)


def _ellipses(axes: Any, poses: Float64, covariance: Float64, i: int, j: int, sign: float) -> None:
    from matplotlib.patches import Ellipse

    for k in np.unique(np.linspace(1, len(poses) - 1, min(12, len(poses) - 1)).astype(int)):
        block = covariance[k][np.ix_([i, j], [i, j])] * np.array([[1, sign], [sign, 1]])
        values, vectors = np.linalg.eigh(block)
        width, height = 6 * np.sqrt(np.maximum(values, 0))
        angle = np.degrees(np.arctan2(vectors[1, 0], vectors[0, 0]))
        centre = (poses[k, i, 3], sign * poses[k, j, 3])
        axes.add_patch(Ellipse(centre, width, height, angle=angle, fc=theme.ESTIMATE, ec=theme.ESTIMATE, alpha=0.18))


def error_bounds(seconds: Float64, error: Float64 | None, sigma: Float64, status: npt.NDArray[np.int64]) -> str:
    """Six panels over time, (M,) seconds: (M, 6) error as a line inside its +-3 sigma band; no line when unknown.

    status: (M,); degraded and lost frames are shaded.
    """
    with theme.style():
        drawing = theme.figure(10.2, 4.8)
        panels = drawing.subplots(2, 3, sharex=True)
        for row, (names, symbol) in enumerate(((("x", "y", "z"), "t"), (("x", "y", "z"), "r"))):
            columns = slice(3 * row, 3 * row + 3)
            scale, unit = _unit(error, sigma, columns, rotation=symbol == "r")
            for column, name in enumerate(names):
                axes = panels[row, column]
                bound = 3 * scale * sigma[:, 3 * row + column]
                x, band = thinned(seconds), thinned(bound)
                axes.fill_between(x, -band, band, color=theme.ESTIMATE, alpha=0.16, lw=0, label="3 sigma")
                reach = np.nanpercentile(bound, 97) if np.isfinite(bound).any() else 1.0
                if error is not None:
                    value = scale * error[:, 3 * row + column]
                    axes.plot(x, thinned(value), color=theme.ESTIMATE, lw=1.1, label="error")
                    reach = max(reach, float(np.abs(value).max()))
                axes.set_ylim(-1.15 * reach - 1e-12, 1.15 * reach + 1e-12)
                axes.set_title(f"{'position' if symbol == 't' else 'rotation about'} {name} [{unit}]")
                _shade(axes, seconds, status)
                if row == 1:
                    axes.set_xlabel("time [s]")
        theme.legend(drawing, panels[0, 0])
        return to_svg(drawing)


def _unit(error: Float64 | None, sigma: Float64, columns: slice, rotation: bool) -> tuple[float, str]:
    size = float(np.nanmedian(sigma[:, columns])) if np.isfinite(sigma[:, columns]).any() else 0.0
    if error is not None:
        size = max(size, float(np.abs(error[:, columns]).max()))
    if rotation:
        return (180 / np.pi, "deg")
    return (1e3, "mm") if size < 0.2 else (1.0, "m")


def nees(seconds: Float64, relative: Float64, pose: Float64, status: npt.NDArray[np.int64]) -> str:
    """NEES of the relative motion and of the pose over time, (M,) each, with the band of 95 % of an honest one."""
    from matplotlib.ticker import FormatStrFormatter, NullFormatter

    with theme.style():
        drawing = theme.figure(10.2, 3.1)
        axes = drawing.subplots()
        axes.axhspan(*CHI2_6_95, color=theme.GOOD, alpha=0.13, lw=0, label="95 % of an honest covariance")
        axes.axhline(6, color=theme.GOOD, lw=1, ls=(0, (5, 4)))
        for values, colour, name in ((relative, theme.ESTIMATE, "relative motion"), (pose, theme.SECOND, "pose")):
            shown = np.where(np.isfinite(values), np.maximum(values, 1e-2), np.nan)
            axes.plot(thinned(seconds), thinned(shown), color=colour, lw=1.2, label=name)
        axes.set_yscale("log")
        axes.set_xlabel("time [s]")
        axes.set_ylabel("NEES (mean 6)")
        _shade(axes, seconds, status)
        axes.yaxis.set_major_formatter(FormatStrFormatter("%g"))
        axes.yaxis.set_minor_formatter(NullFormatter())
        theme.legend(drawing, axes)
        return to_svg(drawing)


def honesty_by_horizon(horizons: Sequence[Horizon]) -> str:
    """NEES by horizon, and the size of errors beside what was expected, translation and rotation."""
    with theme.style():
        drawing = theme.figure(10.2, 3.1)
        panels = drawing.subplots(1, 3)
        x = np.arange(len(horizons))
        panels[0].axhspan(*CHI2_6_95, color=theme.GOOD, alpha=0.13, lw=0)
        panels[0].axhline(6, color=theme.GOOD, lw=1, ls=(0, (5, 4)))
        panels[0].plot(x, [each.nees_mean for each in horizons], "o-", color=theme.ESTIMATE)
        panels[0].set_title("NEES, mean (6 is honest)")
        for axes, scale, part, title in (
            (panels[1], 1e3, "t", "position [mm]"),
            (panels[2], 1.0, "r", "rotation [deg]"),
        ):
            for name, key, colour in (("error", "error", theme.ESTIMATE), ("expected", "sigma", theme.TRUTH)):
                values = [scale * getattr(each, f"{part}_{key}") for each in horizons]
                axes.plot(x, values, "o-", color=colour, label=name)
            axes.set_title(title)
        for axes in panels:
            axes.set_yscale("log")
            axes.set_xticks(x, [each.name for each in horizons])
        theme.legend(drawing, panels[1])
        return to_svg(drawing)


def drift_by_length(drifts: Sequence[StretchDrift]) -> str:
    """t_err and r_err of stretches over their length."""
    with theme.style():
        drawing = theme.figure(10.2, 2.8)
        for axes, key, title in zip(
            drawing.subplots(1, 2),
            ("t_err", "r_err"),
            ("translation [%]", "rotation [deg / 100 m]"),
            strict=True,
        ):
            values = [getattr(each, key) for each in drifts]
            axes.plot([each.length for each in drifts], values, "o-", color=theme.ESTIMATE)
            axes.set_ylim(bottom=0)
            axes.set_xlabel("length of the stretch [m]")
            axes.set_title(title)
        return to_svg(drawing)


def calibration(seconds: Float64, figures: Sequence[Sequence[Figure]]) -> str:
    """What was learned of each number of the calibration over (M,) seconds, in its band of 3 sigma."""
    with theme.style():
        drawing = theme.figure(10.2, 5.6)
        for axes, series in zip(drawing.subplots(3, 3, sharex=True).ravel(), zip(*figures, strict=True), strict=True):
            value, sigma = (np.array([getattr(each, key) for each in series]) for key in ("value", "sigma"))
            x, middle, band = thinned(seconds), thinned(value), thinned(3 * sigma)
            axes.fill_between(x, middle - band, middle + band, color=theme.ESTIMATE, alpha=0.16, lw=0)
            axes.plot(x, middle, color=theme.ESTIMATE, lw=1.3)
            axes.axhline(0, color=theme.TRUTH, lw=1)
            axes.set_title(f"{series[0].name} [{series[0].unit}]" if series[0].unit else series[0].name)
        return to_svg(drawing)


def _shade(axes: Any, seconds: Float64, status: npt.NDArray[np.int64]) -> None:
    step = float(np.median(np.diff(seconds))) if len(seconds) > 1 else 1.0
    for value, colour in ((Status.DEGRADED, theme.WARN), (Status.LOST, theme.BAD)):
        marked = np.flatnonzero(np.diff(np.concatenate([[0], status == value, [0]]).astype(int)))
        for start, stop in marked.reshape(-1, 2):
            axes.axvspan(seconds[start] - step / 2, seconds[stop - 1] + step / 2, color=colour, alpha=0.22, lw=0)


def thinned(values: Float64) -> Float64:
    """Every n-th row (and the last), so that a line has at most about `POINTS` points."""
    stride = -(-len(values) // POINTS)
    if stride <= 1:
        return values
    return np.concatenate([values[:-1:stride], values[-1:]])
