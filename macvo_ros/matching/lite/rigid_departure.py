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

"""How far a flow departs from the one rigid motion that explains most of it: what moves by itself, or is mismatched.

The motion is fitted to a coarse grid by iteratively reweighted Gauss-Newton on the flow, with the depth of the
reference frame. It is evidence for the network and nothing else: no pose is made of it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.geometry.se3 import exp_so3, inverse, transform
from macvo_ros.matching.native.library import kernels
from macvo_ros.matching.rigid_flow import rigid_flow

Float32 = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.float64]

_ITERATIONS = 5
_CONVERGED = 0.01
"""A step that moves no point farther than this is the last, pixels of the coarse image."""
_POINTS = 600
_SCALE_FLOOR = 0.15
"""Departures below this are not outliers, pixels of the coarse image."""
_RIDGE = 1e-6


def rigid_departure(camera: StereoCamera, disparity: Float32, flow: Float32, motion: Float64) -> Float32:
    """(h, w, 2) flow minus that of the fitted rigid motion.

    camera: of these (coarse) maps; disparity: (h, w), of the reference, pixels of the coarse image; flow: (h, w, 2)
    likewise; motion: (4, 4) where the fit starts, pose of the current camera in the reference one.
    """
    fitted = fit_motion(camera, disparity, flow, motion)
    return flow - rigid_flow(camera, disparity, fitted)


def fit_motion(camera: StereoCamera, disparity: Float32, flow: Float32, motion: Float64) -> Float64:
    """(4, 4) pose of the current camera in the reference one that explains most of the flow; see `rigid_departure`."""
    height, width = disparity.shape
    step = max(1, round((height * width / _POINTS) ** 0.5))
    v, u = (axis.ravel() for axis in np.mgrid[step // 2 : height : step, step // 2 : width : step])
    d = np.maximum(disparity[v, u] - camera.disparity_offset, 0.0).astype(np.float64)
    w = d / (camera.fx * camera.baseline)
    ray = np.stack(((u - camera.cx) / camera.fx, (v - camera.cy) / camera.fy, np.ones(len(u))))
    target = flow[v, u].astype(np.float64)
    measured = np.stack((ray[0] + target[:, 0] / camera.fx, ray[1] + target[:, 1] / camera.fy))
    current_from_reference = inverse(motion)
    native = kernels()
    if native is not None:
        fitted = np.ascontiguousarray(current_from_reference)
        native(
            "macvo_fit_motion",
            ray,
            measured,
            w,
            len(w),
            _ITERATIONS,
            camera.fx,
            _SCALE_FLOOR,
            _RIDGE,
            _CONVERGED,
            fitted,
        )
        return np.asarray(inverse(fitted))
    for _ in range(_ITERATIONS):
        point = current_from_reference[:3, :3] @ ray + current_from_reference[:3, 3:] * w  # times inverse depth
        z = np.maximum(point[2], 0.05)
        x, y, near = point[0] / z, point[1] / z, w / z
        residual = np.concatenate((measured[0] - x, measured[1] - y))
        length = camera.fx * np.hypot(residual[: len(x)], residual[len(x) :])
        scale = max(_SCALE_FLOOR, 1.5 * float(np.median(length)))
        weight = np.tile(1.0 / (1.0 + (length / scale) ** 2) ** 2, 2)
        zero, one = np.zeros_like(x), np.ones_like(x)
        jacobian = np.concatenate(
            (
                np.stack((near, zero, -near * x, -x * y, one + x * x, -y)),
                np.stack((zero, near, -near * y, -one - y * y, x * y, x)),
            ),
            axis=1,
        )
        weighted = jacobian * weight
        normal = weighted @ jacobian.T
        delta = np.linalg.solve(normal + _RIDGE * np.diag(np.diag(normal) + 1e-3), weighted @ residual)
        delta[3:] = np.clip(delta[3:], -0.2, 0.2)
        current_from_reference = transform(exp_so3(delta[3:]), delta[:3]) @ current_from_reference
        if camera.fx * np.abs(delta @ jacobian).max() < _CONVERGED:
            break
    return np.asarray(inverse(current_from_reference))
