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

"""Leave out pairs of which an image is cut short or no image at all, before they end a run in its middle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from macvo_ros.errors import SequenceError
from macvo_ros.sequences.image_files import StereoImageFiles, read_image

_WHOLE = ((b"\x89PNG", b"IEND\xaeB`\x82"), (b"\xff\xd8", b"\xff\xd9"))
"""First and last bytes of a whole png and jpg file."""


def without_damaged(sequence: StereoImageFiles) -> StereoImageFiles:
    """The pairs whose images can be read; `skipped` says which were left out and why.

    Only the ends of the files are looked at, and the whole of those that look wrong: a cut copy is found, wrong bytes
    in the middle of one are not.
    """
    trouble = [_trouble(left) or _trouble(right) for left, right in zip(sequence.left, sequence.right, strict=True)]
    if not any(trouble):
        return sequence
    keep = [index for index, sentence in enumerate(trouble) if not sentence]
    damaged = tuple(sentence for sentence in trouble if sentence)
    if not keep:
        raise SequenceError(damaged[0])
    truth = sequence.ground_truth
    return replace(
        sequence,
        left=tuple(sequence.left[index] for index in keep),
        right=tuple(sequence.right[index] for index in keep),
        stamps=sequence.stamps[np.array(keep)],
        ground_truth=None if truth is None else truth[np.array(keep)],
        skipped=sequence.skipped + damaged,
    )


def first_readable(paths: Sequence[Path]) -> Path:
    """The first image that can be read, to learn the size from; SequenceError about the first where none can."""
    return next((path for path in paths if not _trouble(path)), paths[0])


def _trouble(path: Path) -> str:
    """Why an image cannot be read; empty where it can."""
    try:
        with path.open("rb") as file:
            first = file.read(4)
            file.seek(-min(8, file.seek(0, 2)), 2)
            last = file.read(8)
    except OSError:
        first = last = b""
    if any(first.startswith(begin) and last.endswith(end) for begin, end in _WHOLE):
        return ""
    try:
        read_image(path)
    except SequenceError as error:
        return str(error)
    return ""
