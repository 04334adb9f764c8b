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

"""What a run says of itself, which needs no ground truth: how far it went, how sure it is, what it doubted and why."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from macvo_ros.evaluation.metrics import path_length
from macvo_ros.evaluation.runner import Run
from macvo_ros.odometry.status import Status

_SHOWN_CAUSES, _SHOWN_STRETCHES = 5, 4
_NUMBER = re.compile(r"\d+(\.\d+)?")


@dataclass(frozen=True)
class Cause:
    """Why frames were not tracked: frames for the same reason, whatever its figures; reason: the first one's."""

    status: Status
    reason: str
    frames: tuple[int, ...]


@dataclass(frozen=True)
class StatusSummary:
    """A run without looking at the truth.

    tracking, degraded, lost: frames; the first, which has nothing to track against, is none of them.
    path_length: along the estimated positions, metres. position_sigma, rotation_sigma: of the last pose, root of the
    largest eigenvalue of that block of its covariance, metres and degrees. causes: most frequent first.
    """

    tracking: int
    degraded: int
    lost: int
    path_length: float
    position_sigma: float
    rotation_sigma: float
    causes: tuple[Cause, ...]

    @property
    def nothing_tracked(self) -> bool:
        """Whether there were frames to track and not one was: the trajectory is a prediction from nothing."""
        return not self.tracking + self.degraded and self.lost > 0

    def as_dict(self) -> dict[str, Any]:
        """For JSON, the reasons aside, which a result lists frame by frame."""
        return {name: value for name, value in vars(self).items() if name != "causes"}


def summarise(run: Run) -> StatusSummary:
    """What a run says of itself."""
    grouped: dict[tuple[Status, str], list[tuple[int, str]]] = {}
    for index, reason in run.reasons:
        key = Status(int(run.status[index])), _NUMBER.sub("#", reason)
        grouped.setdefault(key, []).append((index, reason))
    causes = [
        Cause(status, found[0][1] or "no reason given", tuple(index for index, _ in found))
        for (status, _), found in grouped.items()
    ]
    last = run.covariances[-1]
    return StatusSummary(
        tracking=int(np.count_nonzero(run.status == Status.TRACKING)),
        degraded=int(np.count_nonzero(run.status == Status.DEGRADED)),
        lost=int(np.count_nonzero(run.status == Status.LOST)),
        path_length=path_length(run.poses),
        position_sigma=_largest_sigma(last[:3, :3]),
        rotation_sigma=float(np.degrees(_largest_sigma(last[3:, 3:]))),
        causes=tuple(sorted(causes, key=lambda cause: -len(cause.frames))),
    )


def describe(summary: StatusSummary) -> str:
    """The summary as lines for the terminal."""
    sigma = f"{summary.position_sigma:.3g} m and {summary.rotation_sigma:.3g} deg"
    lines = [
        f"path of {summary.path_length:.2f} m as estimated; sigma of the last pose {sigma} in its weakest direction",
        f"{summary.tracking} frames TRACKING, {summary.degraded} DEGRADED, {summary.lost} LOST",
    ]
    for cause in summary.causes[:_SHOWN_CAUSES]:
        lines.append(f"  {len(cause.frames)} {cause.status.name}: {cause.reason} ({_stretches(cause.frames)})")
    if len(summary.causes) > _SHOWN_CAUSES:
        rest = sum(len(cause.frames) for cause in summary.causes[_SHOWN_CAUSES:])
        lines.append(f"  {rest} for other reasons: result.json and report.html have all of them")
    if summary.nothing_tracked:
        lines.append(
            "Not one frame was tracked: the trajectory says nothing. Are the images rectified, of the camera that was "
            "calibrated, left and right not swapped, taken at the same moment? See docs/your_camera.md."
        )
    return "\n".join(lines)


def _stretches(frames: tuple[int, ...]) -> str:
    """Frame numbers as stretches: "frames 3, 7-12 and 4 more"."""
    ends = np.flatnonzero(np.diff(frames) > 1)
    parts = [(int(part[0]), int(part[-1])) for part in np.split(np.array(frames), ends + 1)]
    shown = parts[:_SHOWN_STRETCHES]
    text = ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in shown)
    left = len(frames) - sum(last - first + 1 for first, last in shown)
    return f"frame{'s' if len(frames) > 1 else ''} {text}" + (f" and {left} more" if left else "")


def _largest_sigma(covariance: npt.NDArray[np.float64]) -> float:
    return float(np.sqrt(max(float(np.linalg.eigvalsh(covariance)[-1]), 0.0)))
