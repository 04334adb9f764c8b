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

"""Where training pairs come from: TartanAir folders and our renderer."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from macvo_ros.errors import SequenceError
from macvo_ros.rendering.sequence import RenderedSequence
from macvo_ros.sequences.image_files import read_image
from macvo_ros.sequences.tartanair import LAYOUTS, open_tartanair
from macvo_ros.sequences.tartanair_truth import TartanAirTruth
from macvo_ros.training.flow_pairs import FlowPair, FlowPairs, Joined, make_pair, stereo_truth

TEMPORAL, STEREO, BOTH = "temporal", "stereo", "both"


class TartanAirPairs:
    """One TartanAir trajectory, version 1 or 2: temporal pairs with flow files, stereo pairs with depth files."""

    def __init__(self, folder: str | Path, kind: str = TEMPORAL) -> None:
        images = open_tartanair(folder)
        self._truth = TartanAirTruth(folder)
        self._left, self._right = images.left, images.right
        numbers = [int(path.stem.split("_")[0]) for path in images.left]
        flows, depths = self._truth.flow_frames, self._truth.depth_frames
        self._pairs: list[tuple[int, int | None]] = []  # index of the first image, and of the second or None: stereo
        if kind in (TEMPORAL, BOTH):
            following = {number: index for index, number in enumerate(numbers)}
            self._pairs += [(i, following[n + 1]) for i, n in enumerate(numbers) if n in flows and n + 1 in following]
        if kind in (STEREO, BOTH):
            self._pairs += [(i, None) for i, n in enumerate(numbers) if n in depths]
        self._numbers = numbers
        if not self._pairs:
            raise SequenceError(f"{folder} has no {kind} pairs with truth; training needs its flow and depth folders")

    def __len__(self) -> int:
        return len(self._pairs)

    def __getitem__(self, index: int) -> FlowPair:
        first, second = self._pairs[index]
        image = read_image(self._left[first])
        if second is None:
            flow, valid = stereo_truth(self._truth.disparity(self._numbers[first]))
            return make_pair(image, read_image(self._right[first]), flow, valid)
        flow, valid = self._truth.flow(self._numbers[first])
        return make_pair(image, read_image(self._left[second]), np.ascontiguousarray(flow.transpose(2, 0, 1)), valid)


class RenderedPairs:
    """Pairs of a rendered sequence, with exact truth."""

    def __init__(self, sequence: RenderedSequence, kind: str = TEMPORAL) -> None:
        self._sequence = sequence
        count = len(sequence)
        self._pairs = [(i, False) for i in range(count - 1)] if kind in (TEMPORAL, BOTH) else []
        self._pairs += [(i, True) for i in range(count)] if kind in (STEREO, BOTH) else []

    def __len__(self) -> int:
        return len(self._pairs)

    def __getitem__(self, index: int) -> FlowPair:
        frame, stereo = self._pairs[index]
        truth, images = self._sequence.truth(frame), self._sequence[frame]
        if stereo:
            flow = np.stack([-truth.disparity, np.zeros_like(truth.disparity)])
            return make_pair(images.left, images.right, flow, truth.disparity_valid)
        return make_pair(images.left, self._sequence[frame + 1].left, truth.flow, truth.flow_valid)


def open_pairs(names: list[str], kind: str = TEMPORAL) -> FlowPairs:
    """Pairs of folders (a TartanAir trajectory, or a folder with some below it) and of `render:WORLD:SEED:FRAMES`."""
    sets: list[FlowPairs] = []
    for name in names:
        if name.startswith("render:"):
            sets.append(RenderedPairs(_rendered(name), kind))
        else:
            sets += [TartanAirPairs(folder, kind) for folder in find_trajectories(Path(name))]
    return Joined(sets)


def _rendered(name: str) -> RenderedSequence:
    parts = name.split(":")
    if len(parts) != 4 or not parts[2].isdecimal() or not parts[3].isdecimal():
        raise SequenceError(f"expected render:WORLD:SEED:FRAMES, for example render:room:1:200, got {name!r}")
    return RenderedSequence(parts[1], frames=int(parts[3]), seed=int(parts[2]))


def find_trajectories(folder: Path) -> list[Path]:
    """TartanAir trajectories: the folder itself or folders below it."""
    found = sorted({path.parent for layout in LAYOUTS for path in folder.rglob(layout.left) if path.is_dir()})
    if not found:
        raise SequenceError(f"{folder}: no TartanAir trajectory there (image_left/ or image_lcam_front/) or below")
    return found
