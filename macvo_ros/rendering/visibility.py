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

"""Which surface each pixel centre sees, and how far: an exact inverse-depth z-buffer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from macvo_ros.rendering.projection import SKY_INVERSE_DEPTH, Projected, View, project
from macvo_ros.rendering.scene import Scene

_SEAM = 1e-6  # quads reach this share of their side beyond their edges, so that neighbours leave no cracks


@dataclass(frozen=True, eq=False)
class Visibility:
    """What the pixel centres of a view see.

    slot: (H, W) intp, row of `projected`; len(projected.index) where there is nothing at all.
    inverse_depth: (H, W) float32, 1/metres along the optical axis; 0 for sky and nothing.
    """

    view: View
    projected: Projected
    slot: npt.NDArray[np.intp]
    inverse_depth: npt.NDArray[np.float32]

    def surface(self) -> npt.NDArray[np.int32]:
        """(H, W) index of the scene's quad each pixel sees, -1 where there is nothing."""
        return np.append(self.projected.index, -1).astype(np.int32)[self.slot]


def look(scene: Scene, view: View) -> Visibility:
    """Rasterise the scene. A pixel (u, v) is its centre, at integer coordinates."""
    projected = project(scene, view)
    count = len(projected.index)
    nearest = np.zeros((view.height, view.width), np.float32)
    slot = np.full((view.height, view.width), count, np.int16)
    # (V, 5, 3): s/z, (1-s)/z, t/z, (1-t)/z, all >= 0 inside the quad, and 1/z
    s, t, w = (projected.matrix[:, i] for i in range(3))
    functions = np.stack([s + _SEAM * w, (1 + _SEAM) * w - s, t + _SEAM * w, (1 + _SEAM) * w - t, w], axis=1)
    u = np.arange(view.width, dtype=np.float64)
    v = np.arange(view.height, dtype=np.float64)
    across = (functions[:, :, :1] * u).astype(np.float32)  # (V, 5, W)
    down = (functions[:, :, 1:2] * v + functions[:, :, 2:]).astype(np.float32)  # (V, 5, H)
    for index in range(count):
        u0, u1, v0, v1 = projected.bounds[index]
        columns, rows = across[index, :, None, u0:u1], down[index, :, v0:v1, None]
        inside = columns[0] + rows[0]
        scratch = np.empty_like(inside)
        for edge in (1, 2, 3):
            np.add(columns[edge], rows[edge], out=scratch)
            np.minimum(inside, scratch, out=inside)
        np.add(columns[4], rows[4], out=scratch)
        target = nearest[v0:v1, u0:u1]
        seen = inside >= 0
        seen &= scratch > target
        np.copyto(target, scratch, where=seen)
        np.copyto(slot[v0:v1, u0:u1], index, where=seen)
    nearest[nearest < SKY_INVERSE_DEPTH] = 0.0
    return Visibility(view, projected, slot.astype(np.intp), nearest)
