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

"""A stereo sequence inside a recorded bag: every frame, in order, however long the odometry takes."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from macvo_ros.bags.bag import Bag, Message
from macvo_ros.bags.pairing import nearest_gap, pair_stamps
from macvo_ros.bags.stereo_index import StereoIndex, read_stereo_index
from macvo_ros.bags.stereo_topics import COMPRESSED_IMAGE, StereoTopics, find_stereo_topics
from macvo_ros.errors import SequenceError
from macvo_ros.geometry.calibration import load_calibration
from macvo_ros.geometry.rectification import RawStereoCalibration
from macvo_ros.images.camera_info import StereoInput
from macvo_ros.images.frame import Image, StereoFrame
from macvo_ros.images.image_decoding import decode_compressed, decode_image
from macvo_ros.sequences.poses import poses_from_quaternions

Int64 = npt.NDArray[np.int64]

SCAN_AHEAD = 50
"""Frames that are skipped by reading on; a longer jump seeks."""


@dataclass(frozen=True)
class BagOptions:
    """How to read a bag; None finds out.

    tolerance: nanoseconds between the stamps of left and right that still make a pair, 0 for equal stamps.
    rectify: whether the images are raw and need rectification.
    """

    left: str | None = None
    right: str | None = None
    left_info: str | None = None
    right_info: str | None = None
    calibration: Path | None = None
    rectify: bool | None = None
    tolerance: int = 0


class BagSequence:
    """Implements `Sequence` over a bag. The first pass reads stamps only; images are decoded when asked for.

    topics: where the images are. input: the calibration in use. frame_id: of the left image.
    unpaired: stamps, nanoseconds, of images without a partner, sorted.
    notes: sentences about what was found, chosen or left out, for the user.
    """

    def __init__(self, path: str | Path, options: BagOptions | None = None) -> None:
        """Open the bag at `path`, find its stereo pair, pair the stamps and read the calibration."""
        self.path = Path(path)
        options = options or BagOptions()
        self.name = f"bag {self.path.name}"
        self.bag = Bag(self.path)
        try:
            known = self.bag.topics
            self.topics: StereoTopics = find_stereo_topics(
                known,
                left=options.left,
                right=options.right,
                left_info=options.left_info,
                right_info=options.right_info,
            )
            self._types = {name: known[name].type for name in known}
            index = read_stereo_index(self.bag, self.topics)
            self.frame_id = index.frame_id
            self.notes: list[str] = [*self.bag.damage, *index.notes()]
            self.input = self._calibrate(options, index)
            self._pair(index, options.tolerance)
            self.ground_truth = self._truth(index)
        except BaseException:
            self.bag.close()
            raise
        self.camera = self.input.camera
        self._stream: Iterator[Message] | None = None
        self._last = -1
        self._held: dict[tuple[str, int], Message] = {}

    def close(self) -> None:
        """Close the bag."""
        self.bag.close()

    def __enter__(self) -> BagSequence:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self.stamps)

    def __getitem__(self, index: int) -> StereoFrame:
        """Frame `index`; ImageError where its images cannot be decoded."""
        index = range(len(self))[index]
        left, right = (self._decode(message) for message in self._messages(index))
        return self.input.frame(left, right, int(self.stamps[index]))

    def sliced(self, frames: tuple[int | None, int | None] | None, step: int = 1) -> BagSequence:
        """Frames A to B (not included) as in a Python slice, every `step`-th of them; shares the open bag."""
        if step < 1:
            raise SequenceError(f"step must be at least 1, got {step}")
        part = slice(*(frames or (None, None)), step)
        if not self.stamps[part].size:
            asked = ":".join("" if end is None else str(end) for end in frames or (None, None))
            raise SequenceError(f"{self.name} has {len(self)} frames, none of them in {asked}; choose another range")
        taken = copy.copy(self)
        taken._take(self.stamps[part], self._right_stamps[part])
        taken.ground_truth = None if self.ground_truth is None else self.ground_truth[part]
        taken._stream, taken._last, taken._held = None, -1, {}
        return taken

    def _take(self, left: Int64, right: Int64) -> None:
        self.stamps, self._right_stamps = left, right
        self._frame_of = {(self.topics.left, int(stamp)): index for index, stamp in enumerate(left)}
        self._frame_of.update({(self.topics.right, int(stamp)): index for index, stamp in enumerate(right)})

    def _messages(self, index: int) -> tuple[Message, Message]:
        """The two messages of a frame. Asking for frames in order reads the bag once, front to back."""
        keys = (self.topics.left, int(self.stamps[index])), (self.topics.right, int(self._right_stamps[index]))
        if self._stream is None or not self._last < index <= self._last + SCAN_AHEAD:
            start = min(self._recorded[key] for key in keys) - 1  # some rosbags take "from" for "after"
            self._stream, self._held = self.bag.messages((self.topics.left, self.topics.right), start), {}
        self._last = index
        self._held = {key: message for key, message in self._held.items() if self._frame_of[key] >= index}
        while not all(key in self._held for key in keys):
            message = next(self._stream, None)
            if message is None:
                raise SequenceError(f"{self.path}: frame {index} is gone; did the file change while it was read?")
            key = (message.topic, self.bag.stamp(message.raw))
            if self._frame_of.get(key, -1) >= index:
                self._held.setdefault(key, message)
        return self._held[keys[0]], self._held[keys[1]]

    def _decode(self, message: Message) -> Image:
        fields = self.bag.deserialize(message.raw, self._types[message.topic])
        if self._types[message.topic] == COMPRESSED_IMAGE:
            return decode_compressed(fields.data, fields.format)
        return decode_image(fields.data, fields.encoding, fields.height, fields.width, fields.step, fields.is_bigendian)

    def _pair(self, index: StereoIndex, tolerance: int) -> None:
        """Decide which images make frames; those of another size than the calibration's do not."""
        stamps = []
        for name in (self.topics.left, self.topics.right):
            images = index.images[name]
            fitting = sorted(stamp for stamp, image in images.items() if image.size == self.input.image_size)
            if len(fitting) < len(images):
                size = next(image.size for image in images.values() if image.size != self.input.image_size)
                height, width = self.input.image_size
                reason = (
                    f"{len(images) - len(fitting)} images on {name} are {size[1]}x{size[0]} but the calibration is for "
                    f"{width}x{height}"
                )
                if not fitting:
                    raise SequenceError(f"{self.path}: {reason}; give the calibration of these images")
                self.notes.append(f"{reason}: left out")
            stamps.append(np.array(fitting, dtype=np.int64))
        left, right = stamps
        if not left.size or not right.size:
            why = f" ({index.refused.most_common(1)[0][0]})" if index.refused else ""
            raise SequenceError(
                f"{self.path}: {left.size} left and {right.size} right images can be used; expected some of each{why}"
            )
        first, second = pair_stamps(left, right, tolerance)
        if not first.size:
            gap = nearest_gap(left, right) / 1e6
            raise SequenceError(
                f"{self.path}: no stamps of {self.topics.left} and {self.topics.right} pair; the nearest are typically "
                f"{gap:.3f} ms apart: allow that by --approximate-sync {np.ceil(gap * 1.5):.0f}"
            )
        self._recorded = {
            (name, at): image.recorded for name, all_ in index.images.items() for at, image in all_.items()
        }
        self._take(left[first], right[second])
        alone = np.delete(left, first), np.delete(right, second)
        self.unpaired = np.sort(np.concatenate(alone))
        for side, lone in zip(("left", "right"), alone, strict=True):
            if lone.size:
                self.notes.append(f"{lone.size} {side} images have no partner and were left out")

    def _truth(self, index: StereoIndex) -> npt.NDArray[np.float64] | None:
        """(N, 4, 4) ground truth where the bag has it for each frame."""
        if not all(int(stamp) in index.truth for stamp in self.stamps):
            return None
        poses = [index.truth[int(stamp)].pose for stamp in self.stamps]
        positions = np.array([[p.position.x, p.position.y, p.position.z] for p in poses])
        turns = np.array([[p.orientation.x, p.orientation.y, p.orientation.z, p.orientation.w] for p in poses])
        return poses_from_quaternions(positions, turns)

    def _calibrate(self, options: BagOptions, index: StereoIndex) -> StereoInput:
        if options.calibration is not None:
            calibration = load_calibration(options.calibration)
            raw = isinstance(calibration, RawStereoCalibration)
            if options.rectify is not None and options.rectify != raw:
                kind = "raw" if raw else "rectified"
                raise SequenceError(
                    f"{options.calibration} describes {kind} images, but the contrary was asked for; drop --rectify or "
                    "--no-rectify, or give the other calibration"
                )
            return StereoInput.from_calibration(calibration)
        left, right = (index.infos.get(name or "") for name in (self.topics.left_info, self.topics.right_info))
        if left is None or right is None:
            missing = self.topics.left if left is None else self.topics.right
            raise SequenceError(
                f"{self.path} has no camera_info for {missing}; give the calibration by --calibration FILE "
                "(for EuRoC: config/euroc_calibration.yaml of this package)"
            )
        rectify = options.rectify if options.rectify is not None else not self.topics.rectified
        if options.rectify is None and rectify:
            self.notes.append(f"{self.topics.left} looks unrectified: rectifying by its camera_info")
        return StereoInput.from_camera_info(left, right, rectify=rectify)
