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

"""Residuals of neighbours that are more alike than promised are noticed, those that are as promised are not."""

from __future__ import annotations

import numpy as np
import pytest

from macvo_ros.uncertainty.error_correlation import ErrorCorrelation, regional_chi2

SIZE = (640, 480)
KERNEL = ErrorCorrelation(share=0.8, length=30.0)


def excess(smooth: float, count: int = 200, frames: int = 60) -> float:
    """Mean over frames of promised residuals of which the third component is off by a tilt of so many sigmas."""
    rng = np.random.default_rng(5)
    found = []
    for _ in range(frames):
        pixel = rng.uniform((0, 0), SIZE, (count, 2))
        kernel = KERNEL.kernel(pixel, pixel).astype(np.float64)
        np.fill_diagonal(kernel, 1.0)
        residual = np.linalg.cholesky(kernel) @ rng.normal(size=(count, 3))
        residual[:, 2] += smooth * (pixel[:, 0] / SIZE[0] - 0.5) * rng.choice((-1, 1))
        found.append(regional_chi2(residual, pixel, SIZE, KERNEL))
    return float(np.mean(found))


def test_residuals_as_promised_are_no_pattern():
    # The worst of three components, each one on average, and a seventh more for the six unknowns that it expects.
    assert 1.0 < excess(0.0) < 1.9


def test_an_error_that_reaches_across_the_image_is_seen_though_each_residual_is_small():
    assert excess(2.0) > 3.0


@pytest.mark.parametrize("count", [0, 1, 8])
def test_a_few_points_show_no_pattern(count):
    assert excess(0.0, count, frames=3) == 1.0
