"""The loop of the paper: match, select, covariance, pose, trajectory."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from macvo_ros.config import Config
from macvo_ros.estimate import Estimate
from macvo_ros.frame import StereoFrame


class StereoOdometry:
    """Stereo frames in, poses with covariance out. Knows nothing of ROS, files or displays."""

    def __init__(self, config: Config | None = None, base_from_camera: npt.NDArray[np.float64] | None = None) -> None:
        """base_from_camera: (4, 4) pose of the left optical frame in the base frame, metres; identity when None."""
        raise NotImplementedError

    def track(self, frame: StereoFrame) -> Estimate:
        """Track one frame. Never raises for bad content: a black image is a LOST estimate."""
        raise NotImplementedError

    def reset(
        self, pose: npt.NDArray[np.float64] | None = None, covariance: npt.NDArray[np.float64] | None = None
    ) -> None:
        """Forget everything and continue from `pose` (4, 4) of the base in odom with `covariance` (6, 6)."""
        raise NotImplementedError
