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

"""The `lite` matcher: DIS flow at half the resolution, a compact network that predicts where it is wrong, and sub-pixel
refinement at the keypoints. Real time on two CPU cores; the weights are in the package."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt
import torch

from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.images.frame import StereoFrame
from macvo_ros.images.mask import usable_pixels
from macvo_ros.matching.epipolar_error import check_rows
from macvo_ros.matching.flow_search import FlowSearch
from macvo_ros.matching.foreshortening import expected_foreshortening
from macvo_ros.matching.lite.features import (
    SCALE,
    ImageFeatures,
    grid_camera,
    grid_size,
    stereo_features,
    temporal_features,
    to_grid,
)
from macvo_ros.matching.lite.network import LiteNetwork, load_network
from macvo_ros.matching.lite.refinement import (
    REFINED_FLOW_VARIANCE,
    REFINED_STEREO_VARIANCE,
    refine_smooth,
    refined_variance,
    smooth_patches,
)
from macvo_ros.matching.lite.two_threads import LaterCheck, one_torch_thread, side_by_side
from macvo_ros.matching.lite.variance import VarianceNetwork
from macvo_ros.matching.matcher import FlowMatch, Match, PointMatches, Prediction, StereoMatch, look_up
from macvo_ros.matching.patch_refinement import Refinement, refine_patches
from macvo_ros.matching.rigid_flow import rigid_flow
from macvo_ros.matching.stereo_rows import rows_of
from macvo_ros.matching.stereo_search import RowMatch, disparity_range, search_rows
from macvo_ros.uncertainty.error_correlation import ErrorCorrelation
from macvo_ros.uncertainty.row_field import RowField

Float32 = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.float64]

_PATCH_NOISE = 0.12
"""Squared residual of ordinary patches over their number of samples, grey levels^2, for choosing keypoints."""
_DENSE_SHARE = 0.1
"""Of the variance of dense matches in that of keypoints: it answers for what is hidden or moves as well."""
_MIN_LIKENESS = 0.4
"""Normalised correlation below which two patches are taken for unrelated, as in `classic`."""


@dataclass(frozen=True, eq=False, kw_only=True)
class LiteStereo(StereoMatch):
    """Also what refinement begins with.

    to_right: (H, W, 1) the disparity's opposite, pixels.
    refined_var: (h, w) on the network's grid, pixels^2, the variance that matches will have once refined.
    """

    to_right: Float32
    refined_var: torch.Tensor


@dataclass(frozen=True, eq=False, kw_only=True)
class LiteFlow(FlowMatch):
    """Also refined_var: (2, h, w) on the network's grid, pixels^2, see `LiteStereo`."""

    refined_var: torch.Tensor


@dataclass(eq=False)
class _Side:
    """Images of a frame, what the network sees of them, and its stereo match once that was begun."""

    frame: StereoFrame
    left: ImageFeatures
    right: ImageFeatures
    stereo: Future[StereoMatch] | None = None


def make_search() -> cv2.DISOpticalFlow:
    """About the fast preset: precision is left to refinement, but patches must overlap, or weak texture fails."""
    dis = cv2.DISOpticalFlow.create(cv2.DISOPTICAL_FLOW_PRESET_FAST)
    dis.setFinestScale(1)
    dis.setGradientDescentIterations(12)
    dis.setVariationalRefinementIterations(2)
    return dis


class LiteMatcher:
    """Dense inverse search with a learned variance, on the CPU."""

    name = "lite"
    disparity_correlation = ErrorCorrelation(share=1.0, length=12)
    flow_correlation = ErrorCorrelation(share=1.0, length=12)
    uses_prediction = True

    def __init__(self, network: LiteNetwork | None = None, min_depth: float = 0.0, work_pixels: int = 0) -> None:
        """min_depth: metres, nothing is nearer (`stereo.min_depth`); work_pixels: see `Matcher`."""
        self.work_pixels = work_pixels
        self.device = torch.device("cpu")
        self._min_depth = min_depth
        self._variances = VarianceNetwork(network or load_network())
        self._sides: dict[int, _Side] = {}
        self._search = FlowSearch(make_search)
        self._thread = ThreadPoolExecutor(1, "macvo stereo matching", one_torch_thread)

    def reset(self) -> None:
        """Forget earlier frames."""
        self._sides.clear()

    def begin(self, current: StereoFrame) -> None:
        """See `Matcher.begin`: the stereo match starts in the other thread."""
        self._stereo_of(self._side(current))

    def match(self, reference: StereoFrame | None, current: StereoFrame, prediction: Prediction | None = None) -> Match:
        """See `Matcher.match`. The prediction seeds the flow; the stereo match of a frame is computed once.

        Stereo and flow do not depend on each other: they are searched at the same time, in two threads. Flow is known
        first, and keypoints are chosen and followed while stereo is still searched.
        """
        keep = {id(frame) for frame in (reference, current) if frame is not None}
        self._sides = {key: side for key, side in self._sides.items() if key in keep}
        side = self._side(current)
        with side_by_side():
            stereo = self._stereo_of(side)
            if reference is None:
                return Match(stereo)
            return Match(stereo, self._match_temporal(self._side(reference), side, prediction))

    def refine(
        self,
        reference: StereoFrame,
        reference_match: Match,
        current: StereoFrame,
        match: Match,
        pixel: Float64,
        rows: RowField | None = None,
    ) -> PointMatches:
        """Sub-pixel refinement of the three matches behind each keypoint, with the variance learned for it.

        Keypoints whose patches do not look alike are left out: a dense match follows its seed even into noise.
        """
        before, now = self._side(reference), self._side(current)
        stereo, temporal = reference_match.known_stereo, match.temporal
        assert isinstance(stereo, LiteStereo)
        assert isinstance(temporal, LiteFlow)
        at = reference.to_full(pixel)
        with side_by_side():
            # The reference's stereo in the other thread, after the stereo match of the current frame.
            row = rows_of(rows, reference, stereo.to_right, at)
            first_stereo = self._thread.submit(
                refine_smooth, before.left, before.right, stereo.to_right, at, axes=1, rows=row
            )
            perspective = expected_foreshortening(reference, temporal.motion, stereo.to_right, at)
            to_current = temporal.flow.numpy().transpose(1, 2, 0)
            flow = refine_smooth(before.left, now.left, to_current, at, axes=2, foreshortening=perspective)
            matched = at + flow.displacement
            patches = smooth_patches(now.left, matched, axes=1)
            matched_stereo = match.known_stereo
            assert isinstance(matched_stereo, LiteStereo)
            if isinstance(matched_stereo.row_check, LaterCheck):
                matched_stereo.row_check.begin()
            row = rows_of(rows, current, matched_stereo.to_right, matched)
            second = refine_patches(patches, now.right.smooth(), matched_stereo.to_right, matched, rows=row)
            points = look_up(pixel, reference_match, match).in_full_image(reference)
            first = first_stereo.result()
        alike = np.minimum(np.minimum(flow.likeness, first.likeness), second.likeness) > _MIN_LIKENESS
        return PointMatches(
            pixel=at,
            disparity=-first.displacement[:, 0],
            disparity_var=_refined_disparity_var(stereo, reference, at, points.disparity_var, first),
            flow=flow.displacement,
            flow_var=refined_variance(
                REFINED_FLOW_VARIANCE, tuple(temporal.refined_var), reference, at, points.flow_var, flow
            ),
            matched_disparity=-second.displacement[:, 0],
            matched_disparity_var=_refined_disparity_var(
                matched_stereo, current, matched, points.matched_disparity_var, second
            ),
        ).subset(alike)

    def _match_stereo(self, side: _Side) -> LiteStereo:
        """Match left to right."""
        camera = side.frame.camera
        side.left.smooth(), side.right.smooth()  # for `refine`, which begins before the other thread needs this match
        found = search_stereo(side.left, side.right, camera, self._min_depth)
        variance = self.variances(stereo_features(side.left, side.right, found, camera))
        displacement = -full_disparity(found, camera.height, camera.width)
        expected = _keypoint_variance(variance, side.left.patch_variance()[:1])
        usable = usable_pixels(side.frame, *side.left.small.shape[::-1])
        return LiteStereo(
            disparity=torch.from_numpy(-displacement),
            to_right=displacement[..., None],
            disparity_var=torch.from_numpy(_full_size(variance[0], camera.height, camera.width)),
            row_check=LaterCheck(
                lambda: self._thread.submit(check_rows, side.left.small, side.right.small, found, 2.0, usable)
            ),
            keypoint_disparity_var=torch.from_numpy(_half_size(expected[0])),
            refined_var=torch.from_numpy(np.ascontiguousarray(variance[2])),
        )

    def _match_temporal(self, earlier: _Side, now: _Side, prediction: Prediction | None) -> LiteFlow:
        """Match the earlier left image to the current one."""
        camera = now.frame.camera
        if prediction is None:
            motion, seed = np.eye(4), None
            disparity = to_grid(self._stereo_of(earlier).result().disparity.numpy())
        else:
            motion, disparity = prediction.motion, to_grid(prediction.disparity.numpy())
            seed = seed_flow(camera, disparity, motion)
        flow = self._search.flow(earlier.left.small, now.left.small, seed)
        variance = self.variances(temporal_features(earlier.left, now.left, flow, disparity, camera, motion))
        expected = _keypoint_variance(variance, earlier.left.patch_variance()[1:])
        size = camera.height, camera.width
        return LiteFlow(
            flow=torch.from_numpy(full_flow(flow, *size)),
            flow_var=torch.from_numpy(_all_full_size(variance[:2], *size)),
            refined_var=torch.from_numpy(np.ascontiguousarray(variance[2:])),
            keypoint_flow_var=torch.from_numpy(np.stack([_half_size(v) for v in expected])),
            motion=None if prediction is None else motion,
        )

    def _stereo_of(self, side: _Side) -> Future[StereoMatch]:
        """The stereo match of a frame, which the other thread works on, or has."""
        if side.stereo is None:
            side.stereo = self._thread.submit(self._match_stereo, side)
        return side.stereo

    def images(self, frame: StereoFrame) -> tuple[ImageFeatures, ImageFeatures]:
        """Left and right image of a frame, kept while it is the reference or the current one."""
        side = self._side(frame)
        return side.left, side.right

    def variances(self, evidence: Float32) -> Float32:
        """(C, h, w) evidence to (4, h, w) variances (`network.OUTPUTS`), pixels^2."""
        return self._variances(evidence)

    def _side(self, frame: StereoFrame) -> _Side:
        side = self._sides.get(id(frame))
        if side is None:
            left = ImageFeatures(frame.grey[0], lambda: frame.full.smooth_left)
            right = ImageFeatures(frame.grey[1], lambda: frame.full.smooth_right)
            side = self._sides[id(frame)] = _Side(frame, left, right)
        return side


def search_stereo(left: ImageFeatures, right: ImageFeatures, camera: StereoCamera, min_depth: float) -> RowMatch:
    """Disparities of the halved images, in pixels of them; min_depth: metres (`stereo.min_depth`)."""
    lowest, highest = disparity_range(camera, min_depth)
    return search_rows(left.small, right.small, lowest / 2, highest / 2)


def seed_flow(camera: StereoCamera, disparity: Float32, motion: Float64) -> Float32:
    """(2h, 2w, 2) flow of the halved images under a (4, 4) motion; disparity: (h, w) on the grid, pixels of the image.

    The search ends at a quarter of the resolution, so nothing finer is asked for.
    """
    coarse = rigid_flow(grid_camera(camera), disparity * np.float32(1 / SCALE), motion) * np.float32(SCALE / 2)
    rows, columns = disparity.shape
    return np.asarray(cv2.resize(coarse, (2 * columns, 2 * rows), interpolation=cv2.INTER_LINEAR), dtype=np.float32)


def full_disparity(match: RowMatch, height: int, width: int) -> Float32:
    """(H, W) disparity at all pixels of the image, of a match of the halved images in pixels of them."""
    return _full_size(match.disparity * np.float32(2), height, width)


def full_flow(half_flow: Float32, height: int, width: int) -> Float32:
    """(2, H, W) flow at all pixels of the image, of a flow of the halved images in pixels of them."""
    return _all_full_size(cv2.split(half_flow * np.float32(2)), height, width)


def _refined_disparity_var(
    match: LiteStereo, frame: StereoFrame, pixel: Float64, dense_var: Float64, refinement: Refinement
) -> Float64:
    learned = (match.refined_var,)
    return refined_variance(REFINED_STEREO_VARIANCE, learned, frame, pixel, dense_var[:, None], refinement)[:, 0]


def _keypoint_variance(variance: Float32, patch: Float32) -> Float32:
    """(A, h, w) expected variance of refined keypoints; variance: (4, h, w) of the network; patch: (A, h, w)."""
    axes = len(patch)
    return np.asarray(
        variance[2 : 2 + axes] + np.float32(_DENSE_SHARE) * variance[:axes] + np.float32(_PATCH_NOISE) * patch
    )


def _full_size(coarse: Float32, height: int, width: int) -> Float32:
    """A map of the grid, or of twice its size, at all pixels of the image; beyond the grid its edge is repeated."""
    return np.asarray(_all_full_size([coarse], height, width)[0])


def _all_full_size(maps: Iterable[Float32], height: int, width: int) -> Float32:
    """`_full_size` of M maps, (M, H, W)."""
    maps = list(maps)
    rows, columns = (SCALE * cells for cells in grid_size(height, width))
    full = np.empty((len(maps), height, width), np.float32)
    for coarse, to in zip(maps, full, strict=True):
        if (rows, columns) == (height, width):
            cv2.resize(coarse, (columns, rows), dst=to, interpolation=cv2.INTER_LINEAR)
        else:
            grown = cv2.resize(coarse, (columns, rows), interpolation=cv2.INTER_LINEAR)
            edge = (0, height - rows, 0, width - columns)
            cv2.copyMakeBorder(grown, *edge, dst=to, borderType=cv2.BORDER_REPLICATE)
    return full


def _half_size(coarse: Float32) -> Float32:
    """A (h, w) map of the grid at every second pixel of the image."""
    rows, columns = coarse.shape
    return np.asarray(cv2.resize(coarse, (2 * columns, 2 * rows), interpolation=cv2.INTER_LINEAR), dtype=np.float32)
