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

"""Pixels that show the robot itself: a gripper, a mast, the bonnet. They are never keypoints and never evidence.

A mask belongs to the rectified left image, the one that the odometry works on: a picture of its size that is black over
what is to be ignored, or polygons in its pixels.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt

from macvo_ros.errors import ConfigError, ImageError
from macvo_ros.images.frame import Image, StereoFrame
from macvo_ros.settings.config import MaskConfig

BoolImage = npt.NDArray[np.bool_]
Polygon = npt.NDArray[np.int32]

_BLACK = 128
"""Grey level below which a pixel of the picture is to be ignored: half way, by definition."""
_WIDEST_PATCH, _MARGINS = 36, (6, 18)
"""A patch around a keypoint reaches a 36th of the image's width, within these pixels (`lite/refinement.py`): so far
from the mask's edge it would still see what is under it."""
_POINT = re.compile(r"(-?\d+(?:\.\d+)?)\s*,\s*(-?\d+(?:\.\d+)?)")


class RobotMask:
    """A mask as it was configured; `applied` puts it on frames."""

    def __init__(self, config: MaskConfig) -> None:
        """Read picture and polygons; ConfigError with a sentence where they are none."""
        self._path = config.image
        self._picture = _read(config.image) if config.image else None
        self._polygons = _parse(config.polygons)
        self._known: BoolImage | None = None

    def __bool__(self) -> bool:
        """Whether there is anything to ignore."""
        return self._picture is not None or bool(self._polygons)

    def applied(self, frame: StereoFrame) -> StereoFrame:
        """The frame with its mask; ImageError where the mask is for images of another size."""
        if not self or frame.masked is not None:
            return frame
        shape = frame.camera.height, frame.camera.width
        if self._known is None or self._known.shape != shape:
            self._known = self._drawn(*shape)
        return replace(frame, masked=self._known)

    def _drawn(self, height: int, width: int) -> BoolImage:
        drawn = np.zeros((height, width), np.uint8)
        if self._picture is not None:
            if self._picture.shape != drawn.shape:
                rows, columns = self._picture.shape
                raise ImageError(
                    f"mask.image {self._path} is {columns}x{rows} but the rectified left images are {width}x{height}; "
                    "draw the mask on one of those"
                )
            drawn[self._picture < _BLACK] = 1
        for polygon in self._polygons:
            cv2.fillPoly(drawn, [polygon], 1)
        share = float(drawn.mean())
        if share in (0.0, 1.0):
            what = "nothing" if share == 0 else "everything"
            raise ImageError(
                f"the mask hides {what} of the {width}x{height} images: pixels to ignore are black in mask.image, and "
                "mask.polygons are in pixels of the rectified left image"
            )
        margin = int(np.clip(width // _WIDEST_PATCH, *_MARGINS))
        return np.asarray(cv2.dilate(drawn, np.ones((2 * margin + 1,) * 2, np.uint8)) > 0)


def usable_pixels(frame: StereoFrame, width: int, height: int) -> Image | None:
    """(height, width) 255 where pixels of the shrunk left image may be used and 0 elsewhere; None without a mask."""
    if frame.masked is None:
        return None
    hidden = cv2.resize(frame.masked.astype(np.uint8), (width, height), interpolation=cv2.INTER_NEAREST)
    return np.asarray(np.where(hidden > 0, 0, 255), dtype=np.uint8)


def _read(path: str) -> Image:
    if not Path(path).is_file():
        raise ConfigError(f"mask.image: {path} does not exist; give a png or jpg, black where pixels are to be ignored")
    picture = cv2.imread(path, cv2.IMREAD_GRAYSCALE)
    if picture is None:
        raise ConfigError(f"mask.image: {path} is not an image that can be read; give a png or jpg")
    return np.asarray(picture, dtype=np.uint8)


def _parse(text: str) -> list[Polygon]:
    """Polygons of "x,y x,y x,y; x,y ...", pixels."""
    polygons = []
    for part in filter(None, (part.strip() for part in text.split(";"))):
        points = _POINT.findall(part)
        if len(points) < 3 or _POINT.sub("", part).strip():
            raise ConfigError(
                f"mask.polygons: expected at least three points x,y a polygon and ; between polygons, for example "
                f"'0,400 640,400 640,480 0,480', got {part[:80]!r}"
            )
        corners = np.array([[float(x), float(y)] for x, y in points])
        polygons.append(np.clip(np.rint(corners), -30000, 30000).astype(np.int32))
    return polygons
