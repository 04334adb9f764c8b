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

"""TartanAir, version 1 and 2: rendered stereo with exact poses, depth and flow.

Version 1: `image_left/000000_left.png image_right/ pose_left.txt`, 640x480. Version 2: `image_lcam_front/
image_rcam_front/ pose_lcam_front.txt`, 640x640. Both: fx = fy = 320, the principal point in the middle of the image,
baseline 0.25 m. The dataset has no times: 10 Hz is assumed.

The dataset's page gives cx = 320 for 640 columns, counted from the image's edge. Integers are pixel centres here, so
the middle is 319.5. With it the dataset's flow agrees with its depth and poses to 0.004 pixels (the step of its flow
files is 1/64), with 320 only to 0.025; half a pixel turns the camera by 0.09 degrees.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from macvo_ros.errors import SequenceError
from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.sequences.damaged_images import first_readable
from macvo_ros.sequences.image_files import StereoImageFiles, assumed_stamps, read_image
from macvo_ros.sequences.image_pairs import pair_images
from macvo_ros.sequences.poses import NED_FROM_OPTICAL, poses_from_quaternions
from macvo_ros.sequences.text_rows import check_quaternions, number_rows, text_rows


@dataclass(frozen=True)
class TartanAirLayout:
    """Names of one version's folders, and its image size."""

    left: str
    right: str
    poses: str
    depth: str
    flow: str
    width: int
    height: int

    @property
    def camera(self) -> StereoCamera:
        """The camera every TartanAir sequence of this version was rendered with."""
        return StereoCamera(
            fx=320.0,
            fy=320.0,
            cx=(self.width - 1) / 2,
            cy=(self.height - 1) / 2,
            baseline=0.25,
            width=self.width,
            height=self.height,
        )


LAYOUTS = (
    TartanAirLayout("image_left", "image_right", "pose_left.txt", "depth_left", "flow", 640, 480),
    TartanAirLayout(
        "image_lcam_front",
        "image_rcam_front",
        "pose_lcam_front.txt",
        "depth_lcam_front",
        "flow_lcam_front",
        640,
        640,
    ),
)


def tartanair_layout(path: Path) -> TartanAirLayout | None:
    """Which version a trajectory folder (`.../P000`) is, None if neither."""
    return next((layout for layout in LAYOUTS if (path / layout.left).is_dir()), None)


def open_tartanair(path: str | Path) -> StereoImageFiles:
    """Open one trajectory folder. Poses (NED, x forward) become those of the left optical frame in the same world."""
    path = Path(path)
    layout = tartanair_layout(path)
    if layout is None:
        raise SequenceError(f"{path}: expected image_left/ (TartanAir v1) or image_lcam_front/ (v2)")
    images = pair_images(path / layout.left, path / layout.right)
    first = first_readable(images.left)
    height, width = read_image(first).shape[:2]
    camera = layout.camera
    if width * camera.height != height * camera.width:
        raise SequenceError(f"{first} is {width}x{height}; expected the shape of {camera.width}x{camera.height}")
    truth, frames, skipped = None, images.frame, images.alone
    if (path / layout.poses).exists():
        file = path / layout.poses
        lines = text_rows(file)
        rows = number_rows(file, lines, 7)
        check_quaternions(file, lines, rows[:, 3:])
        frames, skipped = images.rows(len(rows), file, "poses"), images.missing(len(rows))
        truth = poses_from_quaternions(rows[:, :3], rows[:, 3:])[frames] @ NED_FROM_OPTICAL
    camera = camera if width == camera.width else camera.resized(width, height)
    parts = path.resolve().parts
    name = " ".join(["tartanair", *(parts[-3:] if re.fullmatch(r"P[0-9]+", parts[-1]) else parts[-1:])])
    return StereoImageFiles(name, camera, assumed_stamps(frames), truth, images.left, images.right, skipped=skipped)
