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


"""Patches of points' first views, found again in later images: compared with the first view, they do not drift.

The same Gauss-Newton as `patch_refinement.py`, with gain, offset and blur, but the patch is kept and the warp
is that of the surface seen from another pose, which the caller knows. Gradients are those of the patch (inverse
compositional).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from macvo_ros.matching.patch_fit import Place, Search, fit_patches, inside
from macvo_ros.matching.patch_model import linearise, patch_window

Float32 = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.float64]
Bool = npt.NDArray[np.bool_]
Whole = npt.NDArray[np.int64]

_ITERATIONS = 4
_MAX_STEP = 0.7
"""Of one iteration, pixels of the first view."""
_MAX_SHIFT = 2.0
"""A patch farther than this from where it was expected is another one, pixels of the first view."""


@dataclass(frozen=True, eq=False)
class Patches:
    """N patches of S samples as they were seen first.

    offset: (N, 2) from the sample in the middle, a whole pixel, to the point, pixels. template: (N, S).
    project: (N, P, S) from the difference to another image to the P unknowns of `PatchModel`; explained: (N, P, P) how
    much of the squared difference these explain.
    spread: (N, A) variance of a shift per variance of a sample. radius, stride: of the samples, pixels.
    """

    offset: Float32
    template: Float32
    project: Float32
    explained: Float32
    spread: Float32
    radius: int
    stride: int

    def __len__(self) -> int:
        return len(self.template)

    def with_room(self, count: int) -> Patches:
        """A copy with room for `count` patches, the first of which are these; what the others are is not said."""
        more = count - len(self)
        offset, template, project, explained, spread = (
            np.concatenate((part, np.zeros((more, *part.shape[1:]), np.float32))) for part in self._arrays()
        )
        return Patches(offset, template, project, explained, spread, self.radius, self.stride)

    def overwrite(self, which: Whole, others: Patches) -> None:
        """Put `others` of the same size in the place of the patches of these (M,) numbers."""
        for ours, theirs in zip(self._arrays(), others._arrays(), strict=True):
            ours[which] = theirs

    def _arrays(self) -> tuple[Float32, ...]:
        return self.offset, self.template, self.project, self.explained, self.spread


@dataclass(frozen=True, eq=False)
class FoundPatches:
    """pixel: (N, 2) where the points are in the other image; patch_var: (N, A) least-squares variance, pixels^2.

    found: (N,) it converged near; likeness: (N,) normalised correlation of the two.
    """

    pixel: Float64
    patch_var: Float64
    found: Bool
    likeness: Float64


def cut_patches(image: Float32, pixel: Float64, radius: int, stride: int, axes: int = 2) -> Patches:
    """Patches of an (H, W) image around (N, 2) pixels; radius a multiple of stride.

    axes: 2; 1 for patches that will be looked for along their row only.
    """
    model = linearise(image, pixel, radius, stride, axes)
    return Patches(
        offset=(pixel - model.whole).astype(np.float32),
        template=model.template,
        project=model.project,
        explained=model.explained,
        spread=model.spread,
        radius=model.radius,
        stride=stride,
    )


def find_patches(
    patches: Patches,
    image: Float32,
    expected: Float64,
    warp: Float64,
    foreshortening: Float64 | None = None,
    which: Whole | None = None,
) -> FoundPatches:
    """Find patches in an (H, W) image near (N, 2) expected pixels; warp: (N, 2, 2) d(pixel here) / d(pixel there).

    foreshortening: (N, 2) 1/pixel, see `foreshortening.py`; None: none. which: (N,) numbers of the patches to find;
    None: all. Whether there is texture to find is not asked again (`PatchFit.answer`): it was when the point was first
    matched.
    """
    axes = patches.spread.shape[1]
    if not len(expected):
        none = np.empty(0)
        return FoundPatches(np.empty((0, 2)), np.empty((0, axes)), none.astype(bool), none)
    offset, spread = (each if which is None else each[which] for each in (patches.offset, patches.spread))
    offsets, window = patch_window(patches.radius, patches.stride)
    turn = warp.astype(np.float32)
    middle = expected.astype(np.float32) - (turn @ offset[:, :, None])[:, :, 0]
    place = Place(middle, turn, np.ascontiguousarray(turn[:, :, :axes]), foreshortening)
    fit = fit_patches(patches, offsets, window, image, place, Search(_ITERATIONS, _MAX_STEP, aside=0.0), which)
    here = (turn[:, :axes, :axes] ** 2 @ spread[:, :, None])[:, :, 0]
    at_point = fit.shift + (fit.bent @ offset[:, :, None])[:, :, 0] / np.float32(patches.radius)
    found = np.isfinite(fit.shift).all(axis=1) & (np.abs(fit.shift).max(axis=1) <= _MAX_SHIFT)
    found &= inside(place, offsets, image.shape)
    return FoundPatches(
        pixel=expected + np.where(found[:, None], (turn[:, :, :axes] @ at_point[:, :, None])[:, :, 0], 0.0),
        patch_var=(fit.noise[:, None] * here).astype(np.float64),
        found=found,
        likeness=fit.likeness,
    )
