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

"""What a run leaves on disk: trajectory files and a JSON file, each complete or absent."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from macvo_ros.atomic_write import atomic_write
from macvo_ros.evaluation.ablation import VARIANTS
from macvo_ros.evaluation.environment import machine, versions
from macvo_ros.evaluation.metrics import Float64, Metrics, anchored
from macvo_ros.evaluation.runner import Run
from macvo_ros.evaluation.status_summary import summarise
from macvo_ros.settings.config import Config
from macvo_ros.settings.declaration import to_flat

TRAJECTORY = "trajectory.txt"
TRAJECTORY_COVARIANCE = "trajectory_covariance.txt"
TRAJECTORY_SMOOTHED = "trajectory_smoothed.txt"
TRAJECTORY_KITTI = "trajectory_kitti.txt"
GROUND_TRUTH = "groundtruth.txt"
RESULT = "result.json"
REPORT = "report.html"


def result(
    run: Run, metrics: Metrics | None, config: Config, ablation: dict[str, Metrics] | None = None
) -> dict[str, Any]:
    """Everything measured as a JSON object; without ground truth only what needs none (`StatusSummary`)."""
    own = summarise(run).as_dict()
    figures = metrics.as_dict() if metrics is not None else {"frames": len(run.poses), "fps": run.fps, **own}
    document: dict[str, Any] = {"sequence": run.name, "matcher": config.matcher, **figures}
    document["reasons"] = [{"frame": index, "reason": reason} for index, reason in run.reasons]
    document["milliseconds"] = {stage: 1e3 * float(values[1:].mean()) for stage, values in run.stages.items()}
    if ablation is not None:
        settings = {variant.name: variant for variant in VARIANTS}
        document["ablation"] = [
            {
                "variant": name,
                "keypoints.selector": settings[name].selector,
                "covariance.model": settings[name].model,
                "window.frames": settings[name].frames or config.window.frames,
                **measured.as_dict(),
            }
            for name, measured in ablation.items()
        ]
    document["config"] = to_flat(config)
    document["versions"] = versions()
    document["machine"] = machine()
    return document


def write_trajectories(directory: Path, run: Run, ground_truth: Float64 | None) -> None:
    """Write the trajectory in TUM and KITTI format and, where it is known, the truth anchored at its first pose.

    With a window also the smoothed one: every pose as the last frame that said something about it left it.
    """
    from macvo_ros.sequences.tum import write_kitti_poses, write_tum

    directory.mkdir(parents=True, exist_ok=True)
    write_tum(directory / TRAJECTORY, run.stamps, run.poses)
    write_tum(directory / TRAJECTORY_COVARIANCE, run.stamps, run.poses, run.covariances)
    write_kitti_poses(directory / TRAJECTORY_KITTI, run.poses)
    if run.smoothed is not None:
        write_tum(directory / TRAJECTORY_SMOOTHED, run.stamps, run.smoothed)
    if ground_truth is not None:
        write_tum(directory / GROUND_TRUTH, run.stamps, anchored(ground_truth, run.poses[0]))


def write_json(path: Path, document: dict[str, Any]) -> None:
    """Write strict JSON: what is not a finite number is null."""
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic_write(path, json.dumps(_finite(document), indent=2, allow_nan=False) + "\n")


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
