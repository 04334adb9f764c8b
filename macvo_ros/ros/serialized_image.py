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

"""Images as the middleware delivers them: fields are read from the serialized bytes, pixels stay where they are.

Under overload most pairs are dropped. What is spent on those is missing in the tracking of the others, and rclpy
copies the pixels of an image twice to deserialize it. Here only the few fields before the pixels are read (CDR, as the
DDS-XTypes standard lays it out); the worker decodes the pixels of the one pair that it takes.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

from rclpy.serialization import deserialize_message
from sensor_msgs.msg import CompressedImage, Image
from std_msgs.msg import Header

from macvo_ros.errors import ImageError

_BYTE_ORDERS = {0x0000: ">", 0x0001: "<", 0x0006: ">", 0x0007: "<"}
"""Representation identifiers of plain CDR 1 and 2: they differ in members of eight bytes, and images have none."""


@dataclass(frozen=True, eq=False)
class SerializedImage:
    """The fields of a sensor_msgs/Image; data: a view of the serialized message."""

    header: Header
    height: int
    width: int
    encoding: str
    is_bigendian: int
    step: int
    data: memoryview


@dataclass(frozen=True, eq=False)
class SerializedCompressedImage:
    """The fields of a sensor_msgs/CompressedImage; data: a view of the serialized message."""

    header: Header
    format: str
    data: memoryview


class _Fields:
    """Reads one field after the other; struct.error or IndexError where the message ends before it should."""

    def __init__(self, content: bytes) -> None:
        self._body = memoryview(content)[4:]  # alignment counts from after the identifier
        self._order = _BYTE_ORDERS[int.from_bytes(content[:2], "big")]
        self._at = 0

    def number(self, code: str = "I") -> int:
        size = struct.calcsize(code)
        self._at += -self._at % size
        (value,) = struct.unpack_from(self._order + code, self._body, self._at)
        self._at += size
        return int(value)

    def sequence(self) -> memoryview:
        length = self.number()
        values = self._body[self._at : self._at + length]
        if len(values) < length:
            raise IndexError(length)
        self._at += length
        return values

    def text(self) -> str:
        return bytes(self.sequence()).removesuffix(b"\0").decode(errors="replace")

    def header(self) -> Header:
        header = Header()
        header.stamp.sec, header.stamp.nanosec = self.number("i"), self.number()
        header.frame_id = self.text()
        return header


def read_image(content: bytes, kind: Any) -> Any:
    """The fields of a serialized message of `kind`, sensor_msgs Image or CompressedImage; ImageError for another."""
    try:
        if int.from_bytes(content[:2], "big") not in _BYTE_ORDERS:
            return deserialize_message(content, kind)
        fields = _Fields(content)
        if kind is CompressedImage:
            return SerializedCompressedImage(fields.header(), fields.text(), fields.sequence())
        assert kind is Image
        header, height, width = fields.header(), fields.number(), fields.number()
        encoding, is_bigendian, step = fields.text(), fields.number("B"), fields.number()
        return SerializedImage(header, height, width, encoding, is_bigendian, step, fields.sequence())
    except Exception as error:  # struct's, or the middleware's own
        raise ImageError(
            f"message of {len(content)} bytes is no serialized {kind.__name__}; check its publisher and the middleware"
        ) from error
