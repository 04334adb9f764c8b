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

"""From a pair of sensor_msgs/CameraInfo to frames: the same code for the live node and for bags."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from macvo_ros.errors import CalibrationError
from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.geometry.rectification import RawCamera, RawStereoCalibration, StereoRectifier
from macvo_ros.images.frame import Image, StereoFrame

Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CameraInfo:
    """The fields of a sensor_msgs/CameraInfo that matter, of ROS 1 or ROS 2.

    D: distortion coefficients, K: (9,), R: (9,), P: (12,), row-major as in the message; frame_id: of its header.
    """

    width: int
    height: int
    model: str
    D: Float64
    K: Float64
    R: Float64
    P: Float64
    frame_id: str = ""

    @classmethod
    def from_message(cls, message: Any) -> CameraInfo:
        """Read a message of any client library: ROS 2 calls the matrices d k r p, ROS 1 D K R P."""
        lower = hasattr(message, "p")
        D, K, R, P = (
            np.array(getattr(message, name if lower else name.upper()), dtype=np.float64)
            for name in ("d", "k", "r", "p")
        )
        model, frame_id = str(message.distortion_model), str(message.header.frame_id)
        return cls(int(message.width), int(message.height), model, D, K, R, P, frame_id)

    def same_calibration(self, other: CameraInfo) -> bool:
        """Whether both describe the same camera at the same size (frame names aside)."""
        return (self.width, self.height, self.model) == (other.width, other.height, other.model) and all(
            np.array_equal(getattr(self, name), getattr(other, name), equal_nan=True) for name in ("D", "K", "R", "P")
        )

    def raw_camera(self) -> RawCamera:
        """The lens and sensor behind the raw image."""
        return RawCamera(self.K, self.D, self.model, self.width, self.height)


class StereoInput:
    """Makes frames of decoded image pairs with the calibration at hand, rectifying where it has to.

    camera: of the frames it makes. rectifier: None when the images come rectified.
    """

    def __init__(self, camera: StereoCamera, rectifier: StereoRectifier | None = None) -> None:
        """Use one of the class methods; they take what callers have."""
        self.camera = camera
        self.rectifier = rectifier

    @classmethod
    def from_camera_info(cls, left: CameraInfo, right: CameraInfo, *, rectify: bool) -> StereoInput:
        """From a pair of camera_info: of rectified images only P is read, of raw ones (rectify) K, D, R and P.

        Drivers fill D on rectified topics too (ZED), and only P in KITTI odometry bags.
        """
        if (left.width, left.height) != (right.width, right.height):
            raise CalibrationError(
                f"left camera_info is {left.width}x{left.height} but right is {right.width}x{right.height}; "
                "both cameras must give the same size"
            )
        if not rectify:
            return cls(StereoCamera.from_projection(left.P, right.P, left.width, left.height))
        rectifier = StereoRectifier.from_camera_info(
            left.raw_camera(), right.raw_camera(), R_left=left.R, R_right=right.R, P_left=left.P, P_right=right.P
        )
        return cls(rectifier.camera, rectifier)

    @classmethod
    def from_calibration(cls, calibration: StereoCamera | RawStereoCalibration) -> StereoInput:
        """From what `load_calibration` reads of a file: a rectified camera, or a raw pair to rectify."""
        if isinstance(calibration, StereoCamera):
            return cls(calibration)
        rectifier = StereoRectifier.from_calibration(calibration)
        return cls(rectifier.camera, rectifier)

    @property
    def image_size(self) -> tuple[int, int]:
        """(height, width) the images must have before rectification: that of both, since maps keep the size."""
        return self.camera.height, self.camera.width

    @property
    def raw_from_rectified(self) -> Float64:
        """(4, 4) pose of the rectified left camera in the raw one, whose name the image header carries.

        The odometry tracks the rectified camera: base_from_camera is TF's base_from_raw times this.
        """
        pose = np.eye(4)
        if self.rectifier is not None:
            pose[:3, :3] = self.rectifier.R_left.T
        return pose

    def frame(self, left: Image, right: Image, stamp: int) -> StereoFrame:
        """The frame of a decoded pair, (H, W) grey or (H, W, 3) RGB uint8; stamp in nanoseconds."""
        if left.ndim != right.ndim:  # one eye grey and one in colour: grey is what they share
            left, right = _grey(left), _grey(right)
        if self.rectifier is not None:
            left, right = self.rectifier.apply(left, right)
        return StereoFrame(left, right, stamp, self.camera)


def _grey(image: Image) -> Image:
    if image.ndim == 2:
        return image
    weights = np.array([77, 150, 29], np.uint32)  # ITU-R 601, in 256ths
    return ((image @ weights) >> 8).astype(np.uint8)
