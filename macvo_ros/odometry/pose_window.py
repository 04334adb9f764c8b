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


"""The window beside the two-frame motions: it follows points, solves, and says where the newest frame is.

The two-frame motion comes first and is what is doubted; where it is sound the window takes it for its start and finds
the newest pose from all frames it holds. Where it is not, the window ends, and begins anew at the next sound frame. The
pose that is published goes on from the one before (`published_step.py`); what later frames say about earlier ones is in
`WindowEstimate.corrections`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from macvo_ros.geometry.se3 import difference, inverse, lever_arm, transform
from macvo_ros.images.frame import StereoFrame
from macvo_ros.matching.matcher import Match, PointMatches
from macvo_ros.motion.calibration_shift import CalibrationShift
from macvo_ros.motion.followed_points import RELIEF_DEPTH, PointPatches, SmoothPair, first_views, follow
from macvo_ros.motion.sliding_window import NewPoints, Sightings, SlidingWindow
from macvo_ros.motion.two_frame import TwoFrameResult
from macvo_ros.motion.window_solver import WindowSolution
from macvo_ros.odometry.published_step import increment_covariance, newest_covariance, taken_in
from macvo_ros.settings.config import Config
from macvo_ros.uncertainty.calibration_error import LENGTH, RunningMean
from macvo_ros.uncertainty.error_correlation import ErrorCorrelation, distances
from macvo_ros.uncertainty.relative_motion import RelativeMotion
from macvo_ros.uncertainty.trajectory import LONG_RUN, symmetric_positive

Float64 = npt.NDArray[np.float64]
Bool = npt.NDArray[np.bool_]

_SHARED = 0.7
"""Part of the variance of a point's matches that is the same in all frames it is compared with its first view in.
`python -m bench.shared_errors`: 0.60 to 0.94 between neighbouring frames, 0.52 to 0.90 three or four apart, 0.40 to
0.83 at five to eight."""
_APART = 0.2
"""A new point is at least this far from one that is followed, in sides of keypoints' cells; chosen, not measured."""
_COUNTED = 1e4
"""Variance of a sighting that the two-frame motion was measured with, in its own: that motion counts, the sighting does
not again."""
_CHI2_6 = 22.46
"""99.9 % point of a chi-square variable with six degrees of freedom: farther from the two-frame motion is a fault."""
_BEGINNING = np.diag([1e-4] * 3 + [1e-6] * 3)
"""Covariance that the first pose of a window is told to have, metres^2 and radians^2; what is truly known of it is put
in its place once the window is solved. Nothing that is seen tells where the window is as a whole, so it makes no
difference but one: what is known to kilometres only, after an hour without images, would be lost in rounding."""
_MEMORY = 50
"""Frames over which it is averaged how much larger residuals are than promised; chosen, not measured."""


@dataclass(frozen=True, eq=False)
class Step:
    """A frame after another one. place, covariance: (4, 4), (6, 6), left camera in odom, as published of the previous.

    motion: of the camera between them, by two frames. first_view: dense match of the previous frame if `result` was
    measured against it, else None. lens: what the motion was corrected by. calibration_var: pixels^2, what may remain
    (`CalibrationConstants`); constant: (6, 6) what the calibration adds to the motion's covariance.
    """

    previous: StereoFrame
    frame: StereoFrame
    place: Float64
    covariance: Float64
    motion: RelativeMotion
    result: TwoFrameResult
    first_view: Match | None
    lens: CalibrationShift
    calibration_var: float
    constant: Float64


@dataclass(frozen=True, eq=False)
class WindowEstimate:
    """pose, covariance: of the newest left camera in odom. relative: from the previous one *as published* to it.

    began: the window begins with the frame before. corrections: stamp and (4, 4) pose of every earlier frame of the
    window as it is thought of now.
    """

    pose: Float64
    covariance: Float64
    relative: RelativeMotion
    began: bool
    corrections: tuple[tuple[int, Float64], ...]


class PoseWindow:
    """A `SlidingWindow` and the patches of its points."""

    def __init__(self, config: Config, correlation: ErrorCorrelation) -> None:
        self._config = config
        self._correlation = correlation
        self._count = round(config.window.points * config.keypoints.count)
        self._excess = RunningMean(_MEMORY)
        self.reset()

    def reset(self) -> None:
        """Forget all frames and points: the next step begins a window."""
        self._window: SlidingWindow | None = None
        self._views: PointPatches | None = None
        self._stamps: list[int] = []
        self._began_at, self._known_there = np.zeros(3), _BEGINNING

    def step(self, step: Step) -> WindowEstimate | None:
        """Take in a frame; None, and a new beginning, where the window does not agree with the two-frame motion."""
        previous_images, images = SmoothPair.of(step.previous), SmoothPair.of(step.frame)
        began = self._window is None or self._stamps[-1] != step.previous.stamp
        if self._window is None or began:
            self._window = SlidingWindow(step.frame.full.camera, self._config.window.frames, step.place, _BEGINNING)
            self._began_at, self._known_there = step.place[:3, 3], step.covariance
            self._views, self._stamps = None, [step.previous.stamp]
        window = self._window
        keep = window.drop_temporary()
        self._stamps = [stamp for stamp, stays in zip(self._stamps, keep, strict=True) if stays]
        chosen = np.zeros(len(step.result.points.pixel), bool)
        promoted = step.first_view is not None and self._is_keyframe(window)
        if promoted:
            chosen = self._new_points(window, step)
        new = step.result.points.subset(chosen)
        if promoted:
            self._promote(window, step, new, previous_images)
        start = transform(window.state.rotation[-1], window.state.position[-1]) @ step.motion.motion
        sightings = self._sightings(window, step, new, start, images)
        window.add(start, sightings, step.motion.covariance, LONG_RUN)
        self._stamps.append(step.frame.stamp)
        solution = window.solve(self._config.pose)
        self._expel(window, solution.inlier)
        self._excess.add(max(1.0, solution.chi2))
        estimate = self._estimate(window, solution, step, began)
        agreeing = int((sightings.found & solution.inlier).sum())
        if agreeing < self._config.pose.min_points or not _agree(estimate.relative, step):
            self.reset()
            return None
        return estimate

    def _is_keyframe(self, window: SlidingWindow) -> bool:
        """Whether the view has changed since the last keyframe, or too little of it is followed."""
        if len(window) == 1 or not len(window.points):
            return True
        last, points = int(np.flatnonzero(window.keyframe)[-1]), window.points
        first = points.anchor == last
        before = np.where(first, points.pixel, points.seen[last, :2])
        both = (first | (points.inverse_sigma[last, 0] > 0)) & (points.inverse_sigma[-1, 0] > 0)
        if both.sum() < 0.5 * self._count:
            return True
        moved = np.median(np.linalg.norm(points.seen[-1, :2] - before, axis=0)[both])
        return bool(moved >= self._config.window.keyframe_flow)

    def _new_points(self, window: SlidingWindow, step: Step) -> Bool:
        """Which of the two-frame keypoints fill the window up: those that agree, apart from what is followed."""
        points, camera, count = step.result.points, step.frame.full.camera, self._count
        wanted = step.result.solution.inlier.copy()
        if window.alive.any():
            apart = distances(points.pixel, window.points.seen[-1, :2, window.alive]).min(axis=1)
            wanted &= apart > _APART * (camera.width * camera.height / count) ** 0.5
        wanted[np.flatnonzero(wanted)[max(count - int(window.alive.sum()), 0) :]] = False
        return np.asarray(wanted)

    def _promote(self, window: SlidingWindow, step: Step, new: PointMatches, images: SmoothPair) -> None:
        assert step.first_view is not None
        pixel = np.vstack((window.points.seen[-1, :2].T, new.pixel))
        followed = np.concatenate((window.alive, np.ones(len(new.pixel), bool)))
        crowding = np.concatenate((window.points.crowding, np.ones(len(new.pixel))))
        kernel = self._correlation.kernel(pixel[followed], pixel[followed])
        np.fill_diagonal(kernel, 1.0)
        crowding[followed] = kernel.sum(axis=1) * max(1.0, self._excess.mean)
        views = first_views(images.left, step.first_view, new)
        common = step.calibration_var + (RELIEF_DEPTH * views.relief) ** 2
        disparity = _SHARED * np.minimum(new.disparity_var, new.matched_disparity_var) + common
        shared = np.vstack((_SHARED * new.flow_var.T, disparity))
        first = step.lens.corrected(np.vstack((new.pixel.T, new.disparity)))
        window.promote(NewPoints(first[:2], first[2], new.disparity_var + common, shared), crowding)
        if len(new.pixel):
            self._views = views if self._views is None else self._views.joined(views)
        anchor = window.points.anchor
        gone = window.make_room(self._config.pose)
        if gone and self._views is not None:
            self._views = self._views.subset(anchor >= gone)
        self._stamps = self._stamps[gone:]

    def _sightings(
        self, window: SlidingWindow, step: Step, new: PointMatches, start: Float64, images: SmoothPair
    ) -> Sightings:
        """All points of the window in the newest frame; those just made were found by the two-frame match."""
        points, camera = window.points, step.frame.full.camera
        if self._views is None:
            return Sightings(np.zeros((3, 0)), np.ones((3, 0)), np.zeros(0, bool))
        made = np.arange(len(points)) >= len(points) - len(new.pixel)
        wanted = window.alive & ~made
        sightings = follow(camera, self._views, points, window.state, wanted, start, images, step.lens)
        sightings.seen[:, made] = np.vstack(((new.pixel + new.flow).T, new.matched_disparity))
        sightings.variance[:, made] = np.vstack((new.flow_var.T, new.matched_disparity_var))
        sightings.found[made] = True
        # What a point's errors have in common is an unknown of its own; what the lens does on the way is not.
        seen = step.lens.corrected(sightings.seen)
        moved = np.linalg.norm(seen[:2] - points.pixel, axis=0)
        variance = (1.0 - _SHARED) * sightings.variance
        lens = step.calibration_var * (1.0 - np.exp(-moved / (LENGTH * camera.width)))
        variance[:2] += lens
        variance[2] = np.maximum(variance[2], sightings.variance[2] + step.calibration_var - points.shared_var[2])
        variance[:, made] *= _COUNTED
        return Sightings(seen, variance, sightings.found)

    def _expel(self, window: SlidingWindow, keep: Bool) -> None:
        if self._views is not None and not keep.all():
            window.expel(keep)
            self._views = self._views.subset(keep)

    def _estimate(self, window: SlidingWindow, solution: WindowSolution, step: Step, began: bool) -> WindowEstimate:
        known = newest_covariance(solution.information, 6)
        lever = lever_arm(window.state.position[-1] - self._began_at)
        known = known + lever @ (self._known_there - _BEGINNING) @ lever.T
        # Of motions: with the first frame held, or the small differences of large numbers would be rounding.
        joint = np.zeros((12, 12))
        held = newest_covariance(solution.information[6:, 6:], 12)
        joint[-len(held) :, -len(held) :] = held
        poses = [transform(r, t) for r, t in zip(window.state.rotation, window.state.position, strict=True)]
        motion = RelativeMotion(inverse(poses[-2]) @ poses[-1], increment_covariance(joint, poses[-2], poses[-1]))
        pose, relative, off = taken_in(step.place, motion, poses[-1])
        corrections = tuple(zip(self._stamps[:-1], poses[:-1], strict=True))
        return WindowEstimate(pose, symmetric_positive(known + np.outer(off, off)), relative, began, corrections)


def _agree(relative: RelativeMotion, step: Step) -> bool:
    """Whether the window's motion is the two-frame one within the covariances of both."""
    off = difference(step.motion.motion, relative.motion)
    both = relative.covariance + step.motion.covariance + step.constant
    return bool(off @ np.linalg.solve(both, off) <= _CHI2_6)
