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
from macvo_ros.uncertainty.calibration_posterior import EvidenceSoFar, Scale, Supposed

SIZE, SEEN, BLOCK = 4, 60, 0.1
BIAS = np.array([0.3, 0.1, 0.2, 0.0])
SCALE, SCALE_BIAS = Scale(np.array([0.2, 1.0, -0.4, 0.1]), bound=1), 2.0


def looked_at(seed: int = 1) -> np.ndarray:
    """(SEEN, SIZE) what each of some measurements with unit noise sees of the errors."""
    return np.random.default_rng(seed).normal(size=(SEEN, SIZE)) * (1.0, 0.4, 1.0, 0.3)


def so_far(seen: np.ndarray, measured: np.ndarray, scale: Scale | None) -> EvidenceSoFar:
    return EvidenceSoFar(seen.T @ seen, seen.T @ measured, BLOCK, 1.0, scale)


def covariances(seen: np.ndarray, size: np.ndarray, scale: Scale | None) -> tuple[np.ndarray, np.ndarray]:
    """Of errors of (C,) `size`, and of the bias of their evidence, written out."""
    there = size > 0
    prior = np.diag(np.where(there, size, 1.0) ** -2.0)
    if scale is not None:
        prior += np.outer(scale.by, scale.by)
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
        biases[scale.bound, scale.bound] += SCALE_BIAS * scale.by[also] @ block[at] @ scale.by[also]
    return errors, biases


@pytest.mark.parametrize("scale", [None, SCALE])
@pytest.mark.parametrize("sizes", [(1.0, 1.0, 1.0, 1.0), (1.0, 0.0, 1.0, 0.0), (0.0, 0.3, 0.0, 0.0), (0.0,) * 4])
def test_evidence_is_as_probable_as_its_density(scale: Scale | None, sizes: tuple[float, ...]) -> None:
    seen, size = looked_at(), np.array(sizes)
    errors, biases = covariances(seen, size, scale)
    measured = np.random.default_rng(2).normal(size=SEEN) + seen @ (0.5, -1.0, 0.3, 0.0)
    density = multivariate_normal(cov=np.eye(SEEN) + seen @ (errors + biases) @ seen.T).logpdf(measured)
    noise = multivariate_normal(cov=np.eye(SEEN)).logpdf(measured)
    found = so_far(seen, measured, scale).posterior(BIAS, Supposed(size, SCALE_BIAS))
    np.testing.assert_allclose(found.explains, density - noise, atol=1e-8)


@pytest.mark.parametrize("scale", [None, SCALE])
@pytest.mark.parametrize("sizes", [(1.0, 1.0, 1.0, 1.0), (1.0, 0.0, 0.2, 0.0)])
def test_errors_lie_where_the_posterior_says(scale: Scale | None, sizes: tuple[float, ...]) -> None:
    rng, seen, size = np.random.default_rng(3), looked_at(), np.array(sizes)
    errors, biases = (np.linalg.cholesky(c + 1e-14 * np.eye(SIZE)) for c in covariances(seen, size, scale))
    squares, there = [], size > 0
    for _ in range(3000):
        error = errors @ rng.normal(size=SIZE)
        measured = seen @ (error + biases @ rng.normal(size=SIZE)) + rng.normal(size=SEEN)
        found = so_far(seen, measured, scale).posterior(BIAS, Supposed(size, SCALE_BIAS))
        off = (found.mean - error)[there]
        squares.append(off @ np.linalg.solve(found.covariance[np.ix_(there, there)], off))
    assert abs(np.mean(squares) - there.sum()) < 0.05 * there.sum()


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


@pytest.mark.parametrize("size", [0.02, 0.3, 1.0])
def test_fields_are_feared_by_the_size_that_evidence_shows(size: float) -> None:
    """One error seen only with forty fields of unknown size: its sigma follows theirs, and it lies within."""
    fields, squares, sigmas = 40, [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        truth = np.concatenate((rng.normal(size=1), rng.normal(0.0, size, fields)))
        filter_ = CalibrationFilter(np.ones(1 + fields), parts=((0,),), fields=tuple(range(1, 1 + fields)), few=0.0)
        mixed = rng.normal(size=(fields, 1 + fields))  # forty measurements of forty-one numbers, all nearly exact
        measured = mixed @ truth + rng.normal(0.0, 1e-3, fields)
        told = Evidence(1e6 * mixed.T @ mixed, 1e6 * mixed.T @ measured, np.zeros(1 + fields))
        for _ in range(100):
            filter_.learn(told.times(0.01), 0.1)
        estimate = filter_.estimate
        squares.append(((estimate.error - truth)[0] / estimate.sigma[0]) ** 2)
        sigmas.append(estimate.sigma[0])
    assert 0.05 * size < np.median(sigmas) < 2.0 * size
    assert np.mean(squares) < 3.0


def test_a_scale_is_believed_where_fields_are_small() -> None:
    """What biases the scale that evidence claims is what fields cannot follow; where these are large it is doubted."""
    fields, believed = 20, {}
    for size in (0.0, 1.0):
        shares = []
        for seed in range(20):
            rng = np.random.default_rng(seed)
            truth = np.concatenate(([1.0], rng.normal(0.0, size, fields)))
            index = tuple(range(1, 1 + fields))
            filter_ = CalibrationFilter(np.ones(1 + fields), parts=((0,),), fields=index, scaling=0, few=0.0)
            for _ in range(300):
                seen = rng.normal(size=(3, 1 + fields)) * 0.4
                measured = seen @ truth + rng.normal(size=3)
                filter_.learn(Evidence(seen.T @ seen, seen.T @ measured, np.eye(1 + fields)[0]), 0.1)
            shares.append(filter_.estimate.error[0])
        believed[size] = float(np.mean(shares))
    assert 0.85 < believed[0.0] < 1.0
    assert believed[1.0] < 0.7
