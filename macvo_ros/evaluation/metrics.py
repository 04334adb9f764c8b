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

"""How far the trajectory is from the truth, and whether the covariance knew.

Error of a motion or a pose, the package's convention (`uncertainty/relative_motion.py`): delta = [dt, dtheta] with
t_true = t + dt and R_true = Exp(dtheta) R. For a relative motion its axes are those of the earlier frame, for a pose
those of odom, and the truth is anchored at the first frame (which therefore has no error and counts nowhere).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from macvo_ros.errors import SequenceError
from macvo_ros.evaluation.horizons import Horizon, honesty_by_horizon
from macvo_ros.evaluation.kitti_measure import kitti_measure
from macvo_ros.evaluation.nees import nees, sigmas, within
from macvo_ros.evaluation.runner import Run
from macvo_ros.evaluation.truth_noise import TruthNoise
from macvo_ros.geometry.se3 import log_so3
from macvo_ros.odometry.status import Status

Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Metrics:
    """The figures of one run; lengths in metres, angles in degrees.

    frames: how many, the first included; tracking + degraded + lost are all but the first.
    t_rel, r_rel: metres and degrees a frame, mean over consecutive frames (paper, section IV, evaluation metrics).
    ate_rmse: of the positions after SE(3) alignment (`ate_alignment` says when that was impossible).
    nees_*_mean: 6 when the covariance is honest, larger when it is too small. Consecutive errors of the *pose* are the
    same error grown, so the mean of one run scatters widely around 6.
    within_*sigma: share of the components (6 per frame) of the error of the *relative motion* that lie within that many
    of their own standard deviations; Gaussian: .683, .954, .997. pose_within_*sigma: the same for the pose.
    end_error: of the last position, metres; path_length: of the truth.
    t_err, r_err: the KITTI benchmark's measure, percent and degrees per 100 m (`kitti_measure.py`); NaN below 100 m.
    horizons: NEES and share within 3 sigma of the path since an earlier frame, by how much earlier (`horizons.py`).
    fps: frames per second of tracking, without the first frame and without reading images.
    """

    frames: int
    t_rel: float
    r_rel: float
    ate_rmse: float
    ate_alignment: str
    end_error: float
    path_length: float
    nees_relative_mean: float
    nees_relative_median: float
    nees_pose_mean: float
    within_1sigma: float
    within_2sigma: float
    within_3sigma: float
    pose_within_1sigma: float
    pose_within_2sigma: float
    pose_within_3sigma: float
    fps: float
    tracking: int
    degraded: int
    lost: int
    t_err: float = float("nan")
    r_err: float = float("nan")
    horizons: tuple[Horizon, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The figures by name, in the order above."""
        return asdict(self)


@dataclass(frozen=True, eq=False)
class Errors:
    """Errors frame by frame, with what the covariance said; frame 0 is left out (M = N - 1).

    relative, pose: (M, 6) metres and radians. relative_sigma, pose_sigma: (M, 6) standard deviations.
    relative_nees, pose_nees: (M,); inf where a covariance is singular, NaN where there is none.
    """

    relative: Float64
    relative_sigma: Float64
    relative_nees: Float64
    pose: Float64
    pose_sigma: Float64
    pose_nees: Float64


def evaluate(run: Run, ground_truth: Float64, noise: TruthNoise | None = None) -> tuple[Metrics, Errors]:
    """Measure a run against `ground_truth`, (N, 4, 4) poses of the left camera in any world, metres.

    noise: of the truth itself, for the honesty by horizon; None: it is exact.
    """
    if ground_truth.shape != run.poses.shape:
        raise SequenceError(
            f"expected one true pose per frame, got {len(ground_truth)} poses for {len(run.poses)} frames"
        )
    if len(run.poses) < 2:
        raise SequenceError(f"evaluation needs at least 2 frames, got {len(run.poses)}; widen --frames")
    truth = anchored(ground_truth, run.poses[0])
    relative = motion_error(run.motions, relative_motions(truth))
    pose = motion_error(run.poses[1:], truth[1:])
    errors = Errors(
        relative=relative,
        relative_sigma=sigmas(run.motion_covariances),
        relative_nees=nees(relative, run.motion_covariances),
        pose=pose,
        pose_sigma=sigmas(run.covariances[1:]),
        pose_nees=nees(pose, run.covariances[1:]),
    )
    translation, rotation = relative_errors(run.poses, truth)
    ate, alignment = absolute_trajectory_error(run.poses, truth)
    drift = kitti_measure(run.poses, truth)
    count = {status: int(np.count_nonzero(run.status == status)) for status in Status}
    metrics = Metrics(
        frames=len(run.poses),
        t_rel=float(translation.mean()),
        r_rel=float(rotation.mean()),
        ate_rmse=ate,
        ate_alignment=alignment,
        end_error=float(np.linalg.norm(pose[-1, :3])),
        path_length=path_length(truth),
        nees_relative_mean=_mean(errors.relative_nees),
        nees_relative_median=_median(errors.relative_nees),
        nees_pose_mean=_mean(errors.pose_nees),
        within_1sigma=within(relative, errors.relative_sigma, 1),
        within_2sigma=within(relative, errors.relative_sigma, 2),
        within_3sigma=within(relative, errors.relative_sigma, 3),
        pose_within_1sigma=within(pose, errors.pose_sigma, 1),
        pose_within_2sigma=within(pose, errors.pose_sigma, 2),
        pose_within_3sigma=within(pose, errors.pose_sigma, 3),
        fps=run.fps,
        tracking=count[Status.TRACKING],
        degraded=count[Status.DEGRADED],
        lost=count[Status.LOST],
        t_err=float("nan") if drift is None else drift.t_err,
        r_err=float("nan") if drift is None else drift.r_err,
        horizons=honesty_by_horizon(run, truth, noise),
    )
    return metrics, errors


def relative_motions(poses: Float64) -> Float64:
    """(N - 1, 4, 4) pose of each frame in the one before it, from (N, 4, 4) poses."""
    return inverse(poses[:-1]) @ poses[1:]


def inverse(poses: Float64) -> Float64:
    """Inverse of (..., 4, 4) rigid motions."""
    rotation = np.swapaxes(poses[..., :3, :3], -1, -2)
    result = np.zeros_like(poses)
    result[..., :3, :3] = rotation
    result[..., :3, 3:] = -rotation @ poses[..., :3, 3:]
    result[..., 3, 3] = 1.0
    return result


def anchored(ground_truth: Float64, first: Float64) -> Float64:
    """`ground_truth`, (N, 4, 4), moved so that its first pose is `first`, (4, 4)."""
    return np.asarray(first @ inverse(ground_truth[0]) @ ground_truth)


def motion_error(estimated: Float64, true: Float64) -> Float64:
    """(M, 6) errors [t_true - t, Log(R_true R^T)] of (M, 4, 4) motions or poses, metres and radians."""
    rotation = true[:, :3, :3] @ np.swapaxes(estimated[:, :3, :3], 1, 2)
    return np.concatenate([true[:, :3, 3] - estimated[:, :3, 3], _rotation_vectors(rotation)], axis=1)


def relative_errors(estimated: Float64, true: Float64) -> tuple[Float64, Float64]:
    """Relative errors of (N, 4, 4) poses, (N - 1,) metres and (N - 1,) degrees; their means are t_rel and r_rel.

    The paper's ||p_{t+1} - p_t - R_t R^_t^T (p^_{t+1} - p^_t)|| is the distance of the two relative translations, since
    R_t^T leaves a length alone; the rotation is the angle of R^_{t,t+1}^T R_{t,t+1}. evo's RPE at a delta of one frame.
    """
    ours, truth = relative_motions(estimated), relative_motions(true)
    rotation = np.swapaxes(ours[:, :3, :3], 1, 2) @ truth[:, :3, :3]
    angle = np.linalg.norm(_rotation_vectors(rotation), axis=1)
    return np.linalg.norm(ours[:, :3, 3] - truth[:, :3, 3], axis=1), np.degrees(angle)


def absolute_trajectory_error(estimated: Float64, true: Float64) -> tuple[float, str]:
    """RMSE of the positions in metres after alignment without scale, by evo, and the alignment used.

    "se3" is Umeyama's; where that has no answer (a camera that stands still or moves along a line) it is "first pose".
    """
    from evo.core import metrics
    from evo.core.geometry import GeometryException
    from evo.core.trajectory import PosePath3D

    truth = PosePath3D(poses_se3=list(true))
    ours = PosePath3D(poses_se3=list(estimated))
    alignment = "se3"
    try:
        ours.align(truth, correct_scale=False)
    except GeometryException:
        alignment = "first pose"
        ours = PosePath3D(poses_se3=list(estimated))
        ours.align_origin(truth)
    ape = metrics.APE(metrics.PoseRelation.translation_part)
    ape.process_data((truth, ours))
    return float(ape.get_statistic(metrics.StatisticsType.rmse)), alignment


def path_length(poses: Float64) -> float:
    """Length of the way along (N, 4, 4) poses, metres."""
    return float(np.linalg.norm(np.diff(poses[:, :3, 3], axis=0), axis=1).sum())


def _rotation_vectors(rotation: Float64) -> Float64:
    return np.array([log_so3(one) for one in rotation]).reshape(-1, 3)


def _mean(values: Float64) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else float("nan")


def _median(values: Float64) -> float:
    known = values[~np.isnan(values)]
    return float(np.median(known)) if known.size else float("nan")
