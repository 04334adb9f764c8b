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

"""Fit what remains to be fitted of the `lite` matcher once its network is trained, on rendered scenes apart from it.

    python -m bench.calibrate_lite [--scenes N]

Prints the coefficients of the refined variances and the error correlations that stand in
`macvo_ros/matching/lite/matcher.py`, and how well the network's own sigmas hold. Seeds from 100 on: apart from those of
the training (10000 on) and from those that results are reported on (below 100).
"""

from __future__ import annotations

import argparse

import numpy as np
import torch
from tqdm import tqdm

from bench.calibrate_classic import FIRST_SEED, correlation_curve, fit, fit_exponential
from macvo_ros.geometry.interpolation import bilinear
from macvo_ros.geometry.se3 import inverse
from macvo_ros.matching.lite.features import SCALE
from macvo_ros.matching.lite.matcher import LiteFlow, LiteMatcher, LiteStereo
from macvo_ros.matching.lite.refinement import (
    REFINED_FLOW_VARIANCE,
    REFINED_STEREO_VARIANCE,
    refine_smooth,
    refined_variance,
)
from macvo_ros.matching.matcher import Prediction, look_up
from macvo_ros.motion.keypoints import select_keypoints
from macvo_ros.rendering.sequence import RenderedSequence
from macvo_ros.rendering.worlds import WORLDS
from macvo_ros.settings.config import KeypointConfig

EDGES = np.array([4, 10, 16, 24, 36, 52, 76, 110, 160, 240, 400.0])
MIN_LIKENESS = 0.4


class Errors:
    """What is collected of one kind of match, `stereo` or `flow`."""

    def __init__(self) -> None:
        self.refined: list[np.ndarray] = []  # error, patch variance, learned variance
        self.dense: list[np.ndarray] = []  # error, variance, of all pixels
        self.curve = np.zeros((2, len(EDGES) - 1))

    def report(self, name: str) -> None:
        """Print the fits."""
        refined, dense = np.concatenate(self.refined), np.concatenate(self.dense)
        coefficients, quality = fit(refined[:, 0], refined[:, 1:])
        print(f"refined {name}: floor, patch, dense = {np.array2string(coefficients, precision=3)}  {quality}")
        z = dense[:, 0] / np.sqrt(dense[:, 1])
        related = np.corrcoef(np.log(dense[:, 1]), np.log(dense[:, 0] ** 2 + 1e-6))[0, 1]
        print(f"dense   {name}: z std {z.std():.2f}, within 1 sigma {np.mean(np.abs(z) < 1):.2f}, corr {related:.2f}")
        curve = self.curve[0] / np.maximum(self.curve[1], 1)
        share, length = fit_exponential(np.sqrt(EDGES[1:] * EDGES[:-1]), curve)
        print(f"correlation {name}: share {share:.3f}, length {length:.1f} px;  curve {np.round(curve, 3)}")


def collect(sequence: RenderedSequence, index: int, stereo: Errors, flow: Errors) -> None:
    """Add the errors of one pair of frames."""
    matcher = LiteMatcher()
    first, second, truth = sequence[index], sequence[index + 1], sequence.truth(index)
    assert sequence.ground_truth is not None
    poses = sequence.ground_truth
    reference = matcher.match(None, first)
    match = matcher.match(first, second, Prediction(inverse(poses[index - 1]) @ poses[index], reference.disparity))
    disparity, temporal = reference.known_stereo, match.temporal
    assert isinstance(disparity, LiteStereo)
    assert isinstance(temporal, LiteFlow)
    every = (slice(None, None, 7),) * 2
    _dense(stereo, (reference.disparity.numpy() - truth.disparity)[every], reference.disparity_var.numpy()[every])
    for axis in range(2):
        error = temporal.flow[axis].numpy() - truth.static_flow[axis]
        _dense(flow, error[every], temporal.flow_var[axis].numpy()[every])

    config = KeypointConfig()
    assert disparity.keypoint_disparity_var is not None
    assert temporal.keypoint_flow_var is not None
    pixel = select_keypoints(
        disparity.disparity,
        disparity.keypoint_disparity_var,
        temporal.flow,
        temporal.keypoint_flow_var,
        first.camera,
        config,
    ).astype(np.float64)
    if len(pixel) == 0:
        return
    points = look_up(pixel, reference, match)
    left, right, following = *matcher.images(first), matcher.images(second)[0]
    to_next = refine_smooth(left, following, temporal.flow.numpy().transpose(1, 2, 0), pixel, axes=2)
    to_right = refine_smooth(left, right, -reference.disparity.numpy()[..., None], pixel, axes=1)
    d, u, v = bilinear([torch.from_numpy(m) for m in (truth.disparity, *truth.static_flow)], pixel)
    good = to_next.ok & to_right.ok & (np.minimum(to_next.likeness, to_right.likeness) > MIN_LIKENESS)
    good &= np.isfinite(d) & np.isfinite(u) & np.isfinite(v)
    grid = (pixel - (SCALE - 1) / 2) / SCALE

    error = -to_right.displacement[:, 0] - d
    learned = (disparity.refined_var,)
    _refined(stereo, error[good], to_right.patch_var[good, 0], bilinear(learned, grid)[0][good])
    variance = refined_variance(REFINED_STEREO_VARIANCE, learned, first, pixel, points.disparity_var[:, None], to_right)
    stereo.curve += correlation_curve(error[good], np.sqrt(variance[good, 0]), pixel[good], EDGES)
    learned = tuple(temporal.refined_var)
    variance = refined_variance(REFINED_FLOW_VARIANCE, learned, first, pixel, points.flow_var, to_next)
    for axis, true in enumerate((u, v)):
        error = to_next.displacement[:, axis] - true
        _refined(flow, error[good], to_next.patch_var[good, axis], bilinear(learned, grid)[axis][good])
        flow.curve += correlation_curve(error[good], np.sqrt(variance[good, axis]), pixel[good], EDGES)


def _dense(into: Errors, error: np.ndarray, variance: np.ndarray) -> None:
    known = np.isfinite(error)
    into.dense.append(np.column_stack((np.clip(error[known], -20, 20), variance[known])))


def _refined(into: Errors, error: np.ndarray, patch_var: np.ndarray, learned: np.ndarray) -> None:
    into.refined.append(np.column_stack((error, patch_var, learned)))


def main() -> None:
    """Collect, fit, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenes", type=int, default=3, help="scenes per world")
    parser.add_argument("--worlds", nargs="*", default=sorted(WORLDS))
    args = parser.parse_args()
    stereo, flow = Errors(), Errors()
    for world, seed in tqdm([(w, FIRST_SEED + i) for w in args.worlds for i in range(args.scenes)], desc="scenes"):
        sequence = RenderedSequence(world, 20, seed, texels=512)
        for index in (1, 8, 15):
            collect(sequence, index, stereo, flow)
    stereo.report("stereo")
    flow.report("flow")


if __name__ == "__main__":
    main()
