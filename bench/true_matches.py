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

"""Which of the three matches behind a keypoint carries the drift: the truth in place of one after the other.

    python -m bench.true_matches [--worlds room corridor] [--seed 201] [--frames 100] [--quiet]
                                [--window 2] [--log NAME]

A rendered walk is tracked with the calibration as told; of each keypoint the flow, the disparity or the matched one is
replaced by what it is where the keypoint lies, exactly: the plane that its pixel shows, seen from the true poses. The
variances stay. Also the errors of the refined matches themselves, in pixels: their root mean square, and the mean
square over variance. --quiet: a sensor without noise, so that what is left is the model's. Writes
bench/results/NAME.txt (true_matches.txt).
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from macvo_ros.atomic_write import atomic_write
from macvo_ros.evaluation.environment import measured_with
from macvo_ros.evaluation.metrics import motion_error
from macvo_ros.evaluation.table import format_table
from macvo_ros.geometry.camera import pixels, rays
from macvo_ros.geometry.se3 import inverse
from macvo_ros.images.frame import StereoFrame
from macvo_ros.matching.matcher import Match, PointMatches
from macvo_ros.odometry.stereo_odometry import StereoOdometry
from macvo_ros.rendering.sensor import Digitizer
from macvo_ros.rendering.sequence import RenderedSequence
from macvo_ros.rendering.visibility import Visibility, look
from macvo_ros.settings.config import load_config
from macvo_ros.uncertainty.row_field import RowField

RESULTS = Path(__file__).parent / "results"
KNOWN = ("", "flow", "disparity", "matched", "disparity matched", "flow disparity", "flow matched")
HEADING = ["walk", "true", "end [mm]", "end [deg]", "t_rel [mm]", "r_rel [deg]"]
ERRORS = ["walk", "match", "rms [px]", "median [px]", "mean square / variance"]
MISMATCH = 1.0  # pixels, beyond which an error is another thing than the refinement's


class ExactMatches:
    """What the matches of a rendered walk are, between pixels as well."""

    def __init__(self, sequence: RenderedSequence) -> None:
        assert sequence.ground_truth is not None
        self._sequence, self.poses = sequence, sequence.ground_truth
        self._views: dict[int, Visibility] = {}

    def disparity(self, index: int, pixel: np.ndarray) -> np.ndarray:
        """(N,) pixels, at (N, 2) pixels of left image `index`: of the plane that the nearest whole pixel shows."""
        if index not in self._views:
            view = self._sequence.view(index / self._sequence.rate, shown=True)
            self._views = {**dict(list(self._views.items())[-1:]), index: look(self._sequence.world.scene, view)}
        seen, camera = self._views[index], self._sequence.camera
        column, row = np.clip(np.rint(pixel), 0, np.array(seen.slot.shape[::-1]) - 1).astype(int).T
        plane = np.vstack((seen.projected.matrix[:, 2], np.zeros(3)))[seen.slot[row, column]]
        return np.asarray((plane[:, :2] * pixel).sum(axis=1) + plane[:, 2]) * camera.fx * camera.baseline

    def flow(self, first: int, second: int, pixel: np.ndarray) -> np.ndarray:
        """(N, 2) pixels, from left image to left image."""
        camera = self._sequence.camera
        near = self.disparity(first, pixel) / (camera.fx * camera.baseline)
        motion = inverse(self.poses[second]) @ self.poses[first]
        return np.asarray(
            pixels(camera, rays(camera, pixel) @ motion[:3, :3].T + near[:, None] * motion[:3, 3]) - pixel
        )


class Walk:
    """A walk that is tracked with some of its matches true; errors: (3, ...) of flow and both disparities, variance."""

    def __init__(self, world: str, seed: int, frames: int, *, quiet: bool) -> None:
        self.sequence = RenderedSequence(world, frames, seed)
        sensor = self.sequence.world.sensor
        if quiet:
            sensor = replace(sensor, read_noise=0.0, shot_noise=0.0)
        self.sequence._digitizer = Digitizer(sensor, 1000)
        self.truth = ExactMatches(self.sequence)
        self.index = {int(stamp): index for index, stamp in enumerate(self.sequence.stamps)}
        self.frames = [self.sequence[index] for index in range(frames)]
        self.errors: list[list[np.ndarray]] = [[], [], []]

    def row(self, known: str, window: int) -> list[str]:
        """The errors of the path, with the truth in place of the matches that are named."""
        settings = ["matcher=lite", "calibration.online=false", f"window.frames={window}"]
        odometry = StereoOdometry(load_config(assignments=settings))
        refine = odometry.matcher.refine

        def refined(
            reference: StereoFrame,
            before: Match,
            current: StereoFrame,
            match: Match,
            pixel: np.ndarray,
            *rows: RowField,
        ) -> PointMatches:
            points = refine(reference, before, current, match, pixel, *rows)
            return self._replaced(points, self.index[reference.stamp], self.index[current.stamp], known)

        odometry.matcher.refine = refined  # type: ignore[method-assign]
        poses = np.array([odometry.track(frame).pose for frame in self.frames])
        true = self.sequence.ground_truth
        assert true is not None
        steps = [np.array([inverse(a) @ b for a, b in pairwise(each)]) for each in (poses, true)]
        ends = [(inverse(each[0]) @ each[-1])[None] for each in (poses, true)]
        step, end = motion_error(*steps), motion_error(*ends)[0]
        figures = [1e3 * np.linalg.norm(end[:3]), np.degrees(np.linalg.norm(end[3:]))]
        figures += [
            1e3 * np.linalg.norm(step[:, :3], axis=1).mean(),
            np.degrees(np.linalg.norm(step[:, 3:], axis=1).mean()),
        ]
        cells = [f"{value:{form}}" for value, form in zip(figures, (".2f", ".4f", ".4f", ".5f"), strict=True)]
        return [self.sequence.name, known or "nothing", *cells]

    def _replaced(self, points: PointMatches, first: int, second: int, known: str) -> PointMatches:
        flow, disparity = self.truth.flow(first, second, points.pixel), self.truth.disparity(first, points.pixel)
        matched = self.truth.disparity(second, points.pixel + points.flow)
        if not known:
            found = (points.flow.ravel(), points.disparity, points.matched_disparity)
            variance = (points.flow_var.ravel(), points.disparity_var, points.matched_disparity_var)
            for into, each, true, var in zip(
                self.errors, found, (flow.ravel(), disparity, matched), variance, strict=True
            ):
                into.append(np.stack((each - true, var)))
        words = known.split()
        if "flow" in words:
            points = replace(points, flow=flow)
        if "disparity" in words:
            points = replace(points, disparity=disparity)
        if "matched" in words:
            points = replace(points, matched_disparity=self.truth.disparity(second, points.pixel + points.flow))
        return points

    def error_rows(self) -> list[list[str]]:
        """Of the matches as they were refined."""
        rows = []
        for name, parts in zip(("flow", "disparity", "matched"), self.errors, strict=True):
            error, variance = np.hstack(parts)
            near = np.abs(error) < MISMATCH
            error, variance = error[near], variance[near]
            cells = [np.sqrt(np.mean(error**2)), np.median(np.abs(error)), np.mean(error**2 / variance)]
            rows.append([self.sequence.name, name, *(f"{cell:.4f}" for cell in cells[:2]), f"{cells[2]:.2f}"])
        return rows


def main() -> None:
    """Walk, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", nargs="*", default=["room", "corridor"])
    parser.add_argument("--seed", type=int, default=201)
    parser.add_argument("--frames", type=int, default=100)
    parser.add_argument("--window", type=int, default=2)
    parser.add_argument("--quiet", action="store_true")
    parser.add_argument("--log", default="true_matches")
    args = parser.parse_args()
    rows, errors = [], []
    for world in args.worlds:
        walk = Walk(world, args.seed, args.frames, quiet=args.quiet)
        rows += [walk.row(known, args.window) for known in KNOWN]
        errors += walk.error_rows()
    noise = "no noise" if args.quiet else "noise"
    title = f"{args.frames} frames, {noise}, window of {args.window}"
    text = f"{title}\n{format_table(HEADING, rows)}\n\n{format_table(ERRORS, errors)}\n\n{measured_with()}\n"
    print(text)
    atomic_write(RESULTS / f"{args.log}.txt", text)


if __name__ == "__main__":
    main()
