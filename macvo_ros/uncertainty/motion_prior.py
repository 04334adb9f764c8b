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

"""What a robot may have done between two frames, before anything is measured."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from macvo_ros.geometry.se3 import exp_so3, log_so3, transform
from macvo_ros.settings.config import MotionPriorConfig

Float64 = npt.NDArray[np.float64]


_COAST = 5.0
"""Seconds over which a velocity is continued: after a pause or a jump of the clock by an hour the pose stays near. What
it may have moved meanwhile is the covariance's to say, which grows on."""
_FINEST = 1e-3
"""Metres and radians that no prediction is better than. In a time in which a robot moves less, no velocity is measured:
two stamps a microsecond apart would make one of thousands of metres a second."""
_MISS_KEPT = 0.5
"""Share of the squared error of earlier predictions that still counts after another one."""


@dataclass(frozen=True, eq=False)
class MotionPrior:
    """Gaussian prior on the motion: (4, 4) mean and (6, 6) information of [dt, dtheta] in reference axes."""

    motion: Float64
    information: Float64


class ConstantVelocity:
    """Predicts motions from the last measured velocity, with a covariance that grows with the time since then.

    A prediction is trusted no more than those before it deserved: where stamps jitter, a velocity is the motion over
    a wrong time, and the prediction is off by far more than any acceleration explains.
    """

    def __init__(self, config: MotionPriorConfig, *, static: bool = False) -> None:
        """static: always predict that nothing moves (`pose.initial_motion: static`)."""
        self._config = config
        self._static = static
        self.reset()

    def reset(self) -> None:
        """Forget the velocity."""
        self._velocity: Float64 | None = None
        self._observed = 0
        self._seconds = 0.0
        self._missed = np.zeros(2)
        self._missed_rate = np.zeros(2)

    @property
    def known(self) -> bool:
        """Whether a velocity has been measured."""
        return self._velocity is not None

    def staleness(self, stamp: int) -> float:
        """Seconds from the last observed velocity to a stamp (nanoseconds); 0 where none is known."""
        return max(0.0, (stamp - self._observed) * 1e-9) if self.known else 0.0

    def observe(self, motion: Float64, seconds: float, stamp: int = 0) -> None:
        """Take the velocity of a measured (4, 4) camera motion over so many seconds up to a stamp (nanoseconds)."""
        if seconds > _FINEST / self._config.speed:
            self.compare(motion, seconds)
            self._observed = stamp
            self._velocity = np.concatenate((motion[:3, 3], log_so3(motion[:3, :3]))) / seconds
            self._seconds = seconds

    def compare(self, motion: Float64, seconds: float) -> None:
        """Learn from a (4, 4) motion how wrong predictions may be, but no velocity: it may not be the camera's."""
        if self._velocity is None or self._static or not seconds > 0:
            return
        mean = self.predict(seconds)
        off = np.array([_norm(motion[:3, 3] - mean[:3, 3]), _norm(log_so3(motion[:3, :3] @ mean[:3, :3].T))])
        rate = off / max(seconds, self._seconds)
        self._missed = np.maximum(off, _MISS_KEPT**0.5 * self._missed)
        self._missed_rate = np.maximum(rate, _MISS_KEPT**0.5 * self._missed_rate)

    def predict(self, seconds: float) -> Float64:
        """(4, 4) motion over `seconds` from the last observation; nobody keeps a velocity for longer than _COAST."""
        if self._velocity is None or self._static:
            return np.eye(4)
        seconds = min(seconds, _COAST)
        return transform(exp_so3(self._velocity[3:] * seconds), self._velocity[:3] * seconds)

    def covariance(self, seconds: float, stale: float = 0.0) -> Float64:
        """(6, 6) of the prediction: sigma = min(a (t^2 / 2 + s t), v t), or the whole speed where none is known.

        What the last predictions were off by is added, as an error of the stamp and as one of the velocity.
        stale: seconds s from the last observation to the start of the prediction, in which the velocity changed too.
        """
        c = self._config
        # The prediction takes the velocity of the middle of the last interval, half an interval before its end.
        lag = 1.5 * seconds
        spread = 0.5 * lag**2 + stale * seconds
        linear = min(c.acceleration * spread, c.speed * lag)
        angular = min(c.angular_acceleration * spread, c.angular_speed * lag, math.pi)
        if self._velocity is None:
            linear, angular = c.speed * seconds, min(c.angular_speed * seconds, math.pi)
        elif self._static:
            linear += float(np.linalg.norm(self._velocity[:3])) * seconds
            angular += float(np.linalg.norm(self._velocity[3:])) * seconds
        missed = np.hypot(self._missed, self._missed_rate * seconds)
        linear, angular = math.hypot(linear, missed[0]), min(math.hypot(angular, missed[1]), math.pi)
        linear, angular = max(linear, _FINEST), max(angular, _FINEST)
        return np.diag([linear**2] * 3 + [angular**2] * 3)

    def prior(self, seconds: float, stale: float = 0.0) -> MotionPrior:
        """The prediction as a term of the optimization; stale: as in `covariance`."""
        return MotionPrior(self.predict(seconds), np.diag(1.0 / self.covariance(seconds, stale).diagonal()))

    def unknown(self, seconds: float) -> MotionPrior:
        """The same without trust in the last velocity: anything at the speeds that a robot has."""
        c = self._config
        linear, angular = c.speed * seconds, min(c.angular_speed * seconds, math.pi)
        linear, angular = max(linear, _FINEST), max(angular, _FINEST)
        return MotionPrior(self.predict(seconds), np.diag([linear**-2] * 3 + [angular**-2] * 3))

    def room(self, seconds: float) -> float:
        """Cubic metres that a camera may come to in so many seconds at these speeds."""
        return (self._config.speed * seconds) ** 3


def _norm(vector: Float64) -> float:
    return float(np.linalg.norm(vector))
