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

"""Which images of two folders belong together, which frame each pair is, and what is missing.

A sequence of which an image was lost is still a sequence: the pair is left out, and the odometry bridges the gap, as
long as the others keep their times and their truth.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from macvo_ros.errors import SequenceError
from macvo_ros.sequences.image_files import list_images

Int64 = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ImagePairs:
    """The images of two folders whose numbers agree, in order.

    left, right: N files each. total: how many frames have an image in one of the folders at least, and place: (N,)
    where the pairs stand among those. numbers: (total,) in their names, None where names hold none or several.
    alone: a sentence for each image without a partner.
    """

    left: tuple[Path, ...]
    right: tuple[Path, ...]
    place: Int64
    total: int
    numbers: Int64 | None
    alone: tuple[str, ...]

    @property
    def frame(self) -> Int64:
        """(N,) which frame each pair is where nothing else counts them: by the numbers, from 0 at the first image."""
        return self.place if self.numbers is None else (self.numbers - self.numbers[0])[self.place]

    def rows(self, count: int, file: Path, what: str) -> Int64:
        """(N,) which of the `count` lines of a file with one a frame belongs to each pair.

        As many lines as images: one after the other. More: the numbers of the images are those of the lines, from 0.
        what: of what the file has so many, for the error where neither holds.
        """
        if count == self.total:
            return self.place
        if self.numbers is not None and count > self.numbers[-1]:
            return self.numbers[self.place]
        raise SequenceError(f"{file} has {count} {what} for {self.total} images; complete or remove it")

    def missing(self, count: int) -> tuple[str, ...]:
        """A sentence for each of `count` frames (lines of a file) that has no pair of images."""
        if count == self.total or self.numbers is None:
            return self.alone
        folders = f"{self.left[0].parent} and {self.right[0].parent.name}"
        gone = np.setdiff1d(np.arange(count), self.numbers)
        return self.alone + tuple(f"{folders} have no image of frame {frame}; copy them again" for frame in gone)


def pair_images(left: Path, right: Path) -> ImagePairs:
    """Pair the images of two folders by the numbers in their names; SequenceError where there is no pair at all."""
    lefts, rights = list_images(left), list_images(right)
    if not lefts:
        raise SequenceError(f"{left}: expected png or jpg images, found none")
    try:
        keys = sorted(lefts.keys() | rights.keys())
    except TypeError:
        raise SequenceError(f"{left} and {right}: one has numbers in its names, the other not; number both") from None
    alone = tuple(
        f"{lefts.get(key) or rights[key]} has no partner in {right if key in lefts else left} ({len(lefts)} left and "
        f"{len(rights)} right images); complete or remove it"
        for key in keys
        if key not in lefts or key not in rights
    )
    if len(alone) == len(keys):
        raise SequenceError(alone[0])
    numbers = [key[0] for key in keys if len(key) == 1 and isinstance(key[0], int) and key[0] < 2**62]
    place = [index for index, key in enumerate(keys) if key in lefts and key in rights]
    return ImagePairs(
        left=tuple(lefts[keys[index]] for index in place),
        right=tuple(rights[keys[index]] for index in place),
        place=np.array(place, dtype=np.int64),
        total=len(keys),
        numbers=np.array(numbers, dtype=np.int64) if len(numbers) == len(keys) else None,
        alone=alone,
    )
