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

"""Chaining of motions into a trajectory with its covariance.

Error convention, checked by Monte Carlo in the tests: delta = [dt in odom axes, dtheta fixed-axis in odom],
t_true = t + dt, R_true = Exp(dtheta) R. Order x y z rx ry rz, metres and radians: that of nav_msgs/Odometry.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from macvo_ros.geometry.se3 import inverse, nearest_rotation, skew
from macvo_ros.uncertainty.relative_motion import RelativeMotion

Float64 = npt.NDArray[np.float64]

MINIMUM_VARIANCE = 1e-12
"""Floor of the eigenvalues of a published covariance (a micrometre, a microradian)."""

_CORRELATED_SHARE, _CORRELATED_KEPT = 0.08, 0.92
"""Points that are seen again are mismatched again in the same way, so the errors of successive motions are alike: in
units of their covariance S they have a covariance of 0.08 S that fades over 12 frames. Measured with `lite` on rendered
walks by `python -m bench.successive_errors`; motions by two halves of the keypoints of real drives differ by no more
(`--halves`). We model the common part as six unknowns that wander (Gauss-Markov), and carry the covariance of the
pose's error with them along the path."""
LONG_RUN = 1.0 + 2.0 * _CORRELATED_SHARE * _CORRELATED_KEPT / (1.0 - _CORRELATED_KEPT)
"""Variance of the sum of many successive motions over the sum of their variances, by the same figures."""


@dataclass(frozen=True, eq=False)
class PoseWithCovariance:
    """A pose in odom and where its error comes from.

    pose: (4, 4) in odom; covariance: (6, 6) of its random errors, in the convention above.
    calibration: (6, C) its sensitivity to the C constants of the calibration's error (`calibration_error.py`), which
    do not average out along the path; None: not sensitive.
    correlated: (6, 6) covariance of its error with what successive motions' errors have in common; None: zero.
    excess: (6, 6) the part of `covariance` that a window of frames does not know of (`correlated_excess`); None: zero.
    """

    pose: Float64
    covariance: Float64
    calibration: Float64 | None = None
    correlated: Float64 | None = None
    excess: Float64 | None = None

    def total(self, constants: Float64) -> Float64:
        """(6, 6) covariance of random and calibration errors together; constants: (C, C) covariance of the latter."""
        if self.calibration is None:
            return self.covariance
        return symmetric_positive(self.covariance + self.calibration @ constants @ self.calibration.T)


def symmetric_positive(covariance: Float64) -> Float64:
    """The nearest symmetric matrix with eigenvalues of at least MINIMUM_VARIANCE: every covariance we publish."""
    symmetric = 0.5 * (covariance + covariance.T)
    values, vectors = np.linalg.eigh(symmetric)
    if values[0] >= MINIMUM_VARIANCE:
        return np.asarray(symmetric)
    # Raised to twice the floor: rounding in the product must not bring an eigenvalue back below it.
    raised = (vectors * np.maximum(values, 2 * MINIMUM_VARIANCE)) @ vectors.T
    return np.asarray(0.5 * (raised + raised.T))


def base_jacobian(motion_base: Float64, base_from_camera: Float64) -> Float64:
    """(6, 6) that carries the error of a camera motion to that of the base: [[R, [dR_b t]x R], [0, R]].

    motion_base: (4, 4) motion of the base; base_from_camera: (4, 4) pose (R, t) of the camera in the base.
    """
    rotation, lever = base_from_camera[:3, :3], base_from_camera[:3, 3]
    out = np.zeros((6, 6))
    out[:3, :3] = out[3:, 3:] = rotation
    out[:3, 3:] = skew(motion_base[:3, :3] @ lever) @ rotation
    return out


def to_base(relative: RelativeMotion, base_from_camera: Float64) -> RelativeMotion:
    """The motion of the base that goes with a motion of the camera fixed to it, lever arm included."""
    motion = base_from_camera @ relative.motion @ inverse(base_from_camera)
    jacobian = base_jacobian(motion, base_from_camera)
    return RelativeMotion(motion, symmetric_positive(jacobian @ relative.covariance @ jacobian.T))


def extend(
    start: PoseWithCovariance,
    relative: RelativeMotion,
    cross: Float64 | None = None,
    calibration: Float64 | None = None,
    *,
    measured: bool = False,
) -> PoseWithCovariance:
    """Append a motion: Sigma' = F Sigma F^T + G S G^T + F C G^T + G C^T F^T.

    F = [[I, -[R dp]x], [0, I]], G = blockdiag(R, R), R and dp: rotation of the start and translation of the motion.
    cross: (6, 6) covariance C of the start's error (odom axes) with the motion's error (axes of the start); None: 0.
    calibration: (6, C) sensitivity of the motion to the calibration's error; the pose's is X' = F X + G X_motion.
    measured: the motion comes from matches, so its error has what they
    have in common in it: H' = a (F H + G L), L = sqrt(r S).
    """
    rotation = start.pose[:3, :3]
    f = np.eye(6)
    f[:3, 3:] = -skew(rotation @ relative.motion[:3, 3])
    g = block_rotation(start.pose)
    covariance = f @ start.covariance @ f.T + g @ relative.covariance @ g.T
    if cross is not None:
        mixed = f @ cross @ g.T
        covariance = covariance + mixed + mixed.T
    pose = start.pose @ relative.motion
    pose[:3, :3] = nearest_rotation(pose[:3, :3])
    sensitivity = None if start.calibration is None else f @ start.calibration
    if calibration is not None:
        sensitivity = g @ calibration + (0.0 if sensitivity is None else sensitivity)
    correlated = None if start.correlated is None else f @ start.correlated
    if measured:
        common = g @ _correlated_part(relative.covariance)
        correlated = _CORRELATED_KEPT * (common if correlated is None else common + correlated)
    return PoseWithCovariance(pose, symmetric_positive(covariance), sensitivity, correlated)


def correlated_covariance(start: PoseWithCovariance, relative: RelativeMotion) -> Float64:
    """(6, 6) covariance of the start's error with the correlated part of that of a motion from there: H L^T."""
    if start.correlated is None:
        return np.zeros((6, 6))
    return np.asarray(start.correlated @ _correlated_part(relative.covariance).T)


def correlated_excess(start: PoseWithCovariance, relative: RelativeMotion, known: Float64 | None) -> Float64:
    """(6, 6) what the common part of successive motions' errors adds to a pose found by other means than `extend`.

    F E F^T + F C G^T + G C^T F^T with C = H L^T; known: (6, 6) E of the start, None: zero.
    """
    f, g = np.eye(6), block_rotation(start.pose)
    f[:3, 3:] = -skew(start.pose[:3, :3] @ relative.motion[:3, 3])
    mixed = f @ correlated_covariance(start, relative) @ g.T
    return np.asarray(mixed + mixed.T + (0.0 if known is None else f @ known @ f.T))


def _correlated_part(covariance: Float64) -> Float64:
    """L = sqrt(r S), symmetric: what the common part (six unknowns of unit variance) does to a motion."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray((vectors * np.sqrt(_CORRELATED_SHARE * np.maximum(values, 0.0))) @ vectors.T)


def block_rotation(pose: Float64) -> Float64:
    """G = blockdiag(R, R): from the axes of a frame to those of odom."""
    out = np.zeros((6, 6))
    out[:3, :3] = out[3:, 3:] = pose[:3, :3]
    return out


def between(earlier: RelativeMotion, later: RelativeMotion) -> RelativeMotion:
    """Motion from one frame to another when both are known from one reference.

    Both errors are taken as independent, which can only make the covariance too large.
    """
    motion = inverse(earlier.motion) @ later.motion
    back = earlier.motion[:3, :3].T
    # Error of the reference-to-earlier motion acts on the difference through its lever arm.
    lever = np.eye(6)
    lever[:3, 3:] = -skew(later.motion[:3, 3] - earlier.motion[:3, 3])
    total = later.covariance + lever @ earlier.covariance @ lever.T
    axes = np.zeros((6, 6))
    axes[:3, :3] = axes[3:, 3:] = back
    return RelativeMotion(motion, symmetric_positive(axes @ total @ axes.T))
