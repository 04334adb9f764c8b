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

"""Rendered clips for training `lite`, kept on disk: rendering is slow, everything after it is quick."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from tqdm import tqdm

from macvo_ros.rendering.sequence import RenderedSequence
from macvo_ros.rendering.worlds import WORLDS, build
from macvo_ros.training.lite_clips import FRAMES, FrameTruth, clip_arrays, save_clip

FIRST_SEED = 10_000
"""Seeds from here on are for training; tests and benches use smaller ones."""
_SPECIAL = {"near": 0.12, "landing": 0.12, "motorway": 0.06}
"""Shares of the worlds that the others lack something of: the near field, a standing drone, a fast car."""
_MIXTURE_SHARE = 0.75
"""Of the rest; what then remains is shared equally by the other named worlds."""
_SLOWEST, _FASTEST = 3.0, 30.0
"""Frames a second, log-uniform between them."""
_SLOWEST_ON_MOTORWAY = 8.0
"""At 3 Hz a car moves 10 m between frames, where hardly anything is seen twice."""
_CLIPS = 4
_GAP = 1.3
"""Seconds between the clips of a world: far enough apart to see something else."""


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
                save_clip(_file(folder, seed, clip), arrays)


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
    assert sequence.ground_truth is not None
    frames = [sequence[first + index] for index in range(FRAMES)]
    truths = [sequence.truth(first + index) for index in range(FRAMES - 1)]
    return clip_arrays(
        sequence.camera,
        sequence.ground_truth[first - 1 : first + FRAMES],
        [(frame.left, frame.right) for frame in frames],
        [FrameTruth(truth.disparity, truth.static_flow) for truth in truths],
        np.random.default_rng([seed, first]),
    )


def world_shares() -> dict[str, float]:
    """How often each world is drawn, by name; the shares add up to 1."""
    named = sorted(name for name in WORLDS if name != "mixture" and name not in _SPECIAL)
    rest = 1.0 - sum(_SPECIAL.values())
    return {
        **_SPECIAL,
        "mixture": rest * _MIXTURE_SHARE,
        **dict.fromkeys(named, rest * (1 - _MIXTURE_SHARE) / len(named)),
    }


def _world(seed: int, photographs: Sequence[Path]) -> tuple[RenderedSequence, int]:
    """Mostly the mixture, sometimes a named world; at a random rate, so that motions are small and large."""
    rng = np.random.default_rng([seed, 1])
    shares = world_shares()
    name = str(rng.choice(list(shares), p=list(shares.values())))
    world = build(name, seed, 1024 if rng.random() < 0.3 else 512, photographs)
    slowest = _SLOWEST_ON_MOTORWAY if name == "motorway" else _SLOWEST
    rate = float(np.exp(rng.uniform(np.log(slowest), np.log(_FASTEST))))
    start = int(rng.integers(1, int(2 * rate)))
    return RenderedSequence(world, start + int(_CLIPS * _GAP * rate) + FRAMES, seed, rate=rate, name=name), start


def _file(folder: Path, seed: int, clip: int) -> Path:
    return folder / f"{seed}_{clip}.npz"
