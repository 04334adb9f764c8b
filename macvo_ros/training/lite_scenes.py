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

"""Rendered clips with truth for training `lite`, kept on disk: rendering is slow, everything after it is quick.

A clip is three frames in a row. Truth is kept at one random pixel of each 4x4 block: as much as a network that works
at a quarter of the resolution can learn from, and a sixteenth of the disk.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import astuple
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt
from tqdm import tqdm

from macvo_ros.atomic_write import atomic_write
from macvo_ros.camera import StereoCamera
from macvo_ros.errors import SequenceError
from macvo_ros.frame import Image
from macvo_ros.rendering.sequence import RenderedSequence
from macvo_ros.rendering.worlds import WORLDS, build

Float32 = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.float64]

BLOCK = 4
FRAMES = 3
FIRST_SEED = 10_000
"""Seeds from here on are for training; tests and benches use smaller ones."""
_MIXTURE_SHARE = 0.75
_CLIPS = 4
_GAP = 1.3
"""Seconds between the clips of a world: far enough apart to see something else."""


class Clip:
    """Three grey stereo frames and their sampled truth, as arrays by name (see `render_clip`)."""

    def __init__(self, path: Path) -> None:
        try:
            with np.load(path) as arrays:
                self.arrays: dict[str, npt.NDArray[np.generic]] = {name: arrays[name] for name in arrays.files}
        except (OSError, ValueError) as error:
            raise SequenceError(f"{path} is not a rendered clip ({error}); remove it to have it made again") from None
        fx, fy, cx, cy, baseline, width, height = (float(x) for x in self.arrays["camera"][:7])
        self.camera = StereoCamera(fx, fy, cx, cy, baseline, int(width), int(height))

    def grey(self, frame: int) -> tuple[Image, Image]:
        """(H, W) left and right images."""
        left, right = self.arrays["grey"][frame]
        return np.ascontiguousarray(left, dtype=np.uint8), np.ascontiguousarray(right, dtype=np.uint8)

    def motion(self, frame: int) -> Float64:
        """(4, 4) pose of frame + 1 in frame; frame -1 is the motion before the clip."""
        poses = np.asarray(self.arrays["poses"], dtype=np.float64)
        return np.asarray(np.linalg.solve(poses[frame + 1], poses[frame + 2]))

    def pixel(self, frame: int) -> npt.NDArray[np.int64]:
        """(h, w, 2) the pixels (u, v) at which truth is known."""
        place = self.arrays["place"][frame].astype(np.int64)
        v, u = np.mgrid[: place.shape[0], : place.shape[1]] * BLOCK
        return np.stack((u + place % BLOCK, v + place // BLOCK), axis=-1)

    def truth(self, name: str, frame: int) -> Float32:
        """disparity (h, w), static_flow (2, h, w), or the masks moving, flow_valid, disparity_valid (h, w)."""
        return np.asarray(self.arrays[name][frame], dtype=np.float32)


def render_clips(
    folder: Path,
    worlds: int,
    photographs: Sequence[Path] = (),
    share: tuple[int, int] = (0, 1),
    *,
    report: bool = False,
) -> None:
    """Render the clips of so many worlds into `folder`, leaving out those that are there already.

    share: (i, n) only every n-th world, from the i-th on, for several processes; report: show progress.
    """
    folder.mkdir(parents=True, exist_ok=True)
    seeds = range(FIRST_SEED + share[0], FIRST_SEED + worlds, share[1])
    for seed in tqdm(seeds, desc="rendering", unit="world", disable=not report):
        missing = [clip for clip in range(_CLIPS) if not _file(folder, seed, clip).exists()]
        if missing:
            sequence, start = _world(seed, photographs)
            for clip in missing:
                arrays = render_clip(sequence, start + int(clip * _GAP * sequence.rate), seed)
                buffer = io.BytesIO()
                np.savez(buffer, **arrays)  # type: ignore[arg-type]
                atomic_write(_file(folder, seed, clip), buffer.getvalue())


def find_clips(folder: Path, worlds: int) -> Iterator[Path]:
    """The files of the clips of so many worlds, as far as they exist."""
    for seed in range(FIRST_SEED, FIRST_SEED + worlds):
        for clip in range(_CLIPS):
            if _file(folder, seed, clip).exists():
                yield _file(folder, seed, clip)


def is_held_out(clip: Path) -> bool:
    """Whether this clip is of one of the worlds, a twelfth, that are measured on and not trained on."""
    return int(clip.stem.partition("_")[0]) % 12 == 7


def render_clip(sequence: RenderedSequence, first: int, seed: int) -> dict[str, npt.NDArray[np.generic]]:
    """Frames first .. first + 2 (first >= 1) of a sequence."""
    camera = sequence.camera
    rng = np.random.default_rng([seed, first])
    rows, columns = camera.height // BLOCK, camera.width // BLOCK
    place = rng.integers(0, BLOCK * BLOCK, (FRAMES, rows, columns), dtype=np.uint8)
    v, u = np.mgrid[:rows, :columns] * BLOCK
    grey, truths = [], []
    for index in range(FRAMES):
        frame, truth = sequence[first + index], sequence.truth(first + index)
        at = (v + place[index] // BLOCK, u + place[index] % BLOCK)
        grey.append([cv2.cvtColor(image, cv2.COLOR_RGB2GRAY) for image in (frame.left, frame.right)])
        truths.append(
            {
                "disparity": truth.disparity[at],
                "static_flow": truth.static_flow[:, at[0], at[1]],
                "moving": truth.moving[at],
                "flow_valid": truth.flow_valid[at],
                "disparity_valid": truth.disparity_valid[at],
            }
        )
    assert sequence.ground_truth is not None
    return {
        "camera": np.array(astuple(camera)[:7], dtype=np.float64),
        "poses": sequence.ground_truth[first - 1 : first + FRAMES],
        "place": place,
        "grey": np.array(grey, dtype=np.uint8),
        **{name: np.stack([truth[name] for truth in truths]) for name in truths[0]},
    }


def _world(seed: int, photographs: Sequence[Path]) -> tuple[RenderedSequence, int]:
    """Mostly the mixture, sometimes a named world; at a random rate, so that motions are small and large."""
    rng = np.random.default_rng([seed, 1])
    named = sorted(name for name in WORLDS if name != "mixture")
    name = "mixture" if rng.random() < _MIXTURE_SHARE else str(rng.choice(named))
    world = build(name, seed, 1024 if rng.random() < 0.3 else 512, photographs)
    rate = float(np.exp(rng.uniform(np.log(7.0), np.log(30.0))))
    start = int(rng.integers(1, int(2 * rate)))
    return RenderedSequence(world, start + int(_CLIPS * _GAP * rate) + FRAMES, seed, rate=rate, name=name), start


def _file(folder: Path, seed: int, clip: int) -> Path:
    return folder / f"{seed}_{clip}.npz"
