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

"""What the `lite` matcher promises, measured on rendered scenes that it was not trained on.

    python -m bench.lite [accuracy] [honesty] [information] [speed] [--seeds N] [--first-seed S] [--frames N]

Writes bench/results/lite_TABLE.txt with the machine and the versions that measured it.

accuracy: t_rel, r_rel, lost frames and NEES beside the KLT + PnP baseline, family by family.
honesty: z-scores of the dense flow and disparity against exact truth, and how sigma follows the error.
information: share of the pose's information that lies on moving objects and on what is hidden in the next or the right
image, beside that of random keypoints with identity covariances.
speed: milliseconds a frame at 640x640 by stage, beside the baseline in the same run.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from bench.klt_pnp_baseline import KltPnpOdometry, run_baseline
from macvo_ros.atomic_write import atomic_write
from macvo_ros.commands.run import run_and_measure
from macvo_ros.evaluation.environment import measured_with
from macvo_ros.evaluation.metrics import relative_errors
from macvo_ros.evaluation.table import format_table
from macvo_ros.geometry.se3 import inverse, skew
from macvo_ros.matching.matcher import Match, Matcher, Prediction, make_matcher
from macvo_ros.motion.keypoint_matches import MatchedFrames, TooFewPoints
from macvo_ros.motion.two_frame import TwoFrameResult, two_frame_motion
from macvo_ros.odometry.stereo_odometry import StereoOdometry
from macvo_ros.rendering.sequence import RenderedSequence
from macvo_ros.rendering.worlds import HARD
from macvo_ros.settings.config import Config, load_config
from macvo_ros.uncertainty.motion_prior import ConstantVelocity
from macvo_ros.uncertainty.online_calibration import AssumedCalibration

RESULTS = Path(__file__).parent / "results"
FAMILIES = (*HARD, "room", "street", "shapes")
CLIP = 20.0  # pixels: how wrong a lost match is does not matter


def accuracy(config: Config, seeds: range, frames: int) -> str:
    """Table of errors beside the baseline."""
    rows = []
    for world in FAMILIES:
        for seed in seeds:
            sequence = RenderedSequence(world, frames, seed)
            metrics = run_and_measure(sequence, config).metrics
            assert metrics is not None
            assert sequence.ground_truth is not None
            t, r = relative_errors(run_baseline(sequence)[0], sequence.ground_truth)
            rows.append(
                [
                    f"{world} {seed}", f"{metrics.t_rel:.5f}", f"{t.mean():.5f}", f"{metrics.t_rel / t.mean():.2f}",
                    f"{metrics.r_rel:.4f}", f"{r.mean():.4f}", f"{metrics.nees_relative_mean:.1f}", str(metrics.lost),
                ]
            )  # fmt: skip
    return format_table(["sequence", "t_rel", "baseline", "ratio", "r_rel", "baseline", "NEES", "lost"], rows)


def honesty(config: Config, seeds: range, frames: int) -> str:
    """Table of z-scores per family."""
    rows = []
    for world in FAMILIES:
        errors: dict[str, list[np.ndarray]] = {"disparity": [], "flow u": [], "flow v": []}
        for seed in seeds:
            sequence = RenderedSequence(world, frames, seed)
            matcher = make_matcher(config)
            for index in range(1, frames - 1, 5):
                reference, match = _match(matcher, sequence, index)
                assert match.flow is not None
                assert match.flow_var is not None
                truth, every = sequence.truth(index), (slice(None, None, 5),) * 2
                for name, found, true, variance in (
                    ("disparity", reference.disparity, truth.disparity, reference.disparity_var),
                    ("flow u", match.flow[0], truth.static_flow[0], match.flow_var[0]),
                    ("flow v", match.flow[1], truth.static_flow[1], match.flow_var[1]),
                ):
                    error = np.clip((found.numpy() - true)[every], -CLIP, CLIP).ravel()
                    pairs = np.column_stack((error, np.sqrt(variance.numpy()[every]).ravel()))
                    errors[name].append(pairs[np.isfinite(pairs).all(axis=1)])
        for name, collected in errors.items():
            error, sigma = np.concatenate(collected).T
            z = error / sigma
            related = np.corrcoef(np.log(sigma), np.log(np.abs(error) + 1e-3))[0, 1]
            rows.append(
                [world, name, f"{z.std():.2f}", f"{np.mean(np.abs(z) < 1):.2f}", f"{np.mean(np.abs(z) > 3):.3f}",
                 f"{np.median(np.abs(error)):.3f}", f"{related:.2f}"]
            )  # fmt: skip
    return format_table(["family", "", "z std", "< 1 sigma", "> 3 sigma", "median error", "corr log"], rows)


def information(config: Config, seeds: range, frames: int) -> str:
    """Table of shares of information on what is moving or hidden."""
    random = load_config(
        assignments=[f"matcher={config.matcher}", "keypoints.selector=random", "covariance.model=identity"]
    )
    rows, totals = [], np.zeros((2, 2))
    for world in ("dynamic", "street", "shapes", "room"):
        shares = np.zeros((2, 2))
        for seed in seeds:
            sequence = RenderedSequence(world, frames, seed)
            matcher = make_matcher(config)
            for index in range(1, frames - 1, 4):
                truth = sequence.truth(index)
                hidden = ~truth.flow_valid | ~truth.disparity_valid
                for column, variant in enumerate((config, random)):
                    share = _shares(_solve(matcher, sequence, index, variant))
                    if share is not None:
                        pixel, part = share
                        u, v = pixel.T
                        shares[0, column] += part[truth.moving[v, u]].sum()
                        shares[1, column] += part[hidden[v, u] & ~truth.moving[v, u]].sum()
                        totals[column, 0] += 1
        for name, (ours, theirs) in zip(("moving", "hidden"), shares, strict=True):
            count = max(totals[0, 0], 1)
            ratio = ours / theirs if theirs else float("nan")
            rows.append([world, name, f"{ours / count:.4f}", f"{theirs / count:.4f}", f"{ratio:.2f}"])
        totals[:] = 0
    return format_table(["family", "on what is", "share", "random + identity", "ratio"], rows)


def speed(config: Config, frames: int) -> str:
    """Table of milliseconds by stage; run on an idle machine."""
    sequence = RenderedSequence("shapes", frames, 1)
    images = [sequence[index] for index in range(frames)]
    odometry, baseline = StereoOdometry(config), KltPnpOdometry()
    stages: list[dict[str, float]] = []
    theirs = []
    for frame in images:
        stages.append(odometry.track(frame).timings)
        start = time.perf_counter()
        baseline.track(frame)
        theirs.append(time.perf_counter() - start)
    names = ("match", "select", "refine", "covariance", "pose", "total")
    ours = {name: 1e3 * float(np.median([s[name] for s in stages[2:]])) for name in names}
    klt = 1e3 * float(np.median(theirs[2:]))
    rows = [[name, f"{ms:.1f}"] for name, ms in ours.items()]
    rows += [["baseline", f"{klt:.1f}"], ["ratio", f"{ours['total'] / klt:.2f}"]]
    return format_table(["stage", "ms"], rows)


def _match(matcher: Matcher, sequence: RenderedSequence, index: int) -> tuple[Match, Match]:
    """Matches of frame `index` and of the next one against it, predicted by the motion before."""
    frame = sequence[index]
    reference = matcher.match(None, frame)
    prediction = Prediction(_motion(sequence, index - 1), reference.disparity)
    return reference, matcher.match(frame, sequence[index + 1], prediction)


def _motion(sequence: RenderedSequence, index: int) -> np.ndarray:
    assert sequence.ground_truth is not None
    return np.asarray(inverse(sequence.ground_truth[index]) @ sequence.ground_truth[index + 1])


def _solve(matcher: Matcher, sequence: RenderedSequence, index: int, config: Config) -> TwoFrameResult | None:
    first, second = sequence[index], sequence[index + 1]
    reference = matcher.match(None, first)
    before = _motion(sequence, index - 1)
    match = matcher.match(first, second, Prediction(before, reference.disparity))
    velocity = ConstantVelocity(config.motion_prior, static=False)
    velocity.observe(before, 1 / sequence.rate)
    field = AssumedCalibration.of(sequence.camera)
    try:
        prior = velocity.prior(1 / sequence.rate)
        return two_frame_motion(config, matcher, field, MatchedFrames(first, reference, second, match), before, prior)
    except TooFewPoints:
        return None


def _shares(result: TwoFrameResult | None) -> tuple[np.ndarray, np.ndarray] | None:
    """Pixels (N, 2) of the reference and each point's part of the information, trace(H^-1 J^T W J) / 6."""
    if result is None:
        return None
    solution = result.solution
    moved = result.landmarks.point @ solution.motion[:3, :3].T
    jacobian = np.concatenate((np.broadcast_to(-np.eye(3), (len(moved), 3, 3)), skew(moved)), axis=2)
    part = np.einsum("nij,nji->n", solution.gain, jacobian) / 6
    pixel = np.rint(result.landmarks.pixel - result.flow).astype(int)
    return pixel, part / max(part.sum(), 1e-12)


def main() -> None:
    """Print the tables asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", default=["accuracy", "honesty", "information", "speed"])
    parser.add_argument("--matcher", default="lite")
    parser.add_argument("--seeds", type=int, default=2, help="scenes of each family (2)")
    parser.add_argument("--first-seed", type=int, default=601, help="of those scenes (601: never used in development)")
    parser.add_argument("--frames", type=int, default=30, help="(30)")
    args = parser.parse_args()
    config = load_config(assignments=[f"matcher={args.matcher}"])
    seeds = range(args.first_seed, args.first_seed + args.seeds)
    for name in args.tables:
        if name == "speed":
            table, scenes = speed(config, args.frames), f"shapes 1, {args.frames} frames"
        else:
            make = {"accuracy": accuracy, "honesty": honesty, "information": information}[name]
            table, scenes = make(config, seeds, args.frames), f"seeds {seeds[0]} to {seeds[-1]}, {args.frames} frames"
        text = f"{name}, {args.matcher}: {scenes}\n{table}\n\n{measured_with()}\n"
        print(f"\n{text}")
        atomic_write(RESULTS / f"{args.matcher}_{name}.txt", text)


if __name__ == "__main__":
    main()
