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

"""Can anything be seen in this frame? Asked before matching, so that a black image is never tracked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from macvo_ros.images.frame import Image, StereoFrame

_MIN_CONTRAST = 2.0
"""Standard deviation of brightness below which an image shows nothing, grey levels: a sensor's noise.
Chosen, not measured."""
_STRIDE = 4
"""Pixels between those that are looked at, for time; chosen."""


@dataclass(frozen=True)
class Trouble:
    """Why a frame cannot be tracked, in a sentence; frozen: it is the previous image again, so nothing may be wrong."""

    reason: str
    frozen: bool = False


def find_trouble(frame: StereoFrame, previous: StereoFrame | None) -> Trouble | None:
    """What keeps a frame from being tracked, if anything."""
    for side, image in (("left", frame.left), ("right", frame.right)):
        sample = image[:: 2 * _STRIDE, :: 2 * _STRIDE]
        if side == "left" and frame.masked is not None:
            sample = sample[~frame.masked[:: 2 * _STRIDE, :: 2 * _STRIDE]]
        contrast = float(sample.std())
        if contrast < _MIN_CONTRAST:
            brightness = float(sample.mean())
            kind = "black" if brightness < 16 else "white" if brightness > 239 else "uniform"
            return Trouble(
                f"the {side} image is {kind} (contrast {contrast:.1f} of 255): lens covered, no light or exposure lost"
            )
    if previous is not None and same_image(frame.left, previous.left):
        return Trouble(
            "the left image is identical to the one before: the camera is frozen, or nothing moves and it has no noise",
            frozen=True,
        )
    if previous is not None and same_image(frame.right, previous.right):
        # Depths would come from two different moments; that no two images of a live sensor agree to the last bit, and
        # that the left one changed, leaves no other explanation.
        return Trouble("the right image is identical to the one before but the left one is not: its camera is frozen")
    return None


def grain(image: Image) -> float:
    """Median difference of neighbouring pixels, grey levels: noise, and texture as fine."""
    some = image[:: 4 * _STRIDE] if image.ndim == 2 else image[:: 4 * _STRIDE, :, 1]
    rows = some.astype(np.int16)
    return float(np.median(np.abs(rows[:, 1:] - rows[:, :-1])))


def same_image(a: Image, b: Image) -> bool:
    """Whether two images agree to the last bit."""
    return a is b or (a.shape == b.shape and bool(np.array_equal(a[::_STRIDE], b[::_STRIDE]) and np.array_equal(a, b)))
