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

"""A part of a sequence: some of its frames, read when asked for."""

from __future__ import annotations

import numpy as np

from macvo_ros.errors import SequenceError
from macvo_ros.images.frame import StereoFrame
from macvo_ros.sequences.sequence import Sequence


class PartOfSequence:
    """Frames A up to, not including, B of a sequence, every Nth of them; is a `Sequence` itself."""

    def __init__(self, whole: Sequence, frames: tuple[int | None, int | None] | None = None, step: int = 1) -> None:
        first, last = frames or (None, None)
        self._indices = np.arange(len(whole))[first:last:step]
        if not len(self._indices):
            raise SequenceError(
                f"{whole.name} has {len(whole)} frames: none are left of {first}:{last}; widen --frames"
            )
        self._whole = whole
        self.name = whole.name
        self.camera = whole.camera
        self.stamps = whole.stamps[self._indices]
        self.ground_truth = None if whole.ground_truth is None else whole.ground_truth[self._indices]

    def __len__(self) -> int:
        return len(self._indices)

    def __getitem__(self, index: int) -> StereoFrame:
        return self._whole[int(self._indices[index])]
