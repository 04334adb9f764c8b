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

"""Errors measured in what the covariance promised."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Float64 = npt.NDArray[np.float64]


def sigmas(covariance: Float64) -> Float64:
    """(M, 6) standard deviations of (M, 6, 6) covariances."""
    return np.sqrt(np.maximum(np.diagonal(covariance, axis1=1, axis2=2), 0.0))


def nees(error: Float64, covariance: Float64) -> Float64:
    """(M,) normalised estimation error squared e^T S^-1 e of (M, 6) errors; inf where S is singular, NaN where S is."""
    result = np.full(len(error), np.nan)
    known = np.isfinite(covariance).all(axis=(1, 2))
    sigma = np.maximum(
        sigmas(covariance[known]), 1e-100
    )  # metres and radians differ by decades: whiten the units first
    correlation = covariance[known] / (sigma[:, :, None] * sigma[:, None, :])
    values, vectors = np.linalg.eigh(0.5 * (correlation + np.swapaxes(correlation, 1, 2)))
    projected = np.einsum("nij,ni->nj", vectors, error[known] / sigma)
    singular = values[:, 0] <= 1e-12
    values[singular] = 1.0
    result[known] = np.where(singular, np.inf, (projected**2 / values).sum(axis=1))
    return result


def within(error: Float64, sigma: Float64, factor: float) -> float:
    """Share of the components of (M, 6) errors whose size is at most `factor` standard deviations."""
    known = np.isfinite(sigma)
    if not known.any():
        return float("nan")
    return float(np.mean(np.abs(error[known]) <= factor * sigma[known]))
