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

"""One synchronized stereo pair as it arrived, and its decoding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np

from macvo_ros.errors import ImageError
from macvo_ros.images.camera_info import CameraInfo
from macvo_ros.images.frame import Image
from macvo_ros.images.image_decoding import BYTES_PER_PIXEL, decode_compressed, decode_grey, decode_image
from macvo_ros.odometry.message_fields import join_stamp
from macvo_ros.ros.optional_packages import CvBridge


@dataclass(frozen=True, eq=False)
class StereoMessages:
    """A pair of sensor_msgs/Image or CompressedImage with the calibration known when it arrived.

    arrived: when the second image of the pair came, `time.monotonic` seconds.
    """

    left: Any
    right: Any
    left_info: CameraInfo | None
    right_info: CameraInfo | None
    arrived: float

    @property
    def stamp(self) -> int:
        """Stamp of the left image, nanoseconds: that of the estimate."""
        return stamp_of(self.left)

    @property
    def frame_id(self) -> str:
        """Frame of the left camera, as the image's header names it."""
        return str(self.left.header.frame_id).removeprefix("/")

    def decode(self) -> tuple[Image, Image]:
        """Left and right, (H, W) grey or (H, W, 3) RGB uint8; ImageError says which one is unusable and why."""
        return self._each(decode)

    def decode_grey(self) -> tuple[Image, Image]:
        """Left and right, (H, W) grey uint8, without the way through colour; errors as of `decode`."""
        return self._each(decode_to_grey)

    def _each(self, decode_one: Callable[[Any], Image]) -> tuple[Image, Image]:
        images = []
        for side, message in (("left", self.left), ("right", self.right)):
            try:
                images.append(decode_one(message))
            except ImageError as error:
                raise ImageError(f"{side} {error}") from error
        return images[0], images[1]


def stamp_of(message: Any) -> int:
    """Stamp of a message with a header, nanoseconds."""
    return join_stamp(message.header.stamp.sec, message.header.stamp.nanosec)


def decode(message: Any) -> Image:
    """One sensor_msgs/Image or CompressedImage to (H, W) grey or (H, W, 3) RGB, uint8."""
    if not _is_plain(message):
        return _decode_with_a_library(message)
    return decode_image(
        message.data, message.encoding, message.height, message.width, message.step, message.is_bigendian
    )


def decode_to_grey(message: Any) -> Image:
    """The same to (H, W) grey, uint8."""
    if not _is_plain(message):
        image = _decode_with_a_library(message)
        return image if image.ndim == 2 else np.asarray(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), dtype=np.uint8)
    return decode_grey(
        message.data, message.encoding, message.height, message.width, message.step, message.is_bigendian
    )


def _is_plain(message: Any) -> bool:
    """Whether it holds bare pixels in an encoding of ours (or one that nobody here knows: decoding says so)."""
    return not hasattr(message, "format") and (message.encoding in BYTES_PER_PIXEL or CvBridge is None)


def _decode_with_a_library(message: Any) -> Image:
    if hasattr(message, "format"):
        return decode_compressed(message.data, message.format)
    return _decode_with_cv_bridge(message)


def _decode_with_cv_bridge(message: Any) -> Image:
    try:
        return np.ascontiguousarray(CvBridge().imgmsg_to_cv2(message, "rgb8"), dtype=np.uint8)
    except Exception as error:  # cv_bridge raises its own, numpy's and OpenCV's errors
        raise ImageError(
            f"image encoding {message.encoding!r} is not one of {', '.join(BYTES_PER_PIXEL)} and cv_bridge cannot make "
            f"it rgb8 ({' '.join(str(error).split())[:120]}); set the camera driver to one of them"
        ) from error
