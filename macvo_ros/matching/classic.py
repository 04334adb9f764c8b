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

"""The `classic` matcher: semi-global matching along the rows for stereo, OpenCV's DIS flow for the temporal pair, with
a variance from forward-backward disagreement, brightness residual and texture. No network, no weights."""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt
import torch

from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.geometry.se3 import inverse
from macvo_ros.images.frame import Image, StereoFrame
from macvo_ros.images.mask import usable_pixels
from macvo_ros.matching.epipolar_error import RowCheck, check_rows
from macvo_ros.matching.flow_search import FlowSearch
from macvo_ros.matching.foreshortening import expected_foreshortening
from macvo_ros.matching.match_variance import Evidence, VarianceCoefficients, match_evidence
from macvo_ros.matching.matcher import FlowMatch, Match, PointMatches, Prediction, StereoMatch, look_up
from macvo_ros.matching.patch_refinement import RefinedCoefficients, refine_matches
from macvo_ros.matching.rigid_flow import rigid_flow
from macvo_ros.matching.stereo_rows import rows_of
from macvo_ros.matching.stereo_search import disparity_range, search_rows
from macvo_ros.settings.config import ClassicConfig
from macvo_ros.uncertainty.error_correlation import ErrorCorrelation
from macvo_ros.uncertainty.row_field import RowField

Float32 = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.float64]

_PRESETS = {
    "ultrafast": cv2.DISOPTICAL_FLOW_PRESET_ULTRAFAST,
    "fast": cv2.DISOPTICAL_FLOW_PRESET_FAST,
    "medium": cv2.DISOPTICAL_FLOW_PRESET_MEDIUM,
}

_MIN_LIKENESS = 0.4
"""Normalised correlation below which two patches are taken for unrelated (those reach 0.2 +- 0.1 after refinement)."""

# Fitted on rendered scenes by bench/calibrate_classic.py.
STEREO_VARIANCE = VarianceCoefficients(floor=0.01, disagreement=0.51, patch=0.83, bend=1.30)
FLOW_VARIANCE = VarianceCoefficients(floor=0.01, disagreement=0.71, patch=0.54, bend=1.57)
REFINED_STEREO_VARIANCE = RefinedCoefficients(floor=0.01, patch=1.58, dense=0.38)
REFINED_FLOW_VARIANCE = RefinedCoefficients(floor=0.01, patch=1.26, dense=0.91)


class ClassicMatcher:
    """Search along rows and dense inverse search on grey images, on the CPU."""

    name = "classic"
    disparity_correlation = ErrorCorrelation(share=0.67, length=10)
    flow_correlation = ErrorCorrelation(share=0.62, length=11)

    def __init__(self, config: ClassicConfig, min_depth: float = 0.0, work_pixels: int = 0) -> None:
        """min_depth: metres, nothing is nearer (`stereo.min_depth`); work_pixels: see `Matcher`."""
        self.work_pixels = work_pixels
        self._min_depth = min_depth
        self.device = torch.device("cpu")
        self.uses_prediction = config.seeded
        self._config = config
        self._search = FlowSearch(lambda: cv2.DISOpticalFlow.create(_PRESETS[config.preset]))

    def reset(self) -> None:
        """See `Matcher.reset`: nothing is kept."""

    def begin(self, current: StereoFrame) -> None:
        """See `Matcher.begin`: nothing starts before it is asked for."""

    def match(self, reference: StereoFrame | None, current: StereoFrame, prediction: Prediction | None = None) -> Match:
        """See `Matcher.match`. The prediction seeds the temporal flow where `classic.seeded` is on."""
        left, right = current.grey
        usable = usable_pixels(current, *_half(current.camera))
        disparity, evidence, row_check = self.match_stereo(left, right, current.camera, usable)
        disparity_var = np.ascontiguousarray(evidence.variance(STEREO_VARIANCE)[..., 0])
        stereo = StereoMatch(torch.from_numpy(disparity), torch.from_numpy(disparity_var), lambda: row_check)
        if reference is None:
            return Match(stereo)

        earlier, _ = reference.grey
        seed = back_seed = None
        if prediction is not None and self._config.seeded:
            seed = rigid_flow(current.camera, prediction.disparity.numpy(), prediction.motion)
            back_seed = rigid_flow(current.camera, disparity, inverse(prediction.motion))
        flow = self._search.flow(earlier, left, seed)
        backward = self._search.flow(left, earlier, back_seed)
        flow_var = match_evidence(earlier, left, flow, backward).variance(FLOW_VARIANCE)
        found, found_var = (torch.from_numpy(np.ascontiguousarray(a.transpose(2, 0, 1))) for a in (flow, flow_var))
        expected = prediction.motion if prediction is not None and self.uses_prediction else None
        return Match(stereo, FlowMatch(found, found_var, motion=expected))

    def refine(
        self,
        reference: StereoFrame,
        reference_match: Match,
        current: StereoFrame,
        match: Match,
        pixel: Float64,
        rows: RowField | None = None,
    ) -> PointMatches:
        """Sub-pixel refinement of the three matches behind each keypoint; variances follow the refined patches.

        Keypoints whose patches do not look alike are left out: a dense match follows its seed even into noise.
        """
        assert match.flow is not None
        points = look_up(pixel, reference_match, match).in_full_image(reference)
        earlier, earlier_right = reference.full.grey
        left, right = current.full.grey
        dense = np.ascontiguousarray(match.flow.numpy().transpose(1, 2, 0))
        to_right = -reference_match.disparity.numpy()[..., None]
        assert match.temporal is not None
        perspective = expected_foreshortening(reference, match.temporal.motion, to_right, points.pixel)
        flow = refine_matches(earlier, left, dense, points.pixel, axes=2, foreshortening=perspective)
        matched = points.pixel + flow.displacement
        row = rows_of(rows, reference, to_right, points.pixel)
        before = refine_matches(earlier, earlier_right, to_right, points.pixel, axes=1, rows=row)
        to_right = -match.disparity.numpy()[..., None]
        row = rows_of(rows, current, to_right, matched)
        after = refine_matches(left, right, to_right, matched, axes=1, rows=row)
        alike = np.minimum(np.minimum(flow.likeness, before.likeness), after.likeness) > _MIN_LIKENESS
        if not self._config.refine:
            return points.subset(alike)
        return PointMatches(
            pixel=points.pixel,
            disparity=-before.displacement[:, 0],
            disparity_var=REFINED_STEREO_VARIANCE.variance(points.disparity_var[:, None], before)[:, 0],
            flow=flow.displacement,
            flow_var=REFINED_FLOW_VARIANCE.variance(points.flow_var, flow),
            matched_disparity=-after.displacement[:, 0],
            matched_disparity_var=REFINED_STEREO_VARIANCE.variance(points.matched_disparity_var[:, None], after)[:, 0],
        ).subset(alike)

    def match_stereo(
        self, left: Image, right: Image, camera: StereoCamera, usable: Image | None = None
    ) -> tuple[Float32, Evidence, RowCheck]:
        """(H, W) disparity of grey images, what speaks against it, and how far it leaves its rows (`Match`).

        Searched at half the size; refinement at the keypoints makes up for it. usable: `check_rows`.
        """
        size = _half(camera)
        small = [cv2.resize(image, size, interpolation=cv2.INTER_AREA) for image in (left, right)]
        scale = camera.width / size[0]  # not quite two where the width is odd
        lowest, highest = (limit / scale for limit in disparity_range(camera, self._min_depth))
        there = search_rows(small[0], small[1], lowest, highest)
        # Mirrored, the right image is the left one of a pair with the same disparities.
        mirrored = search_rows(small[1][:, ::-1], small[0][:, ::-1], lowest, highest)
        full = (camera.width, camera.height)
        disparity, back = (
            np.asarray(cv2.resize(np.float32(scale) * half, full, interpolation=cv2.INTER_LINEAR), dtype=np.float32)
            for half in (there.disparity, np.ascontiguousarray(mirrored.disparity[:, ::-1]))
        )
        evidence = match_evidence(left, right, _along_rows(-disparity), _along_rows(back))
        return disparity, evidence, check_rows(small[0], small[1], there, scale, usable)


def _half(camera: StereoCamera) -> tuple[int, int]:
    """Columns and rows of the images that are searched along the rows."""
    return max(camera.width // 2, 1), max(camera.height // 2, 1)


def _along_rows(displacement: Float32) -> Float32:
    """(H, W, 2) flow of an (H, W) displacement along rows."""
    return np.stack((displacement, np.zeros_like(displacement)), axis=-1)
