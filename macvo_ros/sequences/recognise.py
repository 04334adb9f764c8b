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

"""Which layout a folder has, and opening it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from macvo_ros.errors import SequenceError
from macvo_ros.sequences.damaged_images import without_damaged
from macvo_ros.sequences.euroc import mav_folder, open_euroc
from macvo_ros.sequences.folder import open_folder
from macvo_ros.sequences.image_files import StereoImageFiles
from macvo_ros.sequences.kitti import open_kitti
from macvo_ros.sequences.sequence import Sequence
from macvo_ros.sequences.tartanair import open_tartanair, tartanair_layout

_log = logging.getLogger(__name__)

LAYOUTS = ("tartanair", "euroc", "kitti", "folder")
"""Names of the layouts `open_sequence` knows."""

_OPEN: dict[str, Callable[[Path], StereoImageFiles]] = {
    "tartanair": open_tartanair,
    "euroc": open_euroc,
    "kitti": open_kitti,
    "folder": open_folder,
}


def recognise(path: str | Path) -> str | None:
    """The layout of a sequence folder by the folders in it, None if it has none of them."""
    path = Path(path)
    if tartanair_layout(path) is not None:
        return "tartanair"
    if mav_folder(path) is not None:
        return "euroc"
    if any((path / name).is_dir() for name in ("sequences", "image_0", "image_2")):
        return "kitti"
    if (path / "left").is_dir() and (path / "right").is_dir():
        return "folder"
    return None


def open_sequence(
    path: str | Path,
    layout: str | None = None,
    sequence: str | None = None,
    frames: tuple[int | None, int | None] | None = None,
    step: int = 1,
    strict: bool = False,
) -> Sequence:
    """Open a stereo sequence on disk. Pairs with a missing or cut image are left out, with a warning.

    path: the sequence's folder; for KITTI also the folder that holds `sequences/`; or a bag with camera_info.
    layout: one of LAYOUTS; recognised when None.
    sequence: which one, where `path` holds several: a KITTI sequence ("00") or the name of a folder in `path`.
    frames: (A, B) as in a Python slice: from A up to but without B, counted from the end when negative.
    step: every Nth of those frames.
    strict: refuse a folder in which an image is missing or cut short.
    """
    path = Path(path)
    if layout is not None and layout not in LAYOUTS:
        raise SequenceError(f"layout {layout!r} is not known; expected one of {', '.join(LAYOUTS)}")
    if layout is None and recognise(path) is None and path.exists():
        from macvo_ros.bags.bag import is_bag

        if is_bag(path):
            from macvo_ros.sequences.bag import BagSequence

            bag = BagSequence(path)
            for note in bag.notes:
                _log.warning("%s: %s", bag.name, note)
            return bag.sliced(frames, step)
    if not path.is_dir():
        raise SequenceError(f"{path} is not a folder; give the folder of a sequence")
    if sequence is not None:
        inside = path / "sequences" if (path / "sequences").is_dir() else path
        if sequence and (inside / sequence).is_dir():
            path = inside / sequence
        elif path.resolve().name != sequence:  # the sequence's own folder may be named twice
            raise SequenceError(f"{path} has no sequence {sequence!r}; found {_folders(inside)}")
    layout = layout or recognise(path)
    if layout is None:
        raise SequenceError(
            f"{path} is none of the known layouts: tartanair (image_left/ or image_lcam_front/), euroc (mav0/), kitti "
            f"(sequences/ or image_0/), folder (left/ right/ calib.yaml); found {_folders(path)}"
        )
    try:
        found = without_damaged(_OPEN[layout](path).sliced(frames, step))
    except OSError as error:
        raise SequenceError(f"{path}: cannot be read ({error})") from None
    if found.skipped and strict:
        raise SequenceError(found.skipped[0])
    if found.skipped:
        count = len(found.skipped)
        pairs = "1 pair" if count == 1 else f"{count} pairs"
        _log.warning("%s: left out: %s, %d remain; the first: %s", found.name, pairs, len(found), found.skipped[0])
    return found


def _folders(path: Path) -> str:
    """Names of the folders in `path`, for an error."""
    if not path.is_dir():
        return "nothing"
    names = sorted(entry.name for entry in path.iterdir() if entry.is_dir())
    return ", ".join(names[:12]) + (", ..." if len(names) > 12 else "") or "no folders"
