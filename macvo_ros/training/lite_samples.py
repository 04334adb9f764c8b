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

"""Samples to train `lite` on: evidence about the matches of clips, and how wrong they really were.

The matches are those of the matcher itself, so the network learns the errors that it will have to answer for.
"""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from tqdm import tqdm

from macvo_ros.atomic_write import atomic_write
from macvo_ros.geometry.se3 import exp_so3, transform
from macvo_ros.matching.flow_search import FlowSearch
from macvo_ros.matching.lite.features import ImageFeatures, stereo_features, temporal_features, to_grid
from macvo_ros.matching.lite.matcher import full_disparity, full_flow, make_search, search_stereo, seed_flow
from macvo_ros.matching.lite.refinement import refine_smooth
from macvo_ros.matching.rigid_flow import rigid_flow
from macvo_ros.training.flow_pairs import FlowPair
from macvo_ros.training.lite_clips import Clip

Float32 = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.float64]

_REFINED_POINTS = 600
_BORDER = 12
_LARGEST_FLOW = 600.0
_PREDICTED = 4.0
"""Pixels by which the motion before may mispredict the flow before features are asked instead."""


class LiteSamples:
    """Implements `FlowPairs`, on the network's grid: `first` is the evidence (C, h, w), `flow` the error of the dense
    match (2, h, w), `second` that of the refined one, nan where it is not known; `valid` where the truth is known."""

    def __init__(self, clips: list[Path], cache: Path) -> None:
        """clips: files of clips; cache: folder where what is derived from them is kept."""
        make_evidence(clips, cache)
        self._samples: list[npt.NDArray[np.float16]] = []
        for path in clips:
            self._samples += list(np.load(_file(cache, path)))

    def __len__(self) -> int:
        return len(self._samples)

    def __getitem__(self, index: int) -> FlowPair:
        sample = torch.from_numpy(np.asarray(self._samples[index], dtype=np.float32))
        evidence, dense, refined = sample[:-4], sample[-4:-2], sample[-2:]
        valid = torch.isfinite(dense).all(0)
        return FlowPair(evidence, refined, torch.where(valid, dense, 0), valid)


def make_evidence(clips: list[Path], cache: Path, share: tuple[int, int] = (0, 1), *, report: bool = False) -> None:
    """Match the clips and write the samples of each into `cache`, leaving out those that are there already.

    share: (i, n) only every n-th clip, from the i-th on, for several processes; report: show progress.
    """
    cache.mkdir(parents=True, exist_ok=True)
    missing = [path for path in clips[share[0] :: share[1]] if not _file(cache, path).exists()]
    for path in tqdm(missing, desc="matching", unit="clip", disable=not report):
        buffer = io.BytesIO()
        np.save(buffer, clip_samples(Clip(path), seed=sum(path.stem.encode())))
        atomic_write(_file(cache, path), buffer.getvalue())


def clip_samples(clip: Clip, seed: int) -> npt.NDArray[np.float16]:
    """(S, C + 4, h, w) two stereo and two temporal matches: evidence, error before and after refinement."""
    rng = np.random.default_rng(seed)
    search = FlowSearch(make_search)
    images = [clip.grey(frame) for frame in range(3)]
    size = images[0][0].shape
    lefts, rights = ([ImageFeatures(pair[side]) for pair in images] for side in range(2))
    samples = []
    for frame in range(2):
        left, right, following = lefts[frame], rights[frame], lefts[frame + 1]
        found = search_stereo(left, right, clip.camera, min_depth=0.0)
        evidence = stereo_features(left, right, found, clip.camera)
        disparity = full_disparity(found, *size)
        # Stereo matches keep their rows: the second axis says the same as the first.
        to_right, truth = np.stack((-disparity, -disparity)), -clip.truth("disparity", frame)
        errors = match_errors(clip, frame, left, right, to_right, np.stack((truth, truth)), 1, rng)
        samples.append(np.concatenate((evidence, *errors)))

        measured = to_grid(disparity)
        motion = predicted_motion(clip, frame, rng)
        half = search.flow(left.small, following.small, seed_flow(clip.camera, measured, motion))
        evidence = temporal_features(left, following, half, measured, clip.camera, motion)
        flow = full_flow(half, *size)
        errors = match_errors(clip, frame, left, following, flow, clip.truth("static_flow", frame), 2, rng)
        samples.append(np.concatenate((evidence, *errors)))
    return np.stack(samples).astype(np.float16)


def predicted_motion(clip: Clip, frame: int, rng: np.random.Generator) -> Float64:
    """Where the odometry would begin: at the motion before or one from features (`motion_seed.py`), rarely at none."""
    kind = rng.random()
    if kind > 0.95:
        return np.eye(4)
    truth, before = clip.motion(frame), clip.motion(frame - 1)
    disturbance = transform(exp_so3(rng.normal(0, 0.004, 3)), rng.normal(0, 0.03, 3))
    disparity = clip.truth("disparity", frame)
    if kind < 0.7 and np.isfinite(disparity).any():
        camera = clip.camera.resized(disparity.shape[1], disparity.shape[0])
        typical = np.full(disparity.shape, np.nanmedian(disparity), np.float32) * np.float32(camera.fx / clip.camera.fx)
        missed = rigid_flow(camera, typical, truth) - rigid_flow(camera, typical, before)
        if np.median(np.linalg.norm(missed, axis=-1)) * clip.camera.fx / camera.fx < _PREDICTED:
            return before
    return np.asarray(truth @ disturbance)


def match_errors(
    clip: Clip,
    frame: int,
    source: ImageFeatures,
    target: ImageFeatures,
    flow: Float32,
    truth: Float32,
    axes: int,
    rng: np.random.Generator,
) -> tuple[Float32, Float32]:
    """(2, h, w) errors of the dense and the refined match, pixels; nan where there is no truth or no refinement.

    flow: (2, H, W) of the image, truth: (2, h, w) at the clip's pixels; axes: 1 for stereo.
    """
    pixel = clip.pixel(frame)
    u, v = pixel[..., 0], pixel[..., 1]
    found = flow[:, v, u]
    known = np.isfinite(truth).all(axis=0) & ((truth**2).sum(axis=0) < _LARGEST_FLOW**2)
    dense = np.where(known, found - truth, np.float32(np.nan))
    refined = np.full_like(dense, np.nan)
    height, width = flow.shape[1:]
    landing_u, landing_v = u + found[0], v + (found[1] if axes == 2 else 0)
    inside = known
    for x, size in ((u, width), (v, height), (landing_u, width), (landing_v, height)):
        inside = inside & (x >= _BORDER) & (x <= size - 1 - _BORDER)
    rows, columns = np.nonzero(inside)
    if len(rows):
        some = rng.choice(len(rows), min(_REFINED_POINTS, len(rows)), replace=False)
        at = (rows[some], columns[some])
        result = refine_smooth(source, target, flow[:axes].transpose(1, 2, 0), pixel[at].astype(np.float64), axes)
        found = np.where(result.ok[:, None], result.displacement, np.nan)
        refined[:axes, at[0], at[1]] = found.T - truth[:axes, at[0], at[1]]
    return dense, refined


def _file(cache: Path, clip: Path) -> Path:
    return cache / clip.with_suffix(".npy").name
