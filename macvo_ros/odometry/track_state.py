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

"""Where tracking stands between two frames: all that the odometry remembers of the frames before."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from macvo_ros.doubt.posterior import unusual
from macvo_ros.doubt.sound_frames import tail_of
from macvo_ros.images.frame import StereoFrame
from macvo_ros.matching.matcher import Match
from macvo_ros.odometry.attempt import Attempt, Expectation
from macvo_ros.odometry.camera_pair import CameraPair
from macvo_ros.odometry.pose_window import PoseWindow
from macvo_ros.odometry.status import Status
from macvo_ros.settings.config import DoubtConfig
from macvo_ros.uncertainty.error_correlation import DisparitySensitivity
from macvo_ros.uncertainty.motion_prior import ConstantVelocity
from macvo_ros.uncertainty.relative_motion import RelativeMotion
from macvo_ros.uncertainty.trajectory import PoseWithCovariance

Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Reference:
    """A frame to track against: what it showed, where it was, and how its disparity errors went into that.

    arrival: sensitivity of `place`, odom axes, to this frame's own disparity errors.
    before: stamp of the frame that the motion to here began at.
    predicted_from: the last frame whose place was measured, and that place, when `place` is only predicted from there.
    """

    frame: StereoFrame
    match: Match
    place: PoseWithCovariance
    arrival: DisparitySensitivity | None = None
    before: int | None = None
    predicted_from: tuple[StereoFrame, PoseWithCovariance] | None = None

    @property
    def last_measured(self) -> tuple[StereoFrame, PoseWithCovariance]:
        """The last frame whose place was measured, which may be this one, and that place."""
        return self.predicted_from or (self.frame, self.place)

    def as_previous(self, status: Status, fault: float = 0.0) -> PreviousFrame:
        """The reference as the previous frame."""
        stays = RelativeMotion(np.eye(4), np.zeros((6, 6)))
        return PreviousFrame(self.frame, self.place, stays, status, fault)


@dataclass(frozen=True, eq=False)
class PreviousFrame:
    """The previous frame, whatever it was worth: where it was, its motion from the reference (camera), its status.

    fault: what lasts of the doubt about it, or, where it was not even matched, about the last before it.
    """

    frame: StereoFrame
    place: PoseWithCovariance
    motion: RelativeMotion
    status: Status
    fault: float = 0.0


@dataclass(frozen=True, eq=False)
class Track:
    """Where tracking stands. tracked: stamp of the last measured frame. window: None where two frames are enough."""

    reference: Reference
    previous: PreviousFrame
    cameras: CameraPair
    velocity: ConstantVelocity
    window: PoseWindow | None
    tracked: int

    @property
    def motion_start(self) -> StereoFrame:
        """Where the motion that is published of the next frame begins: at the previous frame.

        After lost frames at the reference: it is the motion over the whole gap that is measured.
        """
        return self.reference.frame if self.previous.status is Status.LOST else self.previous.frame

    def expectation(self, frame: StereoFrame) -> Expectation:
        """What is thought of the next frame before it is looked at."""
        start = self.reference.frame
        seconds = frame.seconds_since(start)
        return Expectation(
            self.velocity.prior(seconds, self.velocity.staleness(start.stamp)),
            self.velocity.unknown(seconds),
            self.previous.fault,
            self.cameras.rectification.epipolar_variance,
            self.velocity.room((frame.stamp - max(start.stamp, self.tracked)) * 1e-9),
        )

    def predicted(self, earlier: StereoFrame, later: StereoFrame) -> RelativeMotion:
        """What the camera is thought to have done between two frames."""
        seconds = later.seconds_since(earlier)
        stale = self.velocity.staleness(earlier.stamp)
        return RelativeMotion(self.velocity.predict(seconds), self.velocity.covariance(seconds, stale))

    def knock(self, frame: StereoFrame, attempt: Attempt, config: DoubtConfig, matcher: str) -> Float64 | None:
        """(3,) what the right camera was turned by, where the rows of doubted frames have said so for a while."""
        if not attempt.stereo_at_fault:
            if attempt.status is not Status.LOST:  # else nothing is known of its rows
                self.cameras.row_knock.restart()
            return None

        def usual(figure: float) -> bool:
            return not unusual(config, tail_of(matcher, "epipolar_error", figure))

        return self.cameras.turned(frame, attempt.match, frame.seconds_since(self.previous.frame), usual)

    def end_window(self) -> None:
        """The window begins anew at the next sound frame."""
        if self.window is not None:
            self.window.reset()
