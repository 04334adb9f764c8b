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

"""Does learning the calibration help where it is wrong, and harm nowhere else?

    python -m bench.calibration real FOLDER ...       with and without, on sequences with ground truth
    python -m bench.calibration rendered WORLD:SEED ...   worlds through cameras that are off in a known way
    python -m bench.calibration knock WORLD:SEED|FOLDER ...   the right camera turns in the middle (--turn, degrees)
    python -m bench.calibration apparent WORLD:SEED|FOLDER ...   what errors seem to be there, in sigmas of one block
    python -m bench.calibration scale WORLD:SEED|FOLDER ...   the scale that evidence claims, and the truth's, in parts

Prints drift, honesty by horizon, and for rendered worlds what share of each error was recovered and the drift against
that of the true calibration; logs of what the documentation quotes are in bench/results/calibration_real.txt,
calibration_rendered.txt, calibration_knock.txt, calibration_apparent.txt and calibration_scale.txt.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from bench.error_by_step import over
from bench.wrong_camera import RenderedOnce, WrongCamera
from macvo_ros.evaluation.metrics import Metrics, evaluate, motion_error
from macvo_ros.evaluation.runner import run_sequence
from macvo_ros.evaluation.truth_noise import parse_truth_noise
from macvo_ros.images.frame import StereoFrame
from macvo_ros.odometry.estimate import Estimate
from macvo_ros.odometry.stereo_odometry import StereoOdometry
from macvo_ros.rendering.sequence import RenderedSequence
from macvo_ros.rendering.worlds import WORLDS
from macvo_ros.sequences import open_sequence
from macvo_ros.sequences.part import PartOfSequence
from macvo_ros.sequences.sequence import Sequence
from macvo_ros.settings.config import load_config
from macvo_ros.uncertainty.calibration_model import AHEAD, FIELD_DEGREES, FOCAL, K1, PHYSICAL, PITCH, ROLL, SIZE, YAW
from macvo_ros.uncertainty.path_step import PathStep

Float64 = npt.NDArray[np.float64]
FRAMES, RATE = 600, 10.0
"""Of rendered worlds: their second half is what comes after 30 seconds."""
KNOCKED_FRAMES = 300
DRIFT_SECONDS = 5.0
PART, SPAN = 300, 20
"""Frames of a part, and between the ends of the motions whose scale is compared."""
ONLINE = [False, True]
TURN, FOCAL_ERROR, K1_ERROR = np.radians(0.05), 0.005, -0.01
ERRORS: dict[str, dict[int, float]] = {
    "none": {},
    "yaw": {YAW: TURN},
    "pitch": {PITCH: TURN},
    "roll": {ROLL: TURN},
    "focal": {FOCAL: FOCAL_ERROR},
    "k1": {K1: K1_ERROR},
    "all": {YAW: TURN, PITCH: TURN, ROLL: TURN, FOCAL: FOCAL_ERROR, K1: K1_ERROR},
}
NAMES = {YAW: "yaw", PITCH: "pitch", ROLL: "roll", FOCAL: "focal", K1: "k1"}


@dataclass
class Recorder:
    """An odometry that remembers what it learned of the calibration."""

    odometry: StereoOdometry
    learned: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    def track(self, frame: StereoFrame) -> Estimate:
        """Track, and look."""
        estimate = self.odometry.track(frame)
        calibration = self.odometry.calibration
        if calibration is not None:
            self.learned.append((calibration.estimate.error, calibration.estimate.sigma))
            self.said.append(str(calibration.knocks))
        return estimate

    def flush(self) -> Estimate | None:
        """Nothing waits."""
        return self.odometry.flush()


def run(
    sequence: Sequence, online: bool, settings: list[str], noise: str | None = None
) -> tuple[Metrics, Recorder, np.ndarray]:
    """One pass; the figures, what was learned, and the poses."""
    config = load_config(assignments=["matcher=lite", f"calibration.online={str(online).lower()}", *settings])
    recorder = Recorder(StereoOdometry(config))
    result = run_sequence(sequence, recorder, progress=False)
    assert sequence.ground_truth is not None
    truth_noise = None if noise is None else parse_truth_noise(noise)
    return evaluate(result, sequence.ground_truth, truth_noise)[0], recorder, result.poses


def line(metrics: Metrics) -> str:
    """Drift and honesty in one line."""
    honest = "  ".join(
        f"{each.name}: {each.nees_mean:.1f}, {each.within_3sigma:.3f}, {each.frames_within_3sigma:.3f}"
        for each in metrics.horizons
    )
    return (
        f"t_rel {metrics.t_rel:.5f} r_rel {metrics.r_rel:.4f} t_err {metrics.t_err:.3f} r_err {metrics.r_err:.3f} "
        f"end {metrics.end_error:.3f} degraded {metrics.degraded} lost {metrics.lost} | NEES, in 3 sigma: components, "
        f"frames | {honest}"
    )


def real(paths: list[str], settings: list[str], frames: tuple[int | None, int | None], noise: str | None) -> None:
    """Sequences with ground truth, without and with learning."""
    for path in paths:
        sequence = open_sequence(path, frames=frames)
        for online in ONLINE:
            metrics, recorder, _ = run(sequence, online, settings, noise)
            print(f"{sequence.name} {'online' if online else 'as told'}: {line(metrics)}", flush=True)
        print(learned(recorder, len(recorder.learned) - 1), flush=True)


def world_of(name: str, frames: int) -> RenderedOnce | None:
    """The rendered world of WORLD:SEED; None where the name is that of a folder."""
    world, _, seed = name.partition(":")
    return RenderedOnce(world, frames, int(seed), RATE) if world in WORLDS and seed.isdecimal() else None


def learned(recorder: Recorder, index: int) -> str:
    """What was known of the physical errors after a frame."""
    error, sigma = recorder.learned[index]
    figures = ", ".join(
        f"{name} {scale * error[i]:+.4f} +- {scale * sigma[i]:.4f}{unit}"
        for i, name, scale, unit in (
            (YAW, "yaw", 180 / np.pi, " deg"),
            (PITCH, "pitch", 180 / np.pi, " deg"),
            (ROLL, "roll", 180 / np.pi, " deg"),
            (FOCAL, "focal", 100, " %"),
            (K1, "k1", 1, ""),
            (AHEAD, "ahead", 100, " %"),
        )
    )
    assert recorder.odometry.calibration is not None
    residuals, rows = recorder.odometry.calibration.scatter
    scatter = f"scatter of blocks {residuals:.1f}, of rows {rows:.1f}"
    return f"  learned: {figures}; knocks noticed {recorder.said[index]}; {scatter}"


def drift(poses: Float64, truth: Float64) -> tuple[Float64, Float64]:
    """Root mean square error over `DRIFT_SECONDS`, metres and degrees: of the whole path, and of its second half."""
    step = round(DRIFT_SECONDS * RATE)
    error = motion_error(over(truth, step), over(poses, step))
    squares = np.column_stack([(part**2).sum(axis=1) for part in (error[:, :3], np.degrees(error[:, 3:]))])
    later = squares[max(len(poses) // 2 - step, 0) :] if len(poses) < 2 * step else squares[len(poses) // 2 :]
    return np.sqrt(squares.mean(axis=0)), np.sqrt(later.mean(axis=0))


def rendered(worlds: list[str], settings: list[str], errors: list[str]) -> None:
    """Worlds through cameras that are off: what was recovered, and the drift over that of the true calibration."""
    for name, seed in (world.split(":") for world in worlds):
        base = RenderedOnce(name, FRAMES, int(seed), RATE)
        assert base.ground_truth is not None
        metrics, _, poses = run(base, False, settings)
        best = drift(poses, base.ground_truth)
        print(f"{name} {seed}, true calibration, nothing corrected: {line(metrics)}", flush=True)
        print(f"  drift over {DRIFT_SECONDS:g} s: {best[0][0]:.4f} m, {best[0][1]:.4f} deg", flush=True)
        for error in errors:
            for online in [True] if error == "none" else ONLINE:
                metrics, recorder, poses = run(WrongCamera(base, ERRORS[error]), online, settings)
                whole, later = (a / b for a, b in zip(drift(poses, base.ground_truth), best, strict=True))
                print(f"{name} {seed}, {error}, {'online' if online else 'as told'}: {line(metrics)}", flush=True)
                print(
                    f"  drift over that of the true calibration, metres and degrees: {whole[0]:.2f} {whole[1]:.2f}, "
                    f"after 30 s {later[0]:.2f} {later[1]:.2f}",
                    flush=True,
                )
            estimate, sigma = recorder.learned[FRAMES // 2]
            shares = ", ".join(
                f"{NAMES[i]} {100 * estimate[i] / value:.0f} % ({abs(estimate[i] - value) / sigma[i]:.1f} sigma off)"
                for i, value in ERRORS[error].items()
            )
            truth = np.zeros(SIZE)
            truth[list(ERRORS[error])] = list(ERRORS[error].values())
            assert recorder.odometry.calibration is not None
            bias = f"constant bias {recorder.odometry.calibration.constant_bias(truth):.2f} of a block's variance"
            print(f"{learned(recorder, FRAMES // 2)}; at the end {bias}; {shares}", flush=True)


def knock(names: list[str], settings: list[str], turn: dict[int, float], frames: int | None, noise: str | None) -> None:
    """Worlds and real sequences whose right camera is turned in the middle; turn: by the axis, radians."""
    for name in names:
        base = world_of(name, KNOCKED_FRAMES) or open_sequence(name, frames=(None, frames))
        since, rate = len(base) // 2, 1e9 / float(np.median(np.diff(base.stamps)))
        stated = None if isinstance(base, RenderedOnce) else noise
        metrics, recorder, _ = run(WrongCamera(base, turn, since), True, settings, stated)
        noticed = next((i for i, said in enumerate(recorder.said) if said != recorder.said[since - 1]), None)
        before = recorder.learned[since - 1][0]
        half = next((i for i in range(since, len(base)) if _learned_half(recorder.learned[i][0] - before, turn)), None)
        when = ["never" if i is None else f"after {(i - since) / rate:.1f} s" for i in (noticed, half)]
        words = f"noticed {when[0]}, half learned {when[1]}, noticed before {recorder.said[since - 1]}"
        print(f"{base.name}, {turned_by(turn)}: {words} | {line(metrics)}", flush=True)


def _learned_half(change: Float64, turn: dict[int, float]) -> bool:
    return all(change[axis] / angle > 0.5 for axis, angle in turn.items())


def turned_by(turn: dict[int, float]) -> str:
    """A turn in words."""
    return ", ".join(f"{NAMES[axis]} {np.degrees(angle):+.2f} deg" for axis, angle in turn.items())


def apparent(names: list[str], settings: list[str], frames: int) -> None:
    """What all residuals together say of the calibration, formally, in sigmas of what one block of frames would say.

    Rendered cameras are as told: whatever seems to be wrong with them is a bias of the odometry.
    """
    for name in names:
        world, _, seed = name.partition(":")
        rendered_world = world in WORLDS and seed.isdecimal()
        sequence = RenderedSequence(world, frames, int(seed)) if rendered_world else open_sequence(name)
        _, recorder, _ = run(sequence, True, settings)
        assert recorder.odometry.calibration is not None
        for highest in (5, 3):
            held = np.concatenate((np.zeros(len(PHYSICAL), bool), np.tile(np.sum(FIELD_DEGREES, axis=1) > highest, 3)))
            found, sigma = recorder.odometry.calibration.formal(held)
            figures = "  ".join(f"{label} {found[i] / sigma[i]:+.1f}" for i, label in enumerate(PHYSICAL))
            figures += f"; focal {100 * found[FOCAL]:+.2f} %, k1 {found[K1]:+.4f}"
            print(f"{sequence.name}, fields to degree {highest}: {figures}", flush=True)
        print(f"{sequence.name}: knocks {recorder.odometry.calibration.knocks}", flush=True)


def scale(paths: list[str], settings: list[str]) -> None:
    """The scale of motions that residuals claim to be wrong, and that is wrong by the truth, of parts of sequences.

    Both as the yaw of the right camera that would explain it.
    """
    for path in paths:
        world = world_of(path, FRAMES)
        squares = []
        for first in range(0, len(world or open_sequence(path)) - PART + 1, PART):
            frames = first, first + PART
            sequence = open_sequence(path, frames=frames) if world is None else PartOfSequence(world, frames)
            config = load_config(assignments=["matcher=lite", "calibration.online=false", *settings])
            odometry = StereoOdometry(config)
            result = run_sequence(sequence, odometry, progress=False)
            assert sequence.ground_truth is not None
            assert odometry.calibration is not None
            motions, truth = (over(poses, SPAN)[:, :3, 3] for poses in (result.poses, np.array(sequence.ground_truth)))
            lengths, true = (np.linalg.norm(each, axis=1) for each in (motions, truth))
            if true[::SPAN].sum() < 1.0:
                continue  # it stands
            wrong = float(lengths @ true / (true @ true)) - 1.0
            yaw = wrong / scale_by_yaw(result.steps)
            claimed, block = odometry.calibration.claimed_scale()
            squares.append(((claimed - yaw) / block) ** 2)
            told = f"claimed {np.degrees(claimed):+.4f}, true {np.degrees(yaw):+.4f} deg ({100 * wrong:+.2f} %)"
            sigmas = f"one block {np.degrees(block):.4f} deg: off by {abs(claimed - yaw) / block:.1f} sigma"
            print(f"{sequence.name} {first} to {first + PART}: {told}, {sigmas}", flush=True)
        print(f"mean square {np.mean(squares):.1f} of a block's variance, largest {np.max(squares):.1f}", flush=True)


def scale_by_yaw(steps: tuple[PathStep | None, ...]) -> float:
    """Share by which a radian of yaw lengthens motions (sensitivities are what correcting it does)."""
    longer, length = 0.0, 0.0
    for step in steps:
        if step is None or step.calibration is None or step.constants is None:
            continue
        forward = step.relative.motion[:3, 3]
        longer += float(forward @ step.calibration[:3, len(step.constants.unit) + YAW])
        length += float(forward @ forward)
    return -longer / length


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=("real", "rendered", "knock", "apparent", "scale"))
    parser.add_argument("what", nargs="+")
    parser.add_argument("--set", nargs="*", default=[], help="configuration keys")
    parser.add_argument("--errors", nargs="*", default=list(ERRORS), choices=list(ERRORS))
    parser.add_argument("--turn", nargs=3, type=float, default=[0.0, 0.1, 0.0], help="of a knock: pitch, yaw and roll")
    parser.add_argument("--frames", type=int, help="of real sequences, the first so many")
    parser.add_argument("--truth-noise", help="of real sequences, METRES,DEGREES,SECONDS as for macvo eval")
    parser.add_argument("--only-online", action="store_true", help="leave out the runs with the calibration as told")
    args = parser.parse_args()
    if args.only_online:
        ONLINE.remove(False)
    if args.mode == "real":
        real(args.what, args.set, (None, args.frames), args.truth_noise)
    elif args.mode == "apparent":
        apparent(args.what, args.set, args.frames or 40)
    elif args.mode == "scale":
        scale(args.what, args.set)
    elif args.mode == "rendered":
        rendered(args.what, args.set, args.errors)
    else:
        turn = {axis: np.radians(angle) for axis, angle in zip((PITCH, YAW, ROLL), args.turn, strict=True) if angle}
        knock(args.what, args.set, turn, args.frames, args.truth_noise)


if __name__ == "__main__":
    main()
