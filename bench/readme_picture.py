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

"""The picture of the README: keypoints with their uncertainty, and the trajectory with its 3-sigma tube.

python -m bench.readme_picture [--world room] [--frames 90] [--out docs/images/demo.png]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LogNorm

from macvo_ros.evaluation.runner import run_sequence
from macvo_ros.geometry.se3 import inverse
from macvo_ros.odometry.stereo_odometry import StereoOdometry
from macvo_ros.rendering.sequence import RenderedSequence
from macvo_ros.settings.config import Config

TUBE = 20.0
"""The tube is drawn this many times wider than it is; at its true width nobody would see it."""


def main() -> None:
    """Run, draw, save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--world", default="room")
    parser.add_argument("--frames", type=int, default=90)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("docs/images/demo.png"))
    args = parser.parse_args()
    sequence = RenderedSequence(args.world, args.frames, args.seed)
    run = run_sequence(sequence, StereoOdometry(Config()))
    assert sequence.ground_truth is not None
    truth = inverse(sequence.ground_truth[0]) @ sequence.ground_truth
    _, _, estimate = run.snapshots[0]
    landmarks = estimate.landmarks
    assert landmarks is not None

    figure, (left, right) = plt.subplots(1, 2, figsize=(12.5, 4.9), width_ratios=(1.6, 1), layout="constrained")
    left.imshow(estimate.frame.left)
    sigma = 1e3 * np.sqrt(landmarks.covariance[:, 2, 2])
    drawn = left.scatter(
        *landmarks.pixel.T, c=sigma, s=26, cmap="plasma", norm=LogNorm(), edgecolors="black", linewidths=0.5
    )
    left.set_axis_off()
    ticks = [t for t in (1, 2, 5, 10, 20, 50, 100) if sigma.min() <= t <= sigma.max()]
    bar = figure.colorbar(drawn, ax=left, orientation="horizontal", shrink=0.6, aspect=40, pad=0.02, ticks=ticks)
    bar.ax.set_xticklabels([f"{t}" for t in ticks])
    bar.ax.minorticks_off()
    bar.set_label("one sigma of the depth [mm]")

    place = run.poses[:, :3, 3]
    variance = run.covariances[:, :3, :3]
    step = np.gradient(place[:, [0, 2]], axis=0)
    normal = np.column_stack((-step[:, 1], step[:, 0])) / np.maximum(np.linalg.norm(step, axis=1), 1e-9)[:, None]
    plane = variance[:, [0, 2]][:, :, [0, 2]]
    width = TUBE * 3 * np.sqrt(np.einsum("ni,nij,nj->n", normal, plane, normal))
    upper, lower = (place[:, [0, 2]] + sign * width[:, None] * normal for sign in (1, -1))
    right.fill(*np.vstack((upper, lower[::-1])).T, color="#2563eb", alpha=0.18, label=f"3 sigma, drawn x{TUBE:.0f}")
    right.plot(truth[:, 0, 3], truth[:, 2, 3], color="#9ca3af", linewidth=4, label="ground truth")
    right.plot(place[:, 0], place[:, 2], color="#2563eb", linewidth=1.5, label="macvo_ros")
    right.set_aspect("equal", adjustable="datalim")
    right.set_xlabel("x [m]")
    right.set_ylabel("z, forward [m]")
    right.grid(alpha=0.3)
    right.legend(frameon=False)
    error = 1e3 * np.linalg.norm(place[-1] - truth[-1, :3, 3])
    length = np.linalg.norm(np.diff(truth[:, :3, 3], axis=0), axis=1).sum()
    right.set_title(f"{error:.1f} mm off after {length:.1f} m", fontsize=11)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(args.out, dpi=110)


if __name__ == "__main__":
    main()
