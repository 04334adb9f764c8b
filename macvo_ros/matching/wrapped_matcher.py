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

"""A matcher around another one: what it does not do otherwise, the other does."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from macvo_ros.images.frame import StereoFrame
from macvo_ros.matching.matcher import Match, Matcher, PointMatches, Prediction
from macvo_ros.uncertainty.row_field import RowField


class WrappedMatcher:
    """`Matcher` that says and does what `wrapped` does; to be derived from."""

    def __init__(self, matcher: Matcher) -> None:
        self.name = matcher.name
        self.device = matcher.device
        self.work_pixels = matcher.work_pixels
        self.uses_prediction = matcher.uses_prediction
        self.disparity_correlation = matcher.disparity_correlation
        self.flow_correlation = matcher.flow_correlation
        self.wrapped = matcher

    def begin(self, current: StereoFrame) -> None:
        """See `Matcher.begin`."""
        self.wrapped.begin(current)

    def match(self, reference: StereoFrame | None, current: StereoFrame, prediction: Prediction | None = None) -> Match:
        """See `Matcher.match`."""
        return self.wrapped.match(reference, current, prediction)

    def refine(
        self,
        reference: StereoFrame,
        reference_match: Match,
        current: StereoFrame,
        match: Match,
        pixel: npt.NDArray[np.float64],
        rows: RowField | None = None,
    ) -> PointMatches:
        """See `Matcher.refine`."""
        return self.wrapped.refine(reference, reference_match, current, match, pixel, rows)

    def reset(self) -> None:
        """See `Matcher.reset`."""
        self.wrapped.reset()
