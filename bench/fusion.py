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

"""Does a filter gain from our covariance? Six rendered walks through a room whose light goes out for a second.

    python -m bench.fusion [--lights 0.03 0.02] [--walks 6] [--plot docs/images/fusion.png]

The errors of a constant-velocity filter that is told our covariance, and of the same filter with a constant one: for
each error the constant that makes this very error smallest, found by a search with the truth in hand. 10 s a walk.
Writes bench/results/fusion.txt.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "test"))

import test_fusion

from macvo_ros.atomic_write import atomic_write
from macvo_ros.evaluation.environment import measured_with

RESULTS = Path(__file__).resolve().parent / "results"

UNITS = {"linear": ("velocity [m/s]", 1.0), "angular": ("angular velocity [deg/s]", 57.29578)}
UNITS |= {"position": ("position [m]", 1.0), "rotation": ("rotation [deg]", 57.29578)}


def main() -> None:
    """Record the walks, print and write a table for each light."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--lights", type=float, nargs="+", default=[test_fusion.LIGHT, 0.02], help="share of full light in the dark"
    )
    parser.add_argument("--walks", type=int, default=6)
    parser.add_argument("--plot", metavar="FILE", type=Path, help="also draw the errors over time, of the first light")
    args = parser.parse_args()
    tables = []
    for light in args.lights:
        test_fusion.LIGHT = light
        recordings = [test_fusion.record(seed) for seed in range(args.walks)]
        tables.append(table(recordings, light, None if tables else args.plot))
        print(tables[-1], flush=True)
    atomic_write(RESULTS / "fusion.txt", "\n".join([*tables, measured_with()]))


def table(recordings: list[test_fusion.Recording], light: float, drawing: Path | None) -> str:
    """Ours and the best constant, error by error; drawing: file for the errors over time."""
    twists = [twist for recording in recordings for twist in recording.twists]
    silent = sum(twist is None for twist in twists)
    lines = [f"{len(recordings)} walks, light {light}, {silent} of {len(twists)} frames silent (lost)"]
    ours = test_fusion.filter_errors(recordings, lambda index, covariance: covariance)
    grid = 10.0 ** np.arange(-3.5, 0.6, 0.5)
    tried = {}
    for linear, angular in itertools.product(grid, grid):
        constant = test_fusion.constant(linear, angular)
        tried[linear, angular] = test_fusion.filter_errors(recordings, lambda index, covariance, c=constant: c)
    for name, (label, scale) in UNITS.items():
        best = min(tried, key=lambda sigmas: tried[sigmas][name])
        lines.append(
            f"{label:25} ours {ours[name] * scale:.4f}   best constant {tried[best][name] * scale:.4f} "
            f"(sigma {best[0]:.4f} m/s, {best[1]:.4f} rad/s)"
        )
    if drawing is not None:
        best = min(tried, key=lambda sigmas: tried[sigmas]["linear"])
        plot(drawing, recordings, test_fusion.constant(*best))
    return "\n".join([*lines, ""])


def plot(file: Path, recordings: list[test_fusion.Recording], constant: np.ndarray) -> None:
    """Above: what the odometry measured, and what it said of that; below: what the filter made of it."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    count = test_fusion.FRAMES - 1
    seconds = np.arange(1, count + 1) / test_fusion.RATE
    errors, sigmas = (np.full((len(recordings), count), np.nan) for _ in range(2))
    for row, recording in enumerate(recordings):
        for index, twist in enumerate(recording.twists):
            if twist is not None:
                errors[row, index] = np.sum((twist[0][:3] - recording.true_twists[index, :3]) ** 2)
                sigmas[row, index] = np.trace(twist[1][:3, :3])
    curves = {
        "error of the measured velocity": (0, errors, "#444444", "-"),
        "what the covariance says": (0, sigmas, "#2563eb", "--"),
        "filter, told our covariance": (1, filtered(recordings, None), "#2563eb", "-"),
        "filter, told the best constant": (1, filtered(recordings, constant), "#d9660a", "-"),
    }
    figure, axes = pyplot.subplots(2, 1, figsize=(8.4, 4.6), sharex=True, layout="constrained")
    for label, (panel, squares, colour, style) in curves.items():
        axes[panel].plot(seconds, np.sqrt(np.nanmean(squares, axis=0)), style, color=colour, label=label)
    for panel in axes:
        dark = test_fusion.DARK
        panel.axvspan((dark.start - 0.5) / test_fusion.RATE, (dark.stop + 0.5) / test_fusion.RATE, color="#e4e7ec")
        panel.set_yscale("log")
        panel.set_ylim(0.005, 0.15)
        panel.set_yticks([0.01, 0.1], ["0.01", "0.1"])
        panel.set_ylabel("rms [m/s]")
        panel.legend(loc="upper left", frameon=False, fontsize=9)
        panel.spines[["top", "right"]].set_visible(False)
    axes[0].set_title(f"{len(recordings)} walks; grey: the light is out", loc="left", fontsize=10)
    axes[1].set_xlabel("seconds")
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=110, facecolor="white")
    print(f"drawn {file}")


def filtered(recordings: list[test_fusion.Recording], constant: np.ndarray | None) -> np.ndarray:
    """(walks, frames) squared error of the filter's velocity; constant: what it is told instead of our covariance."""
    noise = np.diag(np.reshape(test_fusion.ekf_parameters()["process_noise_covariance"], (15, 15)))
    squares = np.zeros((len(recordings), test_fusion.FRAMES - 1))
    for row, recording in enumerate(recordings):
        state = test_fusion.VelocityFilter(noise[6], noise[9])
        for index, measured in enumerate(recording.twists):
            state.predict((1.0 if index else 0.5) / test_fusion.RATE)
            if measured is not None:
                state.fuse((measured[0], measured[1] if constant is None else constant))
            squares[row, index] = np.sum((state.velocity - recording.true_twists[index])[:3] ** 2)
    return squares


if __name__ == "__main__":
    main()
