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

"""The ablation table of the paper (section IV): what happens to the error when one idea is taken out.

And, which the paper does not have: what a window of more frames does (`window.frames`).
"""

from __future__ import annotations

from dataclasses import dataclass

from macvo_ros.evaluation.metrics import Metrics, evaluate
from macvo_ros.evaluation.paper import paper_ablation
from macvo_ros.evaluation.runner import run_sequence
from macvo_ros.evaluation.table import format_table, number
from macvo_ros.sequences.sequence import Sequence
from macvo_ros.settings.config import Config
from macvo_ros.settings.declaration import build, to_flat


@dataclass(frozen=True)
class Variant:
    """One line of the table: its name, what it takes out, and the settings that do so.

    frames: of the window; 0: as it is set. doubted: whether status is decided; without one of the paper's ideas most
    frames would be LOST.
    """

    name: str
    meaning: str
    selector: str
    model: str
    frames: int = 0
    doubted: bool = True

    def applied(self, config: Config) -> Config:
        """`config` with this variant's settings."""
        changed: dict[str, object] = {"keypoints.selector": self.selector, "covariance.model": self.model}
        if self.frames:
            changed["window.frames"] = self.frames
        if not self.doubted:
            changed["doubt.prior"] = 0.0
        return build(Config, {**to_flat(config), **changed})

    def is_ours(self, config: Config) -> bool:
        """Whether it changes nothing of `config`."""
        return self.doubted and self.frames in (0, config.window.frames)


WINDOWS = (2, 4, 8, 16)
OURS = Variant("Ours", "everything", "uncertainty", "full")
VARIANTS = (
    # What the paper takes out it takes out of two frames.
    Variant("w/o CovKP and CovOpt", "random keypoints, identity covariance", "random", "identity", 2, False),
    Variant("w/o CovOpt", "identity covariance", "uncertainty", "identity", 2, False),
    Variant("w/o CovKP", "random keypoints", "random", "full", 2, False),
    Variant("DiagCov", "no off-diagonal terms", "uncertainty", "diagonal", 2, False),
    Variant("Scale Agnostic", "covariance normalised in each frame", "uncertainty", "scale_agnostic", 2, False),
    *(Variant(f"Window of {n}", f"poses and points of {n} frames together", "uncertainty", "full", n) for n in WINDOWS),
    OURS,
)


def run_ablation(sequence: Sequence, config: Config, ours: Metrics | None = None) -> dict[str, Metrics]:
    """Run every variant over a sequence with ground truth; `ours` saves runs of those that are `config` as it is."""
    from macvo_ros.odometry.pipelined_odometry import make_odometry

    assert sequence.ground_truth is not None
    results = {}
    for number_, variant in enumerate(VARIANTS, start=1):
        if variant.is_ours(config) and ours is not None:
            results[variant.name] = ours
            continue
        title = f"{number_}/{len(VARIANTS)} {variant.name}"
        run = run_sequence(sequence, make_odometry(variant.applied(config)), title=title)
        results[variant.name], _ = evaluate(run, sequence.ground_truth)
    return results


def ablation_table(sequence: Sequence, results: dict[str, Metrics]) -> tuple[list[str], list[list[str]]]:
    """Heading and rows of the table, the paper's own figures beside ours."""
    title, paper = paper_ablation(sequence.name, sequence.camera.fx)
    heading = ["variant", "t_rel [m]", "r_rel [deg]", f"t_rel ({title})", f"r_rel ({title})"]
    rows = [
        [
            name,
            number(metrics.t_rel, 5),
            number(metrics.r_rel, 4),
            number(paper[name].t_rel, 4) if name in paper else "",
            number(paper[name].r_rel, 4) if name in paper else "",
        ]
        for name, metrics in results.items()
    ]
    return heading, rows


def format_ablation(sequence: Sequence, results: dict[str, Metrics]) -> str:
    """The table as text."""
    return format_table(*ablation_table(sequence, results))
