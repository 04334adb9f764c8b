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

"""How far a classical dense match can be trusted, without a network.

    var = floor^2 + (a fb)^2 + (b n)^2 (G^-1) + (c bend)^2

per axis, where fb is the forward-backward disagreement (occlusions, jumps), n the local noise of the brightness
residual and G the local structure tensor (what least squares says of a patch: no texture along an axis, no
information along it), and bend how far the match departs from a plane nearby (edges of objects, over which any patch
smears). floor, a, b and c are fitted by maximum likelihood on rendered scenes (`bench/calibrate_classic.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from macvo_ros.geometry.pixel_grid import pixel_grid

Float32 = npt.NDArray[np.float32]
Grey = npt.NDArray[np.uint8]

_WINDOW = (9, 9)
_BEND_WINDOW = (15, 15)
_READ_NOISE = 1.0
"""Brightness noise below which residuals carry no information, grey levels."""
_RIDGE = 2.0
"""Added to the structure tensor's diagonal, (grey levels / pixel)^2."""
_OUTSIDE = 20.0
"""Forward-backward disagreement assigned to matches that leave the image, pixels."""


@dataclass(frozen=True)
class VarianceCoefficients:
    """floor: pixels; disagreement (a), patch (b) and bend (c): factors, see the module."""

    floor: float
    disagreement: float
    patch: float
    bend: float


@dataclass(frozen=True, eq=False)
class Evidence:
    """What speaks against a dense match, (H, W, 2) per axis, pixels^2.

    disagreement2: squared forward-backward disagreement.
    patch2: least-squares variance of a patch match.
    bend2: mean squared departure of the flow from its local mean, which on a plane is its local value.
    """

    disagreement2: Float32
    patch2: Float32
    bend2: Float32

    def variance(self, c: VarianceCoefficients) -> Float32:
        """(H, W, 2) variance per axis, pixels^2."""
        out = self.disagreement2 * np.float32(c.disagreement**2)
        out += self.patch2 * np.float32(c.patch**2)
        out += self.bend2 * np.float32(c.bend**2)
        out += np.float32(c.floor**2)
        return np.asarray(out)


def match_evidence(source: Grey, target: Grey, flow: Float32, backward: Float32) -> Evidence:
    """Evidence for `flow` (H, W, 2) from source to target, given the flow back from target to source."""
    height, width = source.shape
    position = flow + pixel_grid(height, width)
    back = cv2.remap(backward, position, None, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    back += flow
    np.square(back, out=back)
    outside = (
        (position[..., 0] < 0)
        | (position[..., 0] > width - 1)
        | (position[..., 1] < 0)
        | (position[..., 1] > height - 1)
    )
    back[outside] += np.float32(_OUTSIDE**2)

    warped = cv2.remap(target, position, None, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    residual = cv2.subtract(warped, source, dtype=cv2.CV_32F)
    mean = cv2.boxFilter(residual, -1, _WINDOW)
    noise2 = cv2.sqrBoxFilter(residual, -1, _WINDOW) - mean * mean + np.float32(_READ_NOISE**2)

    gx = cv2.Scharr(source, cv2.CV_32F, 1, 0, scale=1.0 / 32.0)
    gy = cv2.Scharr(source, cv2.CV_32F, 0, 1, scale=1.0 / 32.0)
    xx = cv2.boxFilter(gx * gx, -1, _WINDOW) + np.float32(_RIDGE)
    yy = cv2.boxFilter(gy * gy, -1, _WINDOW) + np.float32(_RIDGE)
    xy = cv2.boxFilter(gx * gy, -1, _WINDOW)
    scale = noise2 / ((xx * yy - xy * xy) * np.float32(_WINDOW[0] * _WINDOW[1]))
    bend = flow - cv2.boxFilter(flow, -1, _BEND_WINDOW)
    bend2 = cv2.boxFilter(bend * bend, -1, _BEND_WINDOW)
    return Evidence(disagreement2=back, patch2=np.stack((yy * scale, xx * scale), axis=-1), bend2=bend2)
