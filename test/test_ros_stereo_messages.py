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

"""Images as messages: our decoding first, cv_bridge for the rest."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from macvo_ros.errors import ImageError
from macvo_ros.ros import stereo_messages


def message(encoding: str, pixels: np.ndarray) -> SimpleNamespace:
    return SimpleNamespace(
        encoding=encoding,
        height=pixels.shape[0],
        width=pixels.shape[1],
        step=pixels.strides[0],
        is_bigendian=0,
        data=pixels.tobytes(),
        header=SimpleNamespace(stamp=SimpleNamespace(sec=3, nanosec=7), frame_id="/camera"),
    )


class Bridge:
    """A cv_bridge that turns everything red."""

    def imgmsg_to_cv2(self, image, wanted):
        assert wanted == "rgb8"
        if image.encoding == "nonsense":
            raise RuntimeError("no such encoding")
        return np.full((image.height, image.width, 3), (255, 0, 0), np.uint8)


PIXELS = np.arange(24, dtype=np.uint8).reshape(2, 12)


def test_rare_encodings_go_through_cv_bridge(monkeypatch):
    monkeypatch.setattr(stereo_messages, "CvBridge", Bridge)
    np.testing.assert_array_equal(stereo_messages.decode(message("bayer_rggb8", PIXELS))[0, 0], (255, 0, 0))
    np.testing.assert_array_equal(stereo_messages.decode(message("mono8", PIXELS)), PIXELS)  # not this one
    with pytest.raises(ImageError, match=r"'nonsense' is not one of .*no such encoding"):
        stereo_messages.decode(message("nonsense", PIXELS))


def test_without_cv_bridge_they_are_refused(monkeypatch):
    monkeypatch.setattr(stereo_messages, "CvBridge", None)
    with pytest.raises(ImageError, match="bayer_rggb8"):
        stereo_messages.decode(message("bayer_rggb8", PIXELS))


def test_the_unusable_side_is_named():
    good, bad = message("mono8", PIXELS), message("mono8", PIXELS)
    bad.data = bad.data[:-1]
    with pytest.raises(ImageError, match=r"^right image data is truncated"):
        stereo_messages.StereoMessages(good, bad, None, None, 0.0).decode()


def test_stamp_and_frame():
    pair = stereo_messages.StereoMessages(message("mono8", PIXELS), message("mono8", PIXELS), None, None, 0.0)
    assert (pair.stamp, pair.frame_id) == (3_000_000_007, "camera")
