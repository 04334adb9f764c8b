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

"""Fields read from serialized images are those that rclpy reads; what is no image is refused."""

from __future__ import annotations

import array
import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("rclpy", reason="ROS 2 is not installed; run `make build`")

from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import CompressedImage, Image

from macvo_ros.errors import ImageError
from macvo_ros.ros.serialized_image import read_image

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
BYTES = st.binary(max_size=70)
NUMBER = st.integers(0, 2**32 - 1)


def with_header(message, sec, nanosec, frame, data):
    message.header.stamp.sec, message.header.stamp.nanosec, message.header.frame_id = sec, nanosec, frame
    message.data = array.array("B", data)
    return message


@st.composite
def images(draw):
    message = Image(height=draw(NUMBER), width=draw(NUMBER), step=draw(NUMBER), encoding=draw(TEXT))
    message.is_bigendian = draw(st.integers(0, 255))
    return with_header(message, draw(st.integers(-(2**31), 2**31 - 1)), draw(NUMBER), draw(TEXT), draw(BYTES))


@st.composite
def compressed_images(draw):
    return with_header(
        CompressedImage(format=draw(TEXT)), draw(st.integers(0, 9)), draw(NUMBER), draw(TEXT), draw(BYTES)
    )


@settings(deadline=None)
@given(st.one_of(images(), compressed_images()))
def test_fields_are_those_of_the_message(message):
    content = serialize_message(message)
    read = read_image(content, type(message))
    for name in set(message.get_fields_and_field_types()) - {"data"}:
        assert getattr(read, name) == getattr(message, name), name
    assert bytes(read.data) == bytes(message.data)
    assert read.data.obj is content  # no copy of the pixels


@settings(deadline=None)
@given(images(), st.data())
def test_a_cut_message_is_refused(message, data):
    content = serialize_message(message)
    padding = 3  # behind the last byte
    cut = data.draw(st.integers(0, len(content) - 1 - (padding if message.data else 0)))
    with pytest.raises(ImageError, match="no serialized Image"):
        read_image(content[:cut], Image)


@settings(deadline=None)
@given(st.binary(max_size=200), st.sampled_from([Image, CompressedImage]))
def test_any_bytes_are_read_or_refused(content, kind):
    with contextlib.suppress(ImageError):
        assert len(read_image(b"\0\1\0\0" + content, kind).data) <= len(content)


def test_the_other_byte_order():
    message = with_header(Image(height=2, width=3, step=3, encoding="mono8"), 5, 7, "cam", range(6))
    little = serialize_message(message)
    big = bytearray(little)
    big[1] = 0
    at, numbers = 4, []
    numbers += [at, at + 4, at + 8]  # seconds, nanoseconds, length of the frame's name
    at += 12 + 4  # "cam" and its zero
    numbers += [at, at + 4, at + 8]  # height, width, length of the encoding
    at += 12 + 6 + 1 + 1  # "mono8" and its zero, is_bigendian, padding
    numbers += [at, at + 4]  # step, length of the data
    for start in numbers:
        big[start : start + 4] = big[start : start + 4][::-1]
    read = read_image(bytes(big), Image)
    expected = deserialize_message(little, Image)
    for name in ("header", "height", "width", "encoding", "is_bigendian", "step"):
        assert getattr(read, name) == getattr(expected, name)
    assert bytes(read.data) == bytes(range(6))
