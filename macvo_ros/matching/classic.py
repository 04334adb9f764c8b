"""The `classic` matcher: OpenCV's DIS flow for both pairs, with a variance from forward-backward disagreement,
brightness residual and texture. No network, no weights."""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt
import torch

from macvo_ros.config import ClassicConfig
from macvo_ros.error_correlation import ErrorCorrelation
from macvo_ros.frame import Image, StereoFrame
from macvo_ros.matching.match_variance import VarianceCoefficients, match_evidence
from macvo_ros.matching.matcher import Match, PointMatches, Prediction
from macvo_ros.matching.patch_refinement import refine_matches
from macvo_ros.matching.rigid_flow import rigid_flow
from macvo_ros.se3 import inverse

Float32 = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.float64]

_PRESETS = {
    "ultrafast": cv2.DISOPTICAL_FLOW_PRESET_ULTRAFAST,
    "fast": cv2.DISOPTICAL_FLOW_PRESET_FAST,
    "medium": cv2.DISOPTICAL_FLOW_PRESET_MEDIUM,
}

# Fitted on rendered scenes by bench/calibrate_classic.py.
STEREO_VARIANCE = VarianceCoefficients(floor=0.05, disagreement=0.7, patch=1.0)
FLOW_VARIANCE = VarianceCoefficients(floor=0.05, disagreement=0.7, patch=1.0)
REFINED_STEREO_VARIANCE = VarianceCoefficients(floor=0.03, disagreement=0.3, patch=1.0)
REFINED_FLOW_VARIANCE = VarianceCoefficients(floor=0.03, disagreement=0.3, patch=1.0)


class ClassicMatcher:
    """Dense inverse search on grey images, on the CPU."""

    disparity_correlation = ErrorCorrelation(share=0.3, length=30.0)
    flow_correlation = ErrorCorrelation(share=0.3, length=30.0)

    def __init__(self, config: ClassicConfig) -> None:
        self.device = torch.device("cpu")
        self._config = config
        self._dis = cv2.DISOpticalFlow.create(_PRESETS[config.preset])
        self._grey: dict[int, tuple[StereoFrame, Image, Image]] = {}

    def reset(self) -> None:
        """Forget the grey images of earlier frames."""
        self._grey.clear()

    def match(self, reference: StereoFrame | None, current: StereoFrame, prediction: Prediction | None = None) -> Match:
        """See `Matcher.match`. The prediction seeds the temporal flow where `classic.seeded` is on."""
        self._forget_all_but(reference, current)
        left, right = self._greys(current)
        to_right = self._dis.calc(left, right, None)
        to_left = self._dis.calc(right, left, None)
        evidence = match_evidence(left, right, to_right, to_left)
        # Rectified images match along rows: any vertical component is an error of the match.
        evidence.disagreement2[..., 0] += np.square(to_right[..., 1])
        disparity = np.ascontiguousarray(-to_right[..., 0])
        disparity_var = np.ascontiguousarray(evidence.variance(STEREO_VARIANCE)[..., 0])
        if reference is None:
            return Match(torch.from_numpy(disparity), torch.from_numpy(disparity_var))

        earlier, _ = self._greys(reference)
        seed = back_seed = None
        if prediction is not None and self._config.seeded:
            seed = rigid_flow(current.camera, prediction.disparity.numpy(), prediction.motion)
            back_seed = rigid_flow(current.camera, disparity, inverse(prediction.motion))
        flow = self._dis.calc(earlier, left, seed)
        backward = self._dis.calc(left, earlier, back_seed)
        flow_var = match_evidence(earlier, left, flow, backward).variance(FLOW_VARIANCE)
        return Match(
            torch.from_numpy(disparity),
            torch.from_numpy(disparity_var),
            torch.from_numpy(np.ascontiguousarray(flow.transpose(2, 0, 1))),
            torch.from_numpy(np.ascontiguousarray(flow_var.transpose(2, 0, 1))),
        )

    def refine(
        self, reference: StereoFrame, reference_match: Match, current: StereoFrame, match: Match, points: PointMatches
    ) -> PointMatches:
        """Sub-pixel refinement of the three matches behind each keypoint; variances follow the refined patches."""
        if not self._config.refine or match.flow is None:
            return points
        earlier, earlier_right = self._greys(reference)
        left, right = self._greys(current)
        dense = np.ascontiguousarray(match.flow.numpy().transpose(1, 2, 0))
        flow = refine_matches(earlier, left, dense, points.pixel, axes=2)
        flow_var = _refined_variance(points.flow_var, flow.patch_var, flow.ok, FLOW_VARIANCE, REFINED_FLOW_VARIANCE)
        matched = points.pixel + points.flow + flow.shift
        before = refine_matches(
            earlier, earlier_right, -reference_match.disparity.numpy()[..., None], points.pixel, axes=1
        )
        after = refine_matches(left, right, -match.disparity.numpy()[..., None], matched, axes=1)
        stereo = (STEREO_VARIANCE, REFINED_STEREO_VARIANCE)
        return PointMatches(
            pixel=points.pixel,
            disparity=points.disparity - before.shift[:, 0],
            disparity_var=_refined_variance(points.disparity_var, before.patch_var[:, 0], before.ok, *stereo),
            flow=points.flow + flow.shift,
            flow_var=flow_var,
            matched_disparity=points.matched_disparity - after.shift[:, 0],
            matched_disparity_var=_refined_variance(
                points.matched_disparity_var, after.patch_var[:, 0], after.ok, *stereo
            ),
        )

    def _greys(self, frame: StereoFrame) -> tuple[Image, Image]:
        entry = self._grey.get(id(frame))
        if entry is None:
            entry = self._grey[id(frame)] = (frame, _grey(frame.left), _grey(frame.right))
        return entry[1], entry[2]

    def _forget_all_but(self, *frames: StereoFrame | None) -> None:
        keep = {id(frame) for frame in frames if frame is not None}
        self._grey = {key: entry for key, entry in self._grey.items() if key in keep}


def _grey(image: Image) -> Image:
    return image if image.ndim == 2 else np.asarray(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY))


def _refined_variance(
    dense: Float64, patch: Float64, ok: npt.NDArray[np.bool_], before: VarianceCoefficients, after: VarianceCoefficients
) -> Float64:
    """Variance after refinement; where it failed, that of the dense match."""
    refined = after.floor**2 + after.patch**2 * patch + (after.disagreement / before.disagreement) ** 2 * dense
    return np.where(ok if dense.ndim == 1 else ok[:, None], refined, dense)
