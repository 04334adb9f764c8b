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

"""Does a filter gain from our covariance? Eight rendered walks through a room whose light goes down for a second.

    python bench/fusion.py [--plot docs/images/fusion.png] [--walks 8] [--light 0.03 0.02]

Prints the errors of a constant-velocity filter that is told our covariance, and of the same filter with a constant one:
for each error the constant that makes this very error smallest over all walks, found by a search with the truth in
hand. Seeds 0 to 7, fixed before anything was measured. Writes bench/results/fusion.json and .txt. 5 s a walk.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "test")]

import test_fusion  # noqa: E402

from macvo_ros.atomic_write import atomic_write  # noqa: E402
from macvo_ros.evaluation.environment import machine, versions  # noqa: E402

UNITS = {"linear": ("velocity [m/s]", 1.0), "angular": ("angular velocity [deg/s]", 57.29578)}
UNITS |= {"position": ("position [m]", 1.0), "rotation": ("rotation [deg]", 57.29578)}
GRID = 10.0 ** np.arange(-3.5, 0.6, 0.5)
RESULTS = ROOT / "bench" / "results" / "fusion"


def main() -> None:
    """Record the walks, print and log the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--light", type=float, nargs="+", default=[0.03, 0.02], help="shares of full light in the dark")
    parser.add_argument("--walks", type=int, default=8)
    parser.add_argument("--plot", metavar="FILE", type=Path, help="also draw the errors over time, in the first light")
    args = parser.parse_args()
    lines: list[str] = []
    document: dict[str, Any] = {"versions": versions(), "machine": machine(), "lights": {}}
    for light in args.light:
        recordings = [test_fusion.record(seed, light) for seed in range(args.walks)]
        found, best = compare(recordings)
        document["lights"][str(light)] = found
        lines += [f"{args.walks} walks, light {light}, {found['silent']} of {found['frames']} frames silent (lost)"]
        for name, (label, scale) in UNITS.items():
            row = found[name]
            ratios = " ".join(f"{ratio:.2f}" for ratio in row["ratios"])
            told = f"ours {row['ours'] * scale:.4f}  best constant {row['constant'] * scale:.4f}"
            sigmas = f"(sigma {row['sigmas'][0]:.4f} m/s, {row['sigmas'][1]:.4f} rad/s)"
            lines.append(f"  {label:25} {told} {sigmas}  ours/constant by seed {ratios}")
        if args.plot is not None and light == args.light[0]:
            plot(args.plot, recordings, test_fusion.constant(*best))
    lines += [f"{key}: {value}" for part in (versions(), machine()) for key, value in part.items()]
    print("\n".join(lines))
    atomic_write(RESULTS.with_suffix(".json"), json.dumps(document, indent=1) + "\n")
    atomic_write(RESULTS.with_suffix(".txt"), "\n".join(lines) + "\n")


def compare(recordings: list[test_fusion.Recording]) -> tuple[dict[str, Any], tuple[float, float]]:
    """Both filters' errors, all walks together and walk by walk; and the constant that is best for the velocity."""

    def errors(told: np.ndarray | None) -> list[dict[str, float]]:
        return [test_fusion.filter_errors([r], lambda index, ours: ours if told is None else told) for r in recordings]

    ours = errors(None)
    tried = {
        sigmas: errors(test_fusion.constant(*sigmas))
        for sigmas in itertools.product(map(float, GRID), map(float, GRID))
    }

    def together(errors: list[dict[str, float]], name: str) -> float:
        return float(np.sqrt(np.mean([each[name] ** 2 for each in errors])))

    twists = [twist for recording in recordings for twist in recording.twists]
    found: dict[str, Any] = {"frames": len(twists), "silent": sum(twist is None for twist in twists)}
    best = {name: min(tried, key=lambda sigmas, name=name: together(tried[sigmas], name)) for name in UNITS}
    for name in UNITS:
        theirs = tried[best[name]]
        found[name] = {
            "ours": together(ours, name),
            "constant": together(theirs, name),
            "sigmas": best[name],
            "ours by seed": [each[name] for each in ours],
            "constant by seed": [each[name] for each in theirs],
            "ratios": [a[name] / b[name] for a, b in zip(ours, theirs, strict=True)],
        }
    return found, best["linear"]


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
