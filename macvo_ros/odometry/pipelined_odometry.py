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

"""Matching of the next frame while this one is optimized (the paper's multi-process row), with the same poses.

`PipelinedOdometry.track` hands back the estimate of the frame *before*: one frame of latency for the time of the
shorter of the two stages. Poses are those of `StereoOdometry` to the bit: a match made ahead is used only for the very
pair of frames it was made for, and only by matchers that do not look at the predicted motion.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

from macvo_ros.errors import ConfigError
from macvo_ros.images.frame import StereoFrame
from macvo_ros.images.work_size import reduced
from macvo_ros.matching.matcher import Match, Matcher, Prediction, make_matcher
from macvo_ros.matching.wrapped_matcher import WrappedMatcher
from macvo_ros.odometry.estimate import Estimate
from macvo_ros.odometry.stereo_odometry import StereoOdometry
from macvo_ros.settings.config import Config


class MatchAhead(WrappedMatcher):
    """A matcher that can be told which pair will be asked for next, and works on it in a thread of its own."""

    def __init__(self, matcher: Matcher) -> None:
        super().__init__(matcher)
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="macvo matching")
        self._prepared: list[tuple[StereoFrame | None, StereoFrame, Future[Match]]] = []

    def prepare(self, reference: StereoFrame | None, current: StereoFrame) -> None:
        """Start to match a pair that will probably be asked for; only the last two preparations are kept."""
        future = self._thread.submit(self.wrapped.match, reference, current)
        self._prepared = [*self._prepared[-1:], (reference, current, future)]

    def begin(self, current: StereoFrame) -> None:
        """See `Matcher.begin`; here `prepare` does so, and more."""

    def match(self, reference: StereoFrame | None, current: StereoFrame, prediction: Prediction | None = None) -> Match:
        """The prepared match if it was made for this pair, else a new one, after whatever is under way."""
        for prepared_reference, prepared_current, future in self._prepared:
            if prepared_reference is reference and prepared_current is current:
                return future.result()
        return self._thread.submit(self.wrapped.match, reference, current, prediction).result()

    def reset(self) -> None:
        """Forget cached frames; a match under way is finished first."""
        self._prepared = []
        self._thread.submit(self.wrapped.reset).result()

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown(wait=True, cancel_futures=True)


class PipelinedOdometry:
    """`StereoOdometry` one frame late and faster: for networks, where matching takes most of the time."""

    def __init__(
        self,
        config: Config | None = None,
        base_from_camera: npt.NDArray[np.float64] | None = None,
        matcher: Matcher | None = None,
    ) -> None:
        """See `StereoOdometry`."""
        config = config or Config()
        matcher = matcher or make_matcher(config)
        if matcher.uses_prediction:
            raise ConfigError(
                f"pipelined: the {config.matcher} matcher starts from the predicted motion, which is not known ahead; "
                "set pipelined to false, or classic.seeded to false"
            )
        self._ahead = MatchAhead(matcher)
        self._odometry = StereoOdometry(config, base_from_camera, self._ahead)
        self._waiting: StereoFrame | None = None

    @property
    def config(self) -> Config:
        """Settings; the live ones may be replaced between two frames."""
        return self._odometry.config

    @config.setter
    def config(self, config: Config) -> None:
        self._odometry.config = config

    @property
    def base_from_camera(self) -> npt.NDArray[np.float64]:
        """(4, 4) pose of the left optical frame in the base frame, metres; to be changed only before a reset."""
        return self._odometry.base_from_camera

    @base_from_camera.setter
    def base_from_camera(self, pose: npt.NDArray[np.float64]) -> None:
        self._odometry.base_from_camera = pose

    def track(self, frame: StereoFrame) -> Estimate | None:
        """Take a frame; returns the estimate of the frame before it (see `Estimate.frame`), None for the first."""
        frame = reduced(self.masked(frame), self._ahead.work_pixels)
        waiting, self._waiting = self._waiting, frame
        self._ahead.prepare(waiting, frame)
        return None if waiting is None else self._odometry.track(waiting)

    def masked(self, frame: StereoFrame) -> StereoFrame:
        """See `StereoOdometry.masked`."""
        return self._odometry.masked(frame)

    def flush(self) -> Estimate | None:
        """The estimate of the last frame, which no further one has pushed out."""
        waiting, self._waiting = self._waiting, None
        return None if waiting is None else self._odometry.track(waiting)

    def reset(
        self, pose: npt.NDArray[np.float64] | None = None, covariance: npt.NDArray[np.float64] | None = None
    ) -> None:
        """See `StereoOdometry.reset`; a frame that waits is forgotten."""
        self._waiting = None
        self._odometry.reset(pose, covariance)

    def close(self) -> None:
        """End the matching thread."""
        self._ahead.close()


def make_odometry(
    config: Config, base_from_camera: npt.NDArray[np.float64] | None = None
) -> StereoOdometry | PipelinedOdometry:
    """The odometry that the configuration asks for."""
    return (PipelinedOdometry if config.pipelined else StereoOdometry)(config, base_from_camera)
