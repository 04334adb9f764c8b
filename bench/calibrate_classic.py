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

"""Fit the variance model and the error correlation of the `classic` matcher on rendered scenes.

    python bench/calibrate_classic.py [--scenes N]

Prints the coefficients that stand in `macvo_ros/matching/classic.py`, and how well they hold. Only rendered scenes,
with seeds from 100 on; no sequence that results are reported on.
"""

from __future__ import annotations

import argparse

import numpy as np
import torch
from scipy.optimize import minimize
from tqdm import tqdm

from macvo_ros.geometry.interpolation import bilinear
from macvo_ros.geometry.se3 import inverse
from macvo_ros.matching.classic import FLOW_VARIANCE, STEREO_VARIANCE, ClassicMatcher
from macvo_ros.matching.match_variance import match_evidence
from macvo_ros.matching.matcher import Prediction
from macvo_ros.matching.patch_refinement import refine_matches
from macvo_ros.motion.keypoints import select_keypoints
from macvo_ros.rendering.sequence import RenderedSequence
from macvo_ros.rendering.worlds import WORLDS
from macvo_ros.settings.config import ClassicConfig, KeypointConfig

FIRST_SEED = 100
PIXELS_PER_PAIR = 3000
OUTLIER_SHARE, OUTLIER_RANGE = 0.03, 20.0
FAR = 120.0  # pixels


def fit(errors: np.ndarray, features: np.ndarray) -> tuple[np.ndarray, str]:
    """Coefficients (floor, one per feature) of var = floor^2 + sum c^2 feature, by maximum likelihood.

    errors: (M,) pixels; features: (M, F) pixels^2. A few percent of the errors are outliers that the solver's
    rejection is there for: they are a uniform part of the likelihood, so that they do not set the variance.
    """

    def variance(p: np.ndarray) -> np.ndarray:
        return np.exp(2 * p[0]) + features @ np.exp(2 * p[1:])

    def nll(p: np.ndarray) -> float:
        v = variance(p)
        density = (1 - OUTLIER_SHARE) * np.exp(-0.5 * errors**2 / v) / np.sqrt(2 * np.pi * v)
        return float(-np.log(density + OUTLIER_SHARE / OUTLIER_RANGE).mean())

    starts = [np.log(np.r_[0.03, np.full(features.shape[1], c)]) for c in (0.2, 1.0)]
    options = {"maxiter": 4000, "xatol": 1e-3, "fatol": 1e-7}
    best = min((minimize(nll, s, method="Nelder-Mead", options=options) for s in starts), key=lambda r: r.fun)
    v = variance(best.x)
    z = errors / np.sqrt(v)
    inside = np.abs(z) < 4
    related = np.corrcoef(np.log(v), np.log(errors**2 + 1e-6))[0, 1]
    quality = f"NLL {best.fun:.3f}, z std {z[inside].std():.2f}, outliers {1 - inside.mean():.3f}, corr {related:.2f}"
    return np.exp(best.x), quality


def correlation_curve(error: np.ndarray, sigma: np.ndarray, pixel: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Sums of products of clipped z-scores of pixel pairs by distance, and their counts: (2, len(edges) - 1)."""
    z = np.clip(error / sigma, -4, 4)
    z = z / max(z.std(), 1e-9)
    i, j = np.triu_indices(len(z), 1)
    distance = np.linalg.norm(pixel[i] - pixel[j], axis=1)
    bins = np.digitize(distance, edges) - 1
    good = (bins >= 0) & (bins < len(edges) - 1)
    sums = np.bincount(bins[good], (z[i] * z[j])[good], len(edges) - 1)
    return np.stack((sums, np.bincount(bins[good], minlength=len(edges) - 1)))


def main() -> None:
    """Collect errors and evidence, fit, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenes", type=int, default=3, help="scenes per world")
    parser.add_argument("--worlds", nargs="*", default=sorted(WORLDS))
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    dense: dict[str, list[np.ndarray]] = {"stereo": [], "flow": []}
    refined: dict[str, list[np.ndarray]] = {"stereo": [], "flow": []}
    edges = np.array([4, 10, 16, 24, 36, 52, 76, 110, 160, 240, 400.0])
    curves = {"stereo": np.zeros((2, len(edges) - 1)), "flow": np.zeros((2, len(edges) - 1))}
    jobs = [(w, FIRST_SEED + i, k) for w in args.worlds for i in range(args.scenes) for k in (1, 6)]
    for world, seed, k in tqdm(jobs, desc="scenes"):
        sequence = RenderedSequence(world, k + 2, seed)
        matcher = ClassicMatcher(ClassicConfig())
        first, second, truth = sequence[k], sequence[k + 1], sequence.truth(k)
        assert sequence.ground_truth is not None
        # The motion before, as the odometry would predict: about the true one, the search would err less than it does.
        motion = inverse(sequence.ground_truth[k - 1]) @ sequence.ground_truth[k]
        reference = matcher.match(None, first)
        match = matcher.match(first, second, Prediction(motion, reference.disparity))
        assert match.flow is not None
        assert match.flow_var is not None
        grey, grey_right = first.grey
        grey_next, _ = second.grey
        flow = match.flow.numpy().transpose(1, 2, 0)
        backward = matcher.match(second, first, Prediction(inverse(motion), match.disparity)).flow
        assert backward is not None
        disparity, stereo_evidence, _ = matcher.match_stereo(grey, grey_right, sequence.camera)
        to_right = -disparity[..., None]
        flow_evidence = match_evidence(grey, grey_next, flow, backward.numpy().transpose(1, 2, 0))
        static = truth.static_flow.transpose(1, 2, 0)
        for name, axes, found, right, evidence, target, coefficients in (
            ("stereo", 1, to_right, -truth.disparity[..., None], stereo_evidence, grey_right, STEREO_VARIANCE),
            ("flow", 2, flow, static, flow_evidence, grey_next, FLOW_VARIANCE),
        ):
            height, width = grey.shape
            v, u = rng.integers(16, height - 16, PIXELS_PER_PAIR), rng.integers(16, width - 16, PIXELS_PER_PAIR)
            seen = ~truth.moving[v, u]
            v, u = v[seen], u[seen]
            columns = (evidence.disagreement2, evidence.patch2, evidence.bend2)
            rows = [(found[..., :axes] - right)[v, u], *(c[v, u, :axes] for c in columns)]
            dense[name].append(np.stack(rows, axis=-1).reshape(-1, 4))
            # Refinement is for keypoints: the better half of the pixels.
            variance = evidence.variance(coefficients)[..., :axes]
            good = variance[v, u].sum(axis=-1) < np.median(variance[v, u].sum(axis=-1))
            pixel = np.column_stack((u, v))[good][:800].astype(np.float64)
            got = refine_matches(grey, target, np.ascontiguousarray(found[..., :axes]), pixel, axes)
            pv, pu = pixel[:, 1].astype(int), pixel[:, 0].astype(int)
            rows = [got.displacement - right[pv, pu], got.patch_var, variance[pv, pu]]
            refined[name].append(np.stack(rows, axis=-1)[got.ok].reshape(-1, 3))
        # Correlation over the image, at the keypoints that would be chosen.
        config = KeypointConfig(count=400)
        pixel = select_keypoints(
            reference.disparity, reference.disparity_var, match.flow, match.flow_var, sequence.camera, config
        ).astype(np.float64)
        points = matcher.refine(first, reference, second, match, pixel)
        pixel = points.pixel  # those that were found again
        true_d, true_u, true_v = bilinear([torch.from_numpy(m) for m in (truth.disparity, *truth.static_flow)], pixel)
        errors = np.column_stack((points.disparity - true_d, points.flow[:, 0] - true_u, points.flow[:, 1] - true_v))
        sigmas = np.sqrt(np.column_stack((points.disparity_var, points.flow_var)))
        for column, name in enumerate(("stereo", "flow", "flow")):
            curves[name] += correlation_curve(errors[:, column], sigmas[:, column], pixel, edges)

    for name in ("stereo", "flow"):
        for kind, table in (("dense", dense), ("refined", refined)):
            data = np.concatenate(table[name])
            data = data[np.isfinite(data).all(axis=1)]
            coefficients, quality = fit(data[:, 0], data[:, 1:])
            print(f"{kind:8s}{name:7s} {np.array2string(coefficients, precision=4)}  {quality}")
        curve = curves[name][0] / np.maximum(curves[name][1], 1)
        middle = np.sqrt(edges[1:] * edges[:-1])
        share, length = fit_exponential(middle, curve)
        print(f"correlation {name}: share {share:.3f}, length {length:.1f} px;  curve {np.round(curve, 3)}")


def fit_exponential(distance: np.ndarray, curve: np.ndarray) -> tuple[float, float]:
    """Share and length of the near part; what remains further off is the calibration's, modelled on its own."""
    near = distance < FAR

    def cost(p: np.ndarray) -> float:
        return float(((curve - np.exp(p[0]) * np.exp(-distance / np.exp(p[1])))[near] ** 2).sum())

    best = minimize(cost, np.log([0.3, 30.0]), method="Nelder-Mead")
    return float(np.exp(best.x[0])), float(np.exp(best.x[1]))


if __name__ == "__main__":
    main()
