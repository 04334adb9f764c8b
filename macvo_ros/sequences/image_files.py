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

"""A stereo sequence kept as two lists of image files: what every reader in this folder returns."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt

from macvo_ros.errors import ImageError, SequenceError
from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.geometry.rectification import StereoRectifier
from macvo_ros.images.frame import StereoFrame
from macvo_ros.images.image_decoding import check_claimed_size

Float64 = npt.NDArray[np.float64]
Image = npt.NDArray[np.uint8]

IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg")
ASSUMED_PERIOD = 100_000_000
"""Nanoseconds between frames where a dataset has no times: 10 Hz."""


@dataclass(eq=False)
class StereoImageFiles:
    """Implements `Sequence`: images are read, and rectified where need be, when a frame is asked for.

    left, right: image files, one per frame. rectifier: None where the files are rectified already.
    stamps: (N,) int64 nanoseconds. ground_truth: (N, 4, 4) as `Sequence` says.
    skipped: a sentence for each pair of the folder that is left out because an image is missing or cut short.
    """

    name: str
    camera: StereoCamera
    stamps: npt.NDArray[np.int64]
    ground_truth: Float64 | None
    left: tuple[Path, ...]
    right: tuple[Path, ...]
    rectifier: StereoRectifier | None = None
    skipped: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        count = len(self.left)
        if count == 0:
            raise SequenceError(f"{self.name}: there are no frames; check the path and the frame range")
        truth = count if self.ground_truth is None else len(self.ground_truth)
        if not len(self.right) == len(self.stamps) == truth == count:
            raise SequenceError(
                f"{self.name}: {count} left images, {len(self.right)} right images, {len(self.stamps)} times and "
                f"{truth} ground truth poses; expected as many of each"
            )
        backwards = np.flatnonzero(np.diff(self.stamps) <= 0)
        if backwards.size:
            at = int(backwards[0])
            raise SequenceError(
                f"{self.name}: times must increase, but frame {at + 1} ({self.stamps[at + 1]} ns) does not come after "
                f"frame {at} ({self.stamps[at]} ns)"
            )

    def __len__(self) -> int:
        return len(self.left)

    def __getitem__(self, index: int) -> StereoFrame:
        left, right = (read_image(files[index]) for files in (self.left, self.right))
        if left.ndim != right.ndim:  # one eye grey and one in colour: grey is what they share
            left, right = (cv2.cvtColor(i, cv2.COLOR_RGB2GRAY) if i.ndim == 3 else i for i in (left, right))
        for path, image in ((self.left[index], left), (self.right[index], right)):
            # A rectified view has the size of the raw images, so one check serves both.
            _same_size(path, image, self.camera.width, self.camera.height)
        if self.rectifier is not None:
            left, right = self.rectifier.apply(left, right)
        return StereoFrame(left, right, int(self.stamps[index]), self.camera)

    def sliced(self, frames: tuple[int | None, int | None] | None, step: int = 1) -> StereoImageFiles:
        """Frames A to B (not included) as in a Python slice, every `step`-th of them."""
        if step < 1:
            raise SequenceError(f"step must be at least 1, got {step}")
        part = slice(*(frames or (None, None)), step)
        if not self.left[part]:
            asked = ":".join("" if end is None else str(end) for end in frames or (None, None))
            raise SequenceError(f"{self.name} has {len(self)} frames, none of them in {asked}; choose another range")
        return self._taking(part)

    def between(self, first: int, last: int) -> StereoImageFiles:
        """Frames first to last, both included."""
        return self._taking(slice(first, last + 1))

    def _taking(self, part: slice) -> StereoImageFiles:
        truth = None if self.ground_truth is None else self.ground_truth[part]
        return replace(self, left=self.left[part], right=self.right[part], stamps=self.stamps[part], ground_truth=truth)


def read_image(path: Path) -> Image:
    """(H, W) grey or (H, W, 3) RGB of a png or jpg file, uint8 (16-bit images lose their low byte)."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise SequenceError(f"{path}: cannot read the image ({error.strerror or error})") from None
    # Decoders fill what is missing with grey. A jpg ends after its last scan, neither marker occurs within one.
    png_cut = data.startswith(b"\x89PNG") and b"IEND" not in data
    if png_cut or (data.startswith(b"\xff\xd8") and data.rfind(b"\xff\xd9") < data.rfind(b"\xff\xda")):
        raise SequenceError(f"{path}: the image is cut short; copy it again")
    try:
        check_claimed_size(data)
        flags = cv2.IMREAD_ANYCOLOR | cv2.IMREAD_IGNORE_ORIENTATION
        image = cv2.imdecode(np.frombuffer(data, np.uint8), flags) if data else None
    except cv2.error:
        image = None
    except ImageError as error:
        raise SequenceError(f"{path}: {error}") from None
    if image is None or image.size == 0:
        raise SequenceError(f"{path}: not an image that can be read ({len(data)} bytes); copy it again")
    return np.asarray(cv2.cvtColor(image, cv2.COLOR_BGR2RGB) if image.ndim == 3 else image)


def check_size(path: Path, width: int, height: int) -> None:
    """Refuse an image that is not of the calibration's size, before anything is built for it."""
    _same_size(path, read_image(path), width, height)


def _same_size(path: Path, image: Image, width: int, height: int) -> None:
    if image.shape[:2] != (height, width):
        raise SequenceError(
            f"{path} is {image.shape[1]}x{image.shape[0]} but the calibration is for {width}x{height}; "
            "use the calibration of these images"
        )


def list_images(folder: Path) -> dict[tuple[int | str, ...], Path]:
    """The images of a folder by the numbers in their names (the name where it has none), in order of those."""
    try:
        files = [path for path in folder.iterdir() if path.suffix.lower() in IMAGE_SUFFIXES and path.name[0] != "."]
    except OSError as error:
        raise SequenceError(f"{folder}: cannot list the images ({error.strerror or error})") from None
    found: dict[tuple[int | str, ...], Path] = {}
    for path in files:
        key: tuple[int | str, ...] = tuple(int(n) for n in re.findall(r"[0-9]+", path.stem)) or (path.stem,)
        if key in found:
            raise SequenceError(f"{found[key]} and {path.name} have the same number; keep one of them")
        found[key] = path
    try:
        return dict(sorted(found.items()))
    except TypeError:
        raise SequenceError(f"{folder}: some image names hold numbers and some do not; number them all") from None


def assumed_stamps(frames: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Nanoseconds at 10 Hz of frames that are counted from 0, for datasets without times."""
    return frames * ASSUMED_PERIOD
