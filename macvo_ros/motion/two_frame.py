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

"""One step of the paper between two matched frames: keypoints, covariance, pose, and the covariance of the pose."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from macvo_ros.geometry.camera import StereoCamera, pixels
from macvo_ros.geometry.se3 import difference
from macvo_ros.matching.matcher import Matcher, PointMatches
from macvo_ros.motion.calibration_evidence import calibration_evidence
from macvo_ros.motion.calibration_shift import CalibrationShift
from macvo_ros.motion.common_points import CommonPoints, at_common_points
from macvo_ros.motion.covariance import (
    ablated,
    depth_is_known,
    patch_disparity_variance,
)
from macvo_ros.motion.keypoint_matches import Laps, MatchedFrames, TooFewPoints, match_keypoints
from macvo_ros.motion.landmarks import Landmarks
from macvo_ros.motion.point_pairs import PointPairs, point_pairs
from macvo_ros.motion.pose_solver import PoseSolution, search_pose, solve_linearised, solve_pose
from macvo_ros.settings.config import Config
from macvo_ros.uncertainty.block_scatter import Evidence
from macvo_ros.uncertainty.calibration_model import Keypoints
from macvo_ros.uncertainty.error_correlation import ErrorSources, error_sources, regional_chi2
from macvo_ros.uncertainty.motion_prior import MotionPrior
from macvo_ros.uncertainty.online_calibration import AssumedCalibration
from macvo_ros.uncertainty.relative_motion import RelativeMotion

Float64 = npt.NDArray[np.float64]

_SETTLED = 0.01
"""Squared change of a motion, in sigmas, below which its common points need not be found again; chosen."""
_PROMISE = 20.0
"""Points whose residuals the promised variance is worth, where residuals are smaller than promised: the mean square of
so few scatters by a third. Chosen; of 200 points it is a tenth of the result."""
METRIC = ("full", "diagonal")
"""Models of the covariance in metres, whose residuals can be compared with what was promised."""


@dataclass(frozen=True, eq=False)
class TwoFrameResult:
    """Motion between two frames and the evidence for it.

    relative: motion of the current left camera in the reference one; its covariance is that of the matches alone.
    calibration: (6, 3 K) its sensitivity to the knots of the calibration's error (`calibration_error.py`); where that
    is learned, followed by those to what is learned (`calibration_model.py`), to the share the baseline is off by, and
    by what was corrected (`OnlineCalibration.covariance`).
    evidence: what the residuals say of the calibration; None where nothing is learned. turned: the share of the squared
    residuals that a turned right camera explains.
    flow: (N, 2) pixels, of the keypoints. points: their refined matches, as measured
    in the images: without what was learned of the calibration.
    chosen: how many keypoints were looked for.
    pattern: how much more alike than promised the residuals of neighbours are (`error_correlation.regional_chi2`).
    prior_share: the part of the motion's information, in its weakest direction, that came from the prior (0 to 1).
    """

    relative: RelativeMotion
    calibration: Float64
    solution: PoseSolution
    landmarks: Landmarks
    sources: ErrorSources
    flow: Float64
    points: PointMatches
    chosen: int
    pattern: float
    prior_share: float
    timings: dict[str, float]
    evidence: Evidence | None = None
    turned: float = 0.0

    @property
    def unexplained_chi2(self) -> float:
        """Mean squared residual of the inliers that neither the motion nor a turned right camera explains."""
        return self.solution.chi2 * (1.0 - self.turned)

    @property
    def median_flow(self) -> float:
        """Of the keypoints that agree, pixels."""
        return float(np.median(np.linalg.norm(self.flow[self.solution.inlier], axis=1)))


def two_frame_motion(
    config: Config,
    matcher: Matcher,
    assumed: AssumedCalibration,
    frames: MatchedFrames,
    seed: Float64,
    prior: MotionPrior,
    *,
    near: bool = False,
) -> TwoFrameResult:
    """Estimate the motion between two frames from their dense matches, starting at the (4, 4) `seed`.

    near: the seed is a motion that keypoints agree on (`consensus.py`), and tells which of them are outliers.
    """
    laps = Laps()
    camera = frames.current.full.camera
    in_images, chosen = match_keypoints(config, matcher, frames, assumed.rows, laps)
    measured = _keypoints(in_images)
    points = in_images if assumed.error is None else _moved(in_images, _corrected(camera, assumed.error, measured))
    reduction = frames.current.reduction
    patch_var = patch_disparity_variance(
        frames.match.disparity,
        frames.current.from_full(measured.matched),
        points.flow_var / reduction**2,
        config.covariance.patch,
    )
    points = replace(points, matched_disparity_var=points.matched_disparity_var + patch_var * reduction[0] ** 2)
    laps.end("covariance")

    # A prior in metres has no meaning beside residuals that are not weighed in metres.
    metric = config.covariance.model in METRIC
    solution, common = _solve(config, camera, points, seed, prior if metric else None, near=near)
    sources, calibration = _sensitivities(camera, assumed, points, common, solution)
    # The gain is linear in the noise whatever the metric was, so the real covariances go in, also in ablations.
    covariance = solution.covariance(common.pairs) + sources.excess(
        matcher.disparity_correlation, matcher.flow_correlation
    )
    from_prior: Float64 = np.zeros((6, 6))
    pattern = 1.0
    if metric:
        # What residuals are, or how alike, in what was promised: the promise is scaled by it.
        agree, size = solution.inlier, (camera.width, camera.height)
        pattern = regional_chi2(solution.residual[agree], points.pixel[agree], size, matcher.disparity_correlation)
        covariance *= _kept_promise(max(solution.worst_chi2, pattern), int(agree.sum()))
        from_prior = np.asarray(np.linalg.solve(solution.information, prior.information), dtype=np.float64)
        covariance += from_prior @ np.linalg.solve(prior.information, from_prior.T)
    evidence, turned = None, 0.0
    if assumed.error is not None:
        seen = calibration_evidence(assumed.model, common.reference, common.current, solution, assumed.error)
        learned, turned = seen.sensitivity, seen.turned
        evidence = seen.told if metric else None
        scale = np.concatenate((solution.motion[:3, 3], np.zeros(3)))[:, None]
        calibration = np.hstack((calibration, learned, scale, (learned @ assumed.error)[:, None]))
    laps.end("pose")
    return TwoFrameResult(
        relative=RelativeMotion(solution.motion, covariance),
        calibration=calibration,
        solution=solution,
        landmarks=_landmarks(measured, points, common, solution),
        sources=sources,
        flow=points.flow,
        points=in_images,
        chosen=chosen,
        pattern=pattern,
        prior_share=float(np.abs(np.linalg.eigvals(from_prior)).max()),
        timings=laps.seconds,
        evidence=evidence,
        turned=turned,
    )


def _kept_promise(chi2: float, points: int) -> float:
    """By how much the variance that matches promise is to be multiplied, given the chi2 of the residuals of `points`.

    Where residuals are smaller than promised, the promise is a measurement, too, worth `_PROMISE` points.
    """
    return chi2 if chi2 >= 1.0 else (points * chi2 + _PROMISE) / (points + _PROMISE)


def _sensitivities(
    camera: StereoCamera,
    assumed: AssumedCalibration,
    points: PointMatches,
    common: CommonPoints,
    solution: PoseSolution,
) -> tuple[ErrorSources, Float64]:
    """How the errors of each match go into the motion, and (6, 3 K) how those of the calibration's knots do."""
    matched = pixels(camera, common.current)  # as seen, a far point's large error of depth would be one across the ray
    depth, matched_depth = common.reference[:, 2], common.current[:, 2]
    scale = (camera.fx * camera.baseline) ** -2
    depth_var = depth**4 * scale * points.disparity_var
    matched_var = matched_depth**4 * scale * points.matched_disparity_var
    sources = error_sources(
        camera, solution, points.pixel, depth_var, matched, matched_depth, matched_var, points.flow_var
    )
    # Per pixel of error instead of per sigma; a larger disparity is a smaller depth.
    calibration = assumed.field.sensitivity(
        -sources.reference_disparity.columns / np.sqrt(points.disparity_var),
        -sources.current_disparity.columns / np.sqrt(points.matched_disparity_var),
        (sources.flow[0] / np.sqrt(points.flow_var[:, 0]), sources.flow[1] / np.sqrt(points.flow_var[:, 1])),
        points.pixel,
        matched,
    )
    return sources, calibration


def _landmarks(measured: Keypoints, points: PointMatches, common: CommonPoints, solution: PoseSolution) -> Landmarks:
    """The keypoints as points of the current frame, for the user; pixels are those of the image as it is."""
    return Landmarks(
        pixel=measured.matched,
        point=common.current,
        covariance=common.pairs.current_cov,
        match_sigma=np.sqrt(points.flow_var.mean(axis=1)),
        weight=solution.weight,
        inlier=solution.inlier,
    )


def _keypoints(points: PointMatches) -> Keypoints:
    return Keypoints(points.pixel, points.disparity, points.pixel + points.flow, points.matched_disparity)


def _corrected(camera: StereoCamera, error: Float64, seen: Keypoints) -> Keypoints:
    """`CalibrationModel.corrected` in a tenth of the time."""
    lens = CalibrationShift(camera, error)
    first = lens.corrected(np.vstack((seen.pixel.T, seen.disparity)))
    second = lens.corrected(np.vstack((seen.matched.T, seen.matched_disparity)))
    return Keypoints(first[:2].T, first[2], second[:2].T, second[2])


def _moved(points: PointMatches, to: Keypoints) -> PointMatches:
    """The keypoints at other places."""
    return replace(
        points,
        pixel=to.pixel,
        disparity=to.disparity,
        flow=to.matched - to.pixel,
        matched_disparity=to.matched_disparity,
    )


def _solve(
    config: Config,
    camera: StereoCamera,
    points: PointMatches,
    seed: Float64,
    prior: MotionPrior | None,
    *,
    near: bool,
) -> tuple[PoseSolution, CommonPoints]:
    """The motion, and the points that its residuals are linearised at, with the real covariances of their errors.

    Ablations and PyPose's solver, as the paper's, linearise at the points as measured, and so does the search for the
    motion to begin with: as far as these are known in metres.
    """
    model = config.covariance.model
    needed, known = config.pose.min_points, depth_is_known(camera, points)
    real, usable = point_pairs(camera, points), known[0] & known[1]
    if int(usable.sum()) < needed:
        # The others tell how the camera turned; how it moved would be the prediction's guess.
        few = TooFewPoints(f"{int(usable.sum())} of {len(points.pixel)} keypoints have a depth, {needed} are needed")
        few.stereo_at_fault = int(known[0].sum()) >= needed
        raise few
    reference_cov, current_cov = ablated(real.reference_cov, real.current_cov, model)
    pairs = PointPairs(real.reference, reference_cov, real.current, current_cov)
    common = CommonPoints(real, real.reference, real.current)
    if config.solver == "pypose":
        from macvo_ros.motion.pypose_solver import solve_pose_pypose

        motion = solve_pose_pypose(pairs.subset(usable), seed, kernel=config.pose.kernel)
        # Linearised at PyPose's solution, for the covariance and the outliers.
        solution = solve_pose(pairs, motion, config.pose, prior, usable, iterate=False)
    elif model != "full":
        solution = solve_pose(pairs, seed, config.pose, prior, usable, iterate=not near)
    else:
        motion = seed
        if not near:
            found, agree, _ = search_pose(pairs, seed, config.pose, prior, usable)
            motion = found if int(agree.sum()) >= config.pose.min_points else seed
        for _ in range(config.pose.max_iterations):
            common = at_common_points(camera, points, motion)
            solution = solve_linearised(common.pairs, common.current, motion, config.pose, prior)
            change, motion = difference(motion, solution.motion), solution.motion
            if change @ solution.information @ change < _SETTLED:
                break
    inliers = int(solution.inlier.sum())
    if inliers < config.pose.min_points:
        raise TooFewPoints(
            f"{inliers} of {len(points.pixel)} keypoints agree on a motion, {config.pose.min_points} are needed"
        )
    return solution, common
