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

"""From the bytes of a sensor_msgs image to a grey or RGB array: the same code for the live node and for bags.

Nothing here imports ROS: a message is its fields. Encodings that need no arithmetic (mono8, rgb8) come back as a view
of the message's own memory; the others cost exactly one pass, also from colour to grey.
"""

from __future__ import annotations

import zlib
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from macvo_ros.errors import ImageError

Image = npt.NDArray[np.uint8]

BYTES_PER_PIXEL = {"mono8": 1, "8UC1": 1, "mono16": 2, "rgb8": 3, "bgr8": 3, "rgba8": 4, "bgra8": 4}
"""What `decode_image` understands (8UC1 is what some infrared drivers call mono8)."""

MAX_PIXELS = 1 << 26
"""Pixels a compressed image may claim to have (8192 x 8192): a header of a few bytes must not ask for gigabytes.
Chosen."""

_TO_RGB = {"bgr8": cv2.COLOR_BGR2RGB, "rgba8": cv2.COLOR_RGBA2RGB, "bgra8": cv2.COLOR_BGRA2RGB}
_TO_GREY = {
    "rgb8": cv2.COLOR_RGB2GRAY,
    "bgr8": cv2.COLOR_BGR2GRAY,
    "rgba8": cv2.COLOR_RGBA2GRAY,
    "bgra8": cv2.COLOR_BGRA2GRAY,
}


def decode_image(
    data: Any, encoding: str, height: int, width: int, step: int, is_bigendian: bool | int = False
) -> Image:
    """Decode the fields of a `sensor_msgs/Image`.

    data: buffer of at least step * height bytes (bytes, array.array, uint8 array); step: bytes a row.
    Returns (H, W) grey or (H, W, 3) RGB, uint8. mono8 and rgb8 are views of `data` (read-only when it is).
    mono16 keeps the high byte (value >> 8) whatever the image shows, so that brightness means the same in each frame.
    """
    pixels = _pixels(data, encoding, height, width, step, is_bigendian)
    if encoding not in _TO_RGB:
        return pixels
    return np.asarray(cv2.cvtColor(pixels, _TO_RGB[encoding]), dtype=np.uint8)


def decode_grey(
    data: Any, encoding: str, height: int, width: int, step: int, is_bigendian: bool | int = False
) -> Image:
    """As `decode_image`, but always (H, W) grey: to the bit what cv2.COLOR_RGB2GRAY makes of its result.

    A third of the memory, and one pass for what takes two by way of RGB.
    """
    pixels = _pixels(data, encoding, height, width, step, is_bigendian)
    if encoding not in _TO_GREY:
        return pixels
    return np.asarray(cv2.cvtColor(pixels, _TO_GREY[encoding]), dtype=np.uint8)


def _pixels(data: Any, encoding: str, height: int, width: int, step: int, is_bigendian: bool | int) -> Image:
    """(H, W) grey or (H, W, C) in the order of the encoding: a view of `data`, but of mono16."""
    row = check_image(memoryview(data).nbytes, encoding, height, width, step)
    rows = np.frombuffer(data, np.uint8)[: step * height].reshape(height, step)[:, :row]
    if encoding in ("mono8", "8UC1"):
        return rows
    if encoding == "mono16":
        return np.ascontiguousarray(rows[:, (0 if is_bigendian else 1) :: 2])
    return rows.reshape(height, width, -1) if step == row else _padded_pixels(rows, width)


def check_image(size: int, encoding: str, height: int, width: int, step: int) -> int:
    """Check the fields of a `sensor_msgs/Image` with `size` bytes of data; returns the bytes of a row's pixels."""
    if encoding not in BYTES_PER_PIXEL:
        raise ImageError(
            f"image encoding {encoding!r} is not supported; expected one of {', '.join(BYTES_PER_PIXEL)}: "
            "set the camera driver to one of them"
        )
    if height < 1 or width < 1:
        raise ImageError(f"image is {width}x{height}: it has no pixels; check the camera driver")
    row = width * BYTES_PER_PIXEL[encoding]
    if step < row:
        raise ImageError(
            f"image step is {step} bytes but a row of {width} {encoding} pixels takes {row}; "
            "the message is malformed, check its publisher"
        )
    if size < step * height:
        raise ImageError(
            f"image data is truncated: {size} bytes, but {height} rows of {step} bytes make {step * height}; "
            "the message is malformed, check its publisher"
        )
    return row


def _padded_pixels(rows: Image, width: int) -> Image:
    """(H, W, C) view of rows whose end is padding; a plain reshape would copy."""
    channels = rows.shape[1] // width
    return np.lib.stride_tricks.as_strided(
        rows, (rows.shape[0], width, channels), (rows.strides[0], channels, 1), writeable=False
    )


def decode_compressed(data: Any, format: str) -> Image:
    """Decode the fields of a `sensor_msgs/CompressedImage`: JPEG or PNG, to (H, W) grey or (H, W, 3) RGB, uint8.

    format: as image_transport writes it ("jpeg", "bgra8; jpeg compressed bgr8"). A file whose colours were stored
    the wrong way round ("... compressed rgb8") is read the way image_transport's own subscriber reads it.
    A cut file is refused: decoders fill what is missing with grey, and odometry would track the fill.
    """
    lowered = format.lower()
    if "compresseddepth" in lowered or "rvl" in lowered:
        raise ImageError(f"compressed image format {format!r} is a depth image; expected a jpeg or png camera image")
    content = bytes(data)
    if content.startswith(b"\xff\xd8"):
        _check_jpeg(content)
    elif content.startswith(b"\x89PNG\r\n\x1a\n"):
        _check_png(content)
    else:
        raise ImageError(
            f"compressed image is neither JPEG nor PNG (format {format!r}, {len(content)} bytes, beginning with "
            f"{content[:4].hex(' ') or 'nothing'}); set image_transport to jpeg or png"
        )
    check_claimed_size(content)
    try:
        image = cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_UNCHANGED)
    except cv2.error as error:
        raise ImageError(f"compressed image cannot be decoded: {' '.join(str(error).split())}") from error
    if image is None or image.size == 0:
        raise ImageError(f"compressed image of {len(content)} bytes is corrupt: it has a header but no picture")
    if image.dtype == np.uint16:
        image = (image >> 8).astype(np.uint8)
    if image.dtype != np.uint8:
        raise ImageError(f"compressed image holds {image.dtype} pixels; expected 8 or 16 bits")
    if image.ndim == 3 and image.shape[2] in (3, 4):
        stored_swapped = "compressed rgb" in lowered
        if image.shape[2] == 4:
            code = cv2.COLOR_RGBA2RGB if stored_swapped else cv2.COLOR_BGRA2RGB
            image = cv2.cvtColor(image, code)
        elif not stored_swapped:
            image = cv2.cvtColor(image, cv2.COLOR_BGR2RGB)
    elif image.ndim == 3:
        image = image[:, :, 0]
    return np.asarray(image, dtype=np.uint8)


def check_claimed_size(content: bytes) -> None:
    """Refuse a JPEG or PNG that says it is larger than MAX_PIXELS, before a decoder allocates that."""
    height = width = 0
    if content.startswith(b"\x89PNG"):
        width, height = (int.from_bytes(content[at : at + 4], "big") for at in (16, 20))
    elif content.startswith(b"\xff\xd8"):
        at = 2
        while at + 9 <= len(content) and content[at] == 0xFF:
            marker = content[at + 1]
            if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):  # a frame header
                height, width = (int.from_bytes(content[start : start + 2], "big") for start in (at + 5, at + 7))
                break
            alone = marker == 0xFF or marker == 0x01 or 0xD0 <= marker <= 0xD7  # fill bytes and bare markers
            step = 1 if marker == 0xFF else 2
            at += step if alone else 2 + int.from_bytes(content[at + 2 : at + 4], "big")
    if width * height > MAX_PIXELS:
        raise ImageError(
            f"the image says it is {width}x{height}: more than {MAX_PIXELS} pixels are not read; is it damaged?"
        )


def _check_jpeg(content: bytes) -> None:
    """A whole JPEG ends with its end marker (cameras may pad with zeros)."""
    if not content.rstrip(b"\0").endswith(b"\xff\xd9"):
        raise ImageError(f"compressed image is a cut JPEG: {len(content)} bytes without an end marker; a lost packet?")


def _check_png(content: bytes) -> None:
    """Walk the chunks of a PNG: each carries its length and checksum, the last is IEND."""
    at = 8
    while at + 12 <= len(content):
        length = int.from_bytes(content[at : at + 4], "big")
        end = at + 8 + length
        if end + 4 > len(content):
            break
        if zlib.crc32(content[at + 4 : end]) != int.from_bytes(content[end : end + 4], "big"):
            raise ImageError("compressed image is a corrupt PNG: a checksum does not match; a damaged message or file?")
        if content[at + 4 : at + 8] == b"IEND":
            return
        at = end + 4
    raise ImageError(f"compressed image is a cut PNG: {len(content)} bytes without an end; a lost packet?")
