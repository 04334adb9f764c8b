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

"""What evidence says of errors some of which may be none: against the densities and the sampling of Gaussians."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from macvo_ros.uncertainty.block_scatter import Evidence
from macvo_ros.uncertainty.calibration_filter import CalibrationFilter
from macvo_ros.uncertainty.calibration_posterior import EvidenceSoFar, Scale

SIZE, SEEN, BLOCK = 4, 60, 0.1
BIAS = np.array([0.3, 0.1, 0.2, 0.0])
SCALE = Scale(np.array([0.2, 1.0, -0.4, 0.1]), bound=1, bias=2.0)


def looked_at(seed: int = 1) -> np.ndarray:
    """(SEEN, SIZE) what each of some measurements with unit noise sees of the errors."""
    return np.random.default_rng(seed).normal(size=(SEEN, SIZE)) * (1.0, 0.4, 1.0, 0.3)


def so_far(seen: np.ndarray, measured: np.ndarray, scale: Scale | None) -> EvidenceSoFar:
    return EvidenceSoFar(seen.T @ seen, seen.T @ measured, BLOCK, 1.0, scale)


def covariances(seen: np.ndarray, there: np.ndarray, scale: Scale | None) -> tuple[np.ndarray, np.ndarray]:
    """Of the errors that are there, and of the bias of their evidence, written out."""
    prior = np.eye(SIZE) if scale is None else np.eye(SIZE) + np.outer(scale.by, scale.by)
    errors, biases = np.zeros((SIZE, SIZE)), np.zeros((SIZE, SIZE))
    errors[np.ix_(there, there)] = np.linalg.inv(prior[np.ix_(there, there)])
    also = there.copy()
    if scale is not None:
        also[scale.bound] = True
    at = np.ix_(also, also)
    block = np.zeros((SIZE, SIZE))
    block[at] = np.linalg.inv(prior[at] + BLOCK * (seen.T @ seen)[at])
    biases += np.sqrt(np.outer(BIAS, BIAS)) * block
    if scale is not None:
        biases[scale.bound, scale.bound] += scale.bias * scale.by[also] @ block[at] @ scale.by[also]
    return errors, biases


@pytest.mark.parametrize("scale", [None, SCALE])
@pytest.mark.parametrize("there", [(0, 1, 2, 3), (0, 2), (1,), ()])
def test_evidence_is_as_probable_as_its_density(scale: Scale | None, there: tuple[int, ...]) -> None:
    seen, present = looked_at(), np.isin(np.arange(SIZE), there)
    errors, biases = covariances(seen, present, scale)
    measured = np.random.default_rng(2).normal(size=SEEN) + seen @ (0.5, -1.0, 0.3, 0.0)
    density = multivariate_normal(cov=np.eye(SEEN) + seen @ (errors + biases) @ seen.T).logpdf(measured)
    noise = multivariate_normal(cov=np.eye(SEEN)).logpdf(measured)
    found = so_far(seen, measured, scale).posterior(BIAS, present)
    np.testing.assert_allclose(found.explains, density - noise, atol=1e-8)


@pytest.mark.parametrize("scale", [None, SCALE])
@pytest.mark.parametrize("there", [(0, 1, 2, 3), (0, 2)])
def test_errors_lie_where_the_posterior_says(scale: Scale | None, there: tuple[int, ...]) -> None:
    rng, seen, present = np.random.default_rng(3), looked_at(), np.isin(np.arange(SIZE), there)
    errors, biases = (np.linalg.cholesky(c + 1e-14 * np.eye(SIZE)) for c in covariances(seen, present, scale))
    squares = []
    for _ in range(3000):
        error = errors @ rng.normal(size=SIZE)
        measured = seen @ (error + biases @ rng.normal(size=SIZE)) + rng.normal(size=SEEN)
        found = so_far(seen, measured, scale).posterior(BIAS, present)
        off = (found.mean - error)[present]
        squares.append(off @ np.linalg.solve(found.covariance[np.ix_(present, present)], off))
    assert abs(np.mean(squares) - len(there)) < 0.05 * len(there)


def learned(truth: np.ndarray, seed: int, parts: tuple[tuple[int, ...], ...]) -> np.ndarray:
    """What is corrected after 30 s in which `truth` is seen with unit noise."""
    rng, filter_ = np.random.default_rng(seed), CalibrationFilter(np.ones(SIZE), parts=parts)
    for _ in range(300):
        seen = rng.normal(size=(3, SIZE))
        measured = seen @ truth + rng.normal(size=3)
        filter_.learn(Evidence(seen.T @ seen, seen.T @ measured, np.zeros(SIZE)), 0.1)
    return filter_.estimate.error


def test_what_is_not_off_is_not_corrected_and_what_is_off_is() -> None:
    parts = ((0,), (1,))
    for seed in range(5):
        by_all = np.abs(learned(np.zeros(SIZE), seed, ())).max()
        assert np.abs(learned(np.zeros(SIZE), seed, parts)).max() < 0.3 * by_all
        first = learned(np.array([0.5, 0.0, 0.0, 0.0]), seed, parts)
        assert abs(first[0] - 0.5) < 0.1
        assert np.abs(first[1:]).max() < 0.02
        # What no part explains: then nothing is as told.
        rest = learned(np.array([0.0, 0.0, 0.5, -0.5]), seed, parts)
        np.testing.assert_allclose(rest[2:], (0.5, -0.5), atol=0.1)
