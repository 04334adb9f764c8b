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

"""The paper's own way to the pose: PyPose's Levenberg-Marquardt on the same residual (`solver: pypose`)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pypose as pp
import torch

from macvo_ros.motion.point_pairs import PointPairs

Float64 = npt.NDArray[np.float64]


class _Residual(torch.nn.Module):
    """p - T q for every point, (N, 3)."""

    def __init__(self, initial: Float64) -> None:
        super().__init__()
        self.pose = pp.Parameter(pp.mat2SE3(torch.from_numpy(initial)))

    def forward(self, reference: torch.Tensor, current: torch.Tensor) -> torch.Tensor:
        residual: torch.Tensor = reference - self.pose.Act(current)
        return residual


def solve_pose_pypose(
    pairs: PointPairs, initial: Float64, kernel: float = 0.0, steps: int = 10, metric_updates: int = 2
) -> Float64:
    """Minimise Eq. 4 with PyPose; the metric is renewed at the solution `metric_updates` times. Returns (4, 4).

    PyPose's kernels see the squared residual before weighting, so the residual is whitened instead of weighted:
    the kernel then sees the Mahalanobis residual, as ours does.
    """
    motion = initial
    for _ in range(metric_updates):
        sigma = pairs.reference_cov + motion[:3, :3] @ pairs.current_cov @ motion[:3, :3].T
        whitener = torch.from_numpy(np.linalg.inv(np.linalg.cholesky(sigma)))
        model = _Whitened(motion, whitener)
        kwargs = {"kernel": pp.optim.kernel.Huber(delta=kernel)} if kernel > 0 else {}
        optimizer = pp.optim.LM(model, strategy=pp.optim.strategy.TrustRegion(radius=1e4), min=1e-9, **kwargs)
        data = (torch.from_numpy(pairs.reference), torch.from_numpy(pairs.current))
        previous = float("inf")
        for _ in range(steps):
            loss = float(optimizer.step(input=data))
            if previous - loss <= 1e-10 * loss:
                break
            previous = loss
        motion = model.pose.matrix().detach().numpy().reshape(4, 4)
    return np.asarray(motion, dtype=np.float64)


class _Whitened(_Residual):
    """The residual times the inverse Cholesky factor of its covariance."""

    def __init__(self, initial: Float64, whitener: torch.Tensor) -> None:
        super().__init__(initial)
        self.whitener = whitener

    def forward(self, reference: torch.Tensor, current: torch.Tensor) -> torch.Tensor:
        return (self.whitener @ super().forward(reference, current)[..., None])[..., 0]
