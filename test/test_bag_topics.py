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

"""Recognition of stereo topics by the names drivers and datasets use."""

from __future__ import annotations

import pytest

from macvo_ros.bags.bag import Topic
from macvo_ros.bags.stereo_topics import CAMERA_INFO, COMPRESSED_IMAGE, IMAGE, find_stereo_topics
from macvo_ros.errors import SequenceError


def topics(*names: str) -> dict[str, Topic]:
    def kind(name: str) -> str:
        if "camera_info" in name:
            return CAMERA_INFO
        return COMPRESSED_IMAGE if name.endswith(("/compressed", "image_compressed")) else IMAGE

    return {name: Topic(name, kind(name), 10) for name in sorted(names)}


def both(*templates: str) -> list[str]:
    return [name.replace("LEFT", side) for name in templates for side in ("left", "right")]


LAYOUTS = {
    "zed 5.1": (
        [
            *both("/zed/zed_node/LEFT/color/rect/image", "/zed/zed_node/LEFT/color/rect/camera_info"),
            "/zed/zed_node/rgb/color/rect/image",
            "/zed/zed_node/depth/depth_registered",
        ],
        ("/zed/zed_node/left/color/rect/image", "/zed/zed_node/left/color/rect/camera_info", True),
    ),
    "zed 5.1 with raw and gray": (
        both(
            "/zed/zed_node/LEFT/color/rect/image",
            "/zed/zed_node/LEFT/color/rect/camera_info",
            "/zed/zed_node/LEFT/color/raw/image",
            "/zed/zed_node/LEFT/color/raw/camera_info",
            "/zed/zed_node/LEFT/gray/rect/image",
            "/zed/zed_node/LEFT/gray/rect/camera_info",
        ),
        ("/zed/zed_node/left/gray/rect/image", "/zed/zed_node/left/gray/rect/camera_info", True),
    ),
    "zed before 5.1": (
        both(
            "/zed/zed_node/LEFT/image_rect_color",
            "/zed/zed_node/LEFT/camera_info",
            "/zed/zed_node/LEFT_raw/image_raw_color",
            "/zed/zed_node/LEFT_raw/camera_info",
        ),
        ("/zed/zed_node/left/image_rect_color", "/zed/zed_node/left/camera_info", True),
    ),
    "zed compressed": (
        both("/zed/zed_node/LEFT/color/rect/image/compressed", "/zed/zed_node/LEFT/color/rect/camera_info"),
        ("/zed/zed_node/left/color/rect/image/compressed", "/zed/zed_node/left/color/rect/camera_info", True),
    ),
    "euroc": (["/cam0/image_raw", "/cam1/image_raw"], ("/cam0/image_raw", None, False)),
    "kitti raw": (
        both(
            "/kitti/camera_gray_LEFT/image_raw",
            "/kitti/camera_gray_LEFT/camera_info",
            "/kitti/camera_color_LEFT/image_raw",
            "/kitti/camera_color_LEFT/camera_info",
        ),
        ("/kitti/camera_gray_left/image_raw", "/kitti/camera_gray_left/camera_info", True),
    ),
    "kitti odometry colour": (
        both("/kitti/camera_color_LEFT/image_rect", "/kitti/camera_color_LEFT/camera_info"),
        ("/kitti/camera_color_left/image_rect", "/kitti/camera_color_left/camera_info", True),
    ),
    "realsense": (
        [f"/camera/camera/infra{i}/{name}" for i in (1, 2) for name in ("image_rect_raw", "camera_info")],
        ("/camera/camera/infra1/image_rect_raw", "/camera/camera/infra1/camera_info", True),
    ),
    "isaac": (
        both("/front_stereo_camera/LEFT/image_rect", "/front_stereo_camera/LEFT/camera_info_rect"),
        ("/front_stereo_camera/left/image_rect", "/front_stereo_camera/left/camera_info_rect", True),
    ),
    "isaac compressed": (
        both("/front_stereo_camera/LEFT/image_compressed", "/front_stereo_camera/LEFT/camera_info"),
        ("/front_stereo_camera/left/image_compressed", "/front_stereo_camera/left/camera_info", True),
    ),
    "stereo_image_proc": (
        [*both("/stereo/LEFT/image_raw", "/stereo/LEFT/image_rect", "/stereo/LEFT/camera_info"), "/stereo/disparity"],
        ("/stereo/left/image_rect", "/stereo/left/camera_info", True),
    ),
    "raw only": (
        both("/stereo/LEFT/image_raw", "/stereo/LEFT/camera_info"),
        ("/stereo/left/image_raw", "/stereo/left/camera_info", False),
    ),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_known_layouts_are_recognised(name):
    names, (left, left_info, rectified) = LAYOUTS[name]
    found = find_stereo_topics(topics(*names))
    assert (found.left, found.left_info, found.rectified) == (left, left_info, rectified)
    swaps = (("left", "right"), ("cam0", "cam1"), ("infra1", "infra2"))
    for one, other in swaps:
        left = left.replace(one, other)
        left_info = left_info.replace(one, other) if left_info else None
    assert (found.right, found.right_info) == (left, left_info)


def test_named_topics_win_and_their_info_is_found():
    names = both("/a/LEFT/image_rect", "/a/LEFT/camera_info", "/b/LEFT/image_raw", "/b/LEFT/camera_info")
    found = find_stereo_topics(topics(*names), left="/b/left/image_raw")
    assert (found.right, found.right_info, found.rectified) == ("/b/right/image_raw", "/b/right/camera_info", False)
    odd = find_stereo_topics(topics("/eye_one", "/eye_two"), left="/eye_one", right="/eye_two")
    assert (odd.left_info, odd.right_info) == (None, None)


@pytest.mark.parametrize(
    ("names", "named", "words"),
    [
        ([], {}, "no stereo pair.*none"),
        (["/camera/image_raw"], {}, "no stereo pair.*/camera/image_raw.*--left"),
        (both("/a/LEFT/image_rect", "/b/LEFT/image_rect"), {}, "more than one stereo pair.*/a/.*/b/.*--left"),
        (both("/a/LEFT/image_rect"), {"left": "/c"}, "no topic /c; it has /a/left"),
        (both("/a/LEFT/image_rect", "/a/LEFT/camera_info"), {"left": "/a/left/camera_info"}, "CameraInfo; expected"),
    ],
)
def test_doubt_is_an_error_that_lists_the_choices(names, named, words):
    with pytest.raises(SequenceError, match=words):
        find_stereo_topics(topics(*names), **named)


def test_leftover_words_are_no_sides():
    """`left` counts as a whole word only: /leftover/image has no right."""
    with pytest.raises(SequenceError, match="no stereo pair"):
        find_stereo_topics(topics("/leftover/image", "/rightover/image"))
