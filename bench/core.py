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

"""Speed of the back end, memory over 2 000 frames, drift of a still camera, correlation of consecutive errors.

    python -m bench.core [speed] [memory] [still] [correlation]      all four when none is named

Writes bench/results/core_NAME.json with the machine and the versions.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tqdm import tqdm

from macvo_ros.evaluation.environment import machine, versions
from macvo_ros.evaluation.result import write_json
from macvo_ros.geometry.camera import rays
from macvo_ros.geometry.se3 import inverse, log_so3
from macvo_ros.matching.classic import ClassicMatcher
from macvo_ros.matching.matcher import Match, PointMatches, Prediction, look_up
from macvo_ros.motion.covariance import depth_from_disparity, point_covariance
from macvo_ros.motion.keypoint_matches import MatchedFrames
from macvo_ros.motion.point_pairs import PointPairs
from macvo_ros.motion.pypose_solver import solve_pose_pypose
from macvo_ros.motion.two_frame import two_frame_motion
from macvo_ros.odometry.stereo_odometry import StereoOdometry
from macvo_ros.rendering.sequence import RenderedSequence
from macvo_ros.rendering.worlds import TARTANAIR, ZED_X
from macvo_ros.settings.config import Config
from macvo_ros.uncertainty.error_correlation import ErrorCorrelation
from macvo_ros.uncertainty.motion_prior import ConstantVelocity
from macvo_ros.uncertainty.online_calibration import AssumedCalibration

RESULTS = Path(__file__).resolve().parent / "results"


class _NoRefinement(ClassicMatcher):
    """Dense matches as they are: the paper's pipeline has no refinement, so it is not part of what is timed."""

    def refine(
        self, reference: Any, reference_match: Any, current: Any, match: Any, points: Any, rows: Any = None
    ) -> PointMatches:
        return points  # type: ignore[no-any-return]


def speed() -> dict[str, float]:
    """Selection, covariance, pose and 6x6 of 200 points at 640x640, beside PyPose's LM alone on the same points."""
    config = Config()
    sequence = RenderedSequence("room", frames=2, seed=3, camera=TARTANAIR)
    matcher = _NoRefinement(config.classic)
    first, second = sequence[0], sequence[1]
    reference = matcher.match(None, first)
    match: Match = matcher.match(first, second, Prediction(np.eye(4), reference.disparity))
    field = AssumedCalibration.of(sequence.camera)
    prior = ConstantVelocity(config.motion_prior).prior(0.1)

    frames = MatchedFrames(first, reference, second, match)

    def ours() -> Any:
        return two_frame_motion(config, matcher, field, frames, np.eye(4), prior)

    result = ours()
    points = look_up(result.sources.reference_disparity.pixel, reference, match)
    pairs = _pairs(sequence, points)
    ours_ms = [_milliseconds(ours) for _ in range(50)]
    # As `solver: pypose` runs it (the metric renewed once, since it depends on the rotation), and a single LM run.
    theirs_ms = [_milliseconds(lambda: solve_pose_pypose(pairs, np.eye(4))) for _ in range(8)]
    single_ms = [_milliseconds(lambda: solve_pose_pypose(pairs, np.eye(4), metric_updates=1)) for _ in range(8)]
    return {
        "points": len(points.pixel),
        "ours_ms": float(np.median(ours_ms)),
        "pypose_lm_ms": float(np.median(theirs_ms[1:])),
        "ratio": float(np.median(theirs_ms[1:]) / np.median(ours_ms)),
        "pypose_fixed_metric_ms": float(np.median(single_ms[1:])),
        "ratio_fixed_metric": float(np.median(single_ms[1:]) / np.median(ours_ms)),
        **{f"ours_{stage}_ms": 1e3 * seconds for stage, seconds in ours().timings.items()},
    }


def _pairs(sequence: RenderedSequence, p: PointMatches) -> PointPairs:
    camera = sequence.camera
    z, z_var = depth_from_disparity(camera, p.disparity, p.disparity_var)
    w, w_var = depth_from_disparity(camera, p.matched_disparity, p.matched_disparity_var)
    q = p.pixel + p.flow
    return PointPairs(
        rays(camera, p.pixel) * z[:, None],
        point_covariance(camera, p.pixel, np.zeros_like(p.flow_var), z, z_var),
        rays(camera, q) * w[:, None],
        point_covariance(camera, q, p.flow_var, w, w_var),
    )


def _milliseconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1e3


def memory(frames: int = 2000) -> dict[str, float]:
    """Resident memory from frame 200 on, over rendered frames, MB."""
    sequence = RenderedSequence("room", frames=frames, seed=4, camera=ZED_X.resized(320, 200), texels=512)
    odometry = StereoOdometry(Config())
    resident = []
    for i in tqdm(range(frames), desc="memory"):
        odometry.track(sequence[i])
        resident.append(_resident_megabytes())
    after = np.array(resident[200:])
    return {
        "frames": frames,
        "at_frame_200_mb": float(after[0]),
        "largest_mb": float(after.max()),
        "growth_percent": float(100 * (after.max() / after[0] - 1)),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def _resident_megabytes() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def still(frames: int = 100) -> dict[str, float]:
    """Drift of a still camera with sensor noise, millimetres, worst of three rooms."""
    drift = []
    for seed in (11, 12, 13):
        sequence = RenderedSequence("room", frames=frames, seed=seed, camera=ZED_X.resized(480, 300), still=True)
        odometry = StereoOdometry(Config())
        for i in tqdm(range(frames), desc=f"still {seed}"):
            estimate = odometry.track(sequence[i])
        drift.append(1e3 * float(np.linalg.norm(estimate.pose[:3, 3])))
    return {"frames": frames, "drift_mm": max(drift), "drift_mm_each": drift}  # type: ignore[dict-item]


def correlation(frames: int = 60) -> dict[str, float]:
    """Correlation of consecutive motion errors, in sigmas, and the pose's NEES with and without its model."""
    lagged, nees = [], {"modelled": [], "independent": []}  # type: ignore[var-annotated]
    for seed in (21, 22, 23, 24):
        sequence = RenderedSequence("room", frames=frames, seed=seed, camera=ZED_X.resized(480, 300))
        assert sequence.ground_truth is not None
        truth = sequence.ground_truth
        for kind in nees:
            matcher = ClassicMatcher(Config().classic)
            if kind == "independent":
                matcher.disparity_correlation = ErrorCorrelation(share=0.0, length=1.0)
            odometry = StereoOdometry(Config(), matcher=matcher)
            whitened = []
            for i in tqdm(range(frames), desc=f"correlation {seed} {kind}"):
                estimate = odometry.track(sequence[i])
                if estimate.relative is None:
                    continue
                true = inverse(truth[i - 1]) @ truth[i]
                error = _error(true, estimate.relative.motion)
                # In the axes of the shared frame, so that consecutive errors can be compared.
                back = estimate.relative.motion[:3, :3].T
                sigma = np.sqrt(np.diag(estimate.relative.covariance))
                whitened.append((error / sigma, np.r_[back @ error[:3], back @ error[3:]] / sigma))
                pose_error = _error(inverse(truth[0]) @ truth[i], estimate.pose)
                nees[kind].append(float(pose_error @ np.linalg.solve(estimate.covariance, pose_error)))
            if kind == "modelled":
                lagged += [before[1] * after[0] for before, after in pairwise(whitened)]
    return {
        "lag_1_translation": float(np.mean(np.array(lagged)[:, :3])),
        "lag_1_rotation": float(np.mean(np.array(lagged)[:, 3:])),
        "pose_nees_modelled": float(np.mean(nees["modelled"])),
        "pose_nees_independent": float(np.mean(nees["independent"])),
    }


def _error(truth: np.ndarray, estimate: np.ndarray) -> np.ndarray:
    return np.r_[truth[:3, 3] - estimate[:3, 3], log_so3(truth[:3, :3] @ estimate[:3, :3].T)]


PARTS: dict[str, Callable[[], dict[str, float]]] = {
    "speed": speed,
    "memory": memory,
    "still": still,
    "correlation": correlation,
}


def main() -> None:
    """Run the named parts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], help="which; all when none is named")
    for part in parser.parse_args().parts or PARTS:
        torch.manual_seed(0)
        figures = {**PARTS[part](), "machine": machine(), "versions": versions()}
        RESULTS.mkdir(exist_ok=True)
        write_json(RESULTS / f"core_{part}.json", figures)
        print(part, {key: value for key, value in figures.items() if key not in ("machine", "versions")})


if __name__ == "__main__":
    main()
