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

"""Clips of TartanAir for training `lite`: disparity and the flow of the static scene from its depth and poses.

The dataset's own flow files are not needed. Where something moves, they hold its real flow, which is not what odometry
wants; where nothing does, they are the same (see `macvo_ros/sequences/tartanair.py`).
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
from tqdm import tqdm

from macvo_ros.errors import SequenceError
from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.sequences.image_files import StereoImageFiles
from macvo_ros.sequences.tartanair import open_tartanair
from macvo_ros.sequences.tartanair_truth import TartanAirTruth
from macvo_ros.training.lite_clips import FRAMES, FrameTruth, clip_arrays, save_clip
from macvo_ros.training.pair_sources import find_trajectories

Float32 = npt.NDArray[np.float32]

_GAP = 12
"""Frames between clips: far enough apart to see something else."""
_NEAREST = 0.05
"""Metres in front of the moved camera from which on a point has a flow."""


def tartanair_clips(
    folder: Path, names: Iterable[str], share: tuple[int, int] = (0, 1), *, report: bool = False
) -> list[Path]:
    """Cut clips of all trajectories at or below the folders `names` into `folder`, but those that are there already.

    Returns the files of all of them. share: (i, n) cut only every n-th trajectory; report: show progress.
    """
    folder.mkdir(parents=True, exist_ok=True)
    trajectories = [path for name in names for path in find_trajectories(Path(name))]
    files = []
    for number, path in enumerate(tqdm(trajectories, desc="cutting", unit="trajectory", disable=not report)):
        images, truth = open_tartanair(path), TartanAirTruth(path)
        found = {_file(folder, path, first): first for first in _starts(path, images, truth)}
        files += list(found)
        for file, first in found.items():
            if number % share[1] == share[0] and not file.exists():
                save_clip(file, tartanair_clip(images, truth, first))
    return files


def tartanair_clip(images: StereoImageFiles, truth: TartanAirTruth, first: int) -> dict[str, npt.NDArray[np.generic]]:
    """Images first .. first + 2 (first >= 1) of a trajectory."""
    assert images.ground_truth is not None
    poses = images.ground_truth[first - 1 : first + FRAMES]
    frames = [images[first + index] for index in range(FRAMES)]
    truths = []
    for index in range(FRAMES - 1):
        depth = truth.depth(_number(images, first + index))
        motion = np.linalg.solve(poses[index + 1], poses[index + 2])
        disparity = images.camera.disparity(depth).astype(np.float32)
        truths.append(FrameTruth(disparity, static_flow(images.camera, depth, motion)))
    pairs = [(frame.left, frame.right) for frame in frames]
    return clip_arrays(images.camera, poses, pairs, truths, np.random.default_rng(first))


def static_flow(camera: StereoCamera, depth: Float32, motion: npt.NDArray[np.float64]) -> Float32:
    """(2, H, W) flow, pixels, of still points at `depth` (H, W), metres, nan for those the camera goes past.

    motion: (4, 4) pose of the moved camera in this one. X = z ray goes to z R^T (ray - t / z), also at infinity.
    """
    v, u = np.mgrid[: camera.height, : camera.width].astype(np.float64)
    rays = np.stack(((u - camera.cx) / camera.fx, (v - camera.cy) / camera.fy, np.ones_like(u)), axis=-1)
    moved = (rays - motion[:3, 3] / np.maximum(depth, _NEAREST)[..., None]) @ motion[:3, :3]
    z = np.where(moved[..., 2] * depth > _NEAREST, moved[..., 2], np.nan)
    flow = np.stack((camera.fx * moved[..., 0] / z + camera.cx - u, camera.fy * moved[..., 1] / z + camera.cy - v))
    return flow.astype(np.float32)


def _starts(path: Path, images: StereoImageFiles, truth: TartanAirTruth) -> Iterator[int]:
    """Indices of the first images of clips."""
    if images.ground_truth is None:
        raise SequenceError(f"{path} has no file of poses; training lite needs poses and depth")
    starts = range(1, len(images) - FRAMES + 1, _GAP)
    known = [
        first for first in starts if all(_number(images, first + i) in truth.depth_frames for i in range(FRAMES - 1))
    ]
    if not known:
        raise SequenceError(
            f"{path}: no four frames in a row with depth; training lite needs the trajectory's depth folder"
        )
    yield from known


def _number(images: StereoImageFiles, index: int) -> int:
    return int(images.left[index].stem.split("_")[0])


def _file(folder: Path, trajectory: Path, first: int) -> Path:
    """Readable, and different for trajectories of the same name in different places."""
    place = trajectory.resolve()
    name = "-".join(place.parts[-3:])
    return folder / f"tartanair-{name}-{zlib.crc32(str(place).encode()):08x}_{first}.npz"
