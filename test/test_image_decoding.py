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

"""Image messages to arrays: right colours, no needless copies, and a sentence for each malformed one."""

from __future__ import annotations

import array

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from macvo_ros.errors import ImageError
from macvo_ros.images.image_decoding import BYTES_PER_PIXEL, decode_compressed, decode_grey, decode_image

RGB = np.random.default_rng(0).integers(0, 256, (6, 5, 3), dtype=np.uint8)
GREY = RGB[:, :, 0]


def stored(encoding: str) -> np.ndarray:
    """RGB (or GREY) as a driver would lay it out, (H, W * bytes)."""
    alpha = np.full((6, 5, 1), 7, np.uint8)
    layouts = {
        "mono8": GREY,
        "8UC1": GREY,
        "rgb8": RGB,
        "bgr8": RGB[:, :, ::-1],
        "rgba8": np.concatenate([RGB, alpha], axis=2),
        "bgra8": np.concatenate([RGB[:, :, ::-1], alpha], axis=2),
        "mono16": (GREY.astype("<u2") * 256 + 13).view(np.uint8),
    }
    return np.ascontiguousarray(layouts[encoding]).reshape(6, -1)


@pytest.mark.parametrize("padding", [0, 3])
@pytest.mark.parametrize("encoding", BYTES_PER_PIXEL)
def test_every_encoding_gives_the_same_picture(encoding, padding):
    rows = np.pad(stored(encoding), ((0, 0), (0, padding)), constant_values=255)
    expected = GREY if encoding in ("mono8", "8UC1", "mono16") else RGB
    for data in (rows.tobytes(), array.array("B", rows.tobytes()), rows.reshape(-1)):
        image = decode_image(data, encoding, 6, 5, rows.shape[1])
        assert image.dtype == np.uint8
        np.testing.assert_array_equal(image, expected)


@pytest.mark.parametrize("padding", [0, 3])
@pytest.mark.parametrize("encoding", BYTES_PER_PIXEL)
def test_grey_at_once_is_the_grey_of_the_picture(encoding, padding):
    """To the bit: the node decodes to grey, bags are read in colour, and both must give the same poses."""
    rng = np.random.default_rng(1)
    rows = rng.integers(0, 256, (40, 30 * BYTES_PER_PIXEL[encoding] + padding), dtype=np.uint8)
    fields = (rows.tobytes(), encoding, 40, 30, rows.shape[1])
    picture = decode_image(*fields)
    grey = picture if picture.ndim == 2 else cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY)
    np.testing.assert_array_equal(decode_grey(*fields), grey)


def test_big_endian_mono16():
    data = (GREY.astype(np.uint16) * 256 + 13).astype(">u2").tobytes()
    np.testing.assert_array_equal(decode_image(data, "mono16", 6, 5, 10, is_bigendian=1), GREY)


@pytest.mark.parametrize("padding", [0, 3])
@pytest.mark.parametrize("encoding", ["mono8", "rgb8"])
def test_what_needs_no_arithmetic_is_not_copied(encoding, padding):
    rows = np.ascontiguousarray(np.pad(stored(encoding), ((0, 0), (0, padding))))
    assert np.shares_memory(decode_image(rows.reshape(-1), encoding, 6, 5, rows.shape[1]), rows)
    if encoding == "mono8":
        assert np.shares_memory(decode_grey(rows.reshape(-1), encoding, 6, 5, rows.shape[1]), rows)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"encoding": "yuv422"}, "'yuv422' is not supported"),
        ({"encoding": "32FC1"}, "'32FC1' is not supported"),
        ({"height": 0, "width": 0, "step": 0}, "0x0"),
        ({"step": 14}, "takes 15"),
        ({"data": b"\0" * 89}, "truncated: 89 bytes"),
        ({"data": b""}, "truncated: 0 bytes"),
        ({"data": array.array("B")}, "truncated: 0 bytes"),
        ({"data": np.empty(0, np.uint8)}, "truncated: 0 bytes"),
    ],
)
def test_malformed_images_are_refused_by_a_sentence(change, words):
    fields = {"data": b"\0" * 90, "encoding": "rgb8", "height": 6, "width": 5, "step": 15, **change}
    with pytest.raises(ImageError, match=words):
        decode_image(**fields)


@given(
    st.binary(max_size=300),
    st.sampled_from([*BYTES_PER_PIXEL, "", "bayer_rggb8"]),
    st.integers(-2, 12),
    st.integers(-2, 12),
    st.integers(-2, 60),
)
def test_any_fields_give_a_picture_or_an_image_error(data, encoding, height, width, step):
    try:
        image = decode_image(data, encoding, height, width, step)
    except ImageError:
        return
    assert image.shape[:2] == (height, width)


def smooth() -> np.ndarray:
    """A BGR picture JPEG hardly changes, with red, green and blue all different."""
    ramp = np.linspace(0, 255, 64)
    return np.stack([np.tile(ramp, (48, 1)), np.full((48, 64), 40.0), np.full((48, 64), 200.0)], axis=2).astype(
        np.uint8
    )


def encoded(suffix: str, image: np.ndarray) -> bytes:
    return bytes(cv2.imencode(suffix, image)[1])


@pytest.mark.parametrize("suffix", [".jpg", ".png"])
@pytest.mark.parametrize("format_", ["jpeg", "bgra8; jpeg compressed bgr8", "rgb8; png compressed bgr8"])
def test_compressed_colours_come_out_as_rgb(suffix, format_):
    image = decode_compressed(encoded(suffix, smooth()), format_).astype(int)
    assert np.abs(image - smooth()[:, :, ::-1].astype(int)).max() <= 8


def test_compressed_by_old_publishers_in_rgb_order():
    image = decode_compressed(encoded(".png", smooth()), "rgb8; png compressed rgb8")
    np.testing.assert_array_equal(image, smooth())


def test_compressed_grey_alpha_and_16_bit():
    grey = smooth()[:, :, 0]
    np.testing.assert_array_equal(decode_compressed(encoded(".png", grey), "mono8; png compressed "), grey)
    deep = grey.astype(np.uint16) * 256 + 99
    np.testing.assert_array_equal(decode_compressed(encoded(".png", deep), "16UC1; png compressed "), grey)
    with_alpha = np.dstack([smooth(), np.full((48, 64), 9, np.uint8)])
    np.testing.assert_array_equal(decode_compressed(encoded(".png", with_alpha), "png"), smooth()[:, :, ::-1])


def test_padded_jpeg_is_whole():
    assert decode_compressed(encoded(".jpg", smooth()) + b"\0" * 16, "jpeg").shape == (48, 64, 3)


@pytest.mark.parametrize("suffix", [".jpg", ".png"])
def test_a_cut_file_is_refused_wherever_it_is_cut(suffix):
    content = encoded(suffix, smooth())
    for length in range(0, len(content), 7):
        with pytest.raises(ImageError):
            decode_compressed(content[:length], "jpeg")


def test_a_flipped_bit_in_a_png_is_refused():
    content = bytearray(encoded(".png", smooth()))
    content[len(content) // 2] ^= 4
    with pytest.raises(ImageError, match="checksum"):
        decode_compressed(bytes(content), "png")


@pytest.mark.parametrize(
    ("data", "format_", "words"),
    [
        (b"GIF89a....", "gif", "neither JPEG nor PNG"),
        (b"", "jpeg", "neither JPEG nor PNG"),
        (b"\xff\xd8\xff\xd9", "jpeg", "corrupt"),
        (b"\0" * 40, "16UC1; compressedDepth png", "depth image"),
    ],
)
def test_other_content_is_refused_by_a_sentence(data, format_, words):
    with pytest.raises(ImageError, match=words):
        decode_compressed(data, format_)
