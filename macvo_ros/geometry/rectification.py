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

"""From a raw stereo pair to a rectified one: lens models, rectifying rotations and the maps that apply them."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from macvo_ros.errors import CalibrationError, ImageError
from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.geometry.se3 import nearest_rotation

Float64 = npt.NDArray[np.float64]
Image = npt.NDArray[np.uint8]

PLUMB_BOB, RATIONAL, EQUIDISTANT = "plumb_bob", "rational_polynomial", "equidistant"
_ALIASES = {
    "radial-tangential": PLUMB_BOB,
    "radtan": PLUMB_BOB,
    "none": PLUMB_BOB,
    "": PLUMB_BOB,
    "rational": RATIONAL,
    "equi": EQUIDISTANT,
    "fisheye": EQUIDISTANT,
    "kannala_brandt4": EQUIDISTANT,
}
MAX_PIXELS = 1 << 26
"""Images beyond this are a broken calibration; their maps would eat the memory. Chosen."""
_COEFFICIENTS = {PLUMB_BOB: (4, 5), RATIONAL: (8, 12, 14), EQUIDISTANT: (4,)}


@dataclass(frozen=True, eq=False)
class RawCamera:
    """One camera with its lens, before rectification.

    K: (3, 3) intrinsics, pixels; a flat 9 or [fx, fy, cx, cy] is taken too.
    D: distortion coefficients in OpenCV's order: plumb_bob k1 k2 p1 p2 [k3], rational_polynomial k1 k2 p1 p2 k3
    k4 k5 k6 [s1..s4 [tx ty]], equidistant k1 k2 k3 k4. Empty is no distortion.
    model: plumb_bob, rational_polynomial or equidistant, or what EuRoC and Kalibr call them.
    """

    K: Float64
    D: Float64
    model: str
    width: int
    height: int

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        set_(self, "K", _intrinsics(self.K))
        set_(self, "model", _ALIASES.get(str(self.model).lower(), str(self.model).lower()))
        if self.model not in _COEFFICIENTS:
            raise CalibrationError(
                f"lens model {str(self.model)[:40]!r} is not known; expected one of {', '.join(_COEFFICIENTS)}"
            )
        if self.width < 1 or self.height < 1 or self.width * self.height > MAX_PIXELS:
            raise CalibrationError(
                f"image size must be positive and at most {MAX_PIXELS >> 20} megapixels, got {self.width}x{self.height}"
            )
        D = _numbers(self.D, "distortion coefficients").ravel()
        allowed = _COEFFICIENTS[self.model]
        if D.size > allowed[-1] and not D[allowed[-1] :].any():
            D = D[: allowed[-1]]  # some drivers pad with zeros
        if D.size not in (0, *allowed):
            raise CalibrationError(
                f"{self.model} takes {' or '.join(map(str, allowed))} distortion coefficients, got {D.size}; "
                "check the lens model"
            )
        set_(self, "D", D if D.size else np.zeros(allowed[0]))

    def undistort_maps(self, R: Float64, K_new: Float64, width: int, height: int) -> tuple[Image, Image]:
        """cv2.remap maps (fixed point) to an image of width x height seen by K_new after rotating the camera by R."""
        build = cv2.fisheye.initUndistortRectifyMap if self.model == EQUIDISTANT else cv2.initUndistortRectifyMap
        try:
            maps = build(self.K, self.D, R, K_new, (width, height), cv2.CV_16SC2)
        except cv2.error as error:
            raise _unusable(error) from None
        return maps[0], maps[1]


@dataclass(frozen=True, eq=False)
class RawStereoCalibration:
    """Two raw cameras and where they are: x_right = R x_left + T (OpenCV's stereoCalibrate), T in metres.

    R: (3, 3) rotation. T: (3,) metres; T[0] is about -baseline.
    """

    left: RawCamera
    right: RawCamera
    R: Float64
    T: Float64

    def __post_init__(self) -> None:
        R, T = _numbers(self.R, "rotation R"), _numbers(self.T, "translation T")
        if R.size != 9 or T.size != 3:
            raise CalibrationError(f"expected R of 9 numbers and T of 3, got {R.size} and {T.size}")
        object.__setattr__(self, "R", _rotation(R, "R between the cameras"))
        object.__setattr__(self, "T", T.reshape(3))
        sizes = [(camera.width, camera.height) for camera in (self.left, self.right)]
        if sizes[0] != sizes[1]:
            raise CalibrationError(
                f"left and right cameras have different sizes ({sizes[0][0]}x{sizes[0][1]} and "
                f"{sizes[1][0]}x{sizes[1][1]}); calibrate both at the size of the images"
            )
        if (self.left.model == EQUIDISTANT) != (self.right.model == EQUIDISTANT):
            raise CalibrationError(f"left lens is {self.left.model} but right lens is {self.right.model}; use one kind")
        if self.T[0] > 0 and abs(self.T[0]) > abs(self.T[1]):
            raise CalibrationError(
                f"the right camera lies {self.T[0]:.4f} m to the left of the left one: left and right are swapped, "
                "or T is not the left camera seen from the right one (x_right = R x_left + T)"
            )


class StereoRectifier:
    """Rectifies stereo pairs of one camera; maps are built once.

    camera: the rectified StereoCamera.
    R_left: (3, 3) rectifying rotation R1 of the left camera, x_rectified = R_left x_raw; the pose of the rectified
    left camera is that of the raw one times its transpose. R_right: (3, 3) the same of the right camera.
    """

    def __init__(
        self, left: RawCamera, right: RawCamera, R_left: Float64, R_right: Float64, camera: StereoCamera
    ) -> None:
        """R_left, R_right: (3, 3) rectifying rotations. camera: the view both are mapped to."""
        self.camera = camera
        self.R_left = _rotation(_numbers(R_left, "rectifying rotation"), "left rectifying rotation")
        self._raw_size = (left.height, left.width)
        size = (camera.width, camera.height)
        self._left = left.undistort_maps(self.R_left, camera.P_left[:, :3], *size)
        self.R_right = _rotation(_numbers(R_right, "rectifying rotation"), "right rectifying rotation")
        self._right = right.undistort_maps(self.R_right, camera.P_right[:, :3], *size)

    @classmethod
    def from_calibration(cls, calibration: RawStereoCalibration) -> StereoRectifier:
        """Choose rectifying rotations and a view of the same size.

        Pinhole lenses: the widest view without black borders (OpenCV's alpha = 0). Equidistant lenses: such a view
        would span up to 170 degrees and squeeze the middle of the image to a third of its resolution, so the focal
        length is not taken below the lens's own, which keeps the resolution in the middle.
        """
        left, right = calibration.left, calibration.right
        size = (left.width, left.height)
        # OpenCV 5 takes T only as a column.
        arguments = (left.K, left.D, right.K, right.D, size, calibration.R, calibration.T.reshape(3, 1))
        try:
            if left.model == EQUIDISTANT:
                R1, R2, P1, P2, _ = cv2.fisheye.stereoRectify(*arguments, flags=cv2.CALIB_ZERO_DISPARITY, balance=0.0)
            else:
                R1, R2, P1, P2 = cv2.stereoRectify(*arguments, flags=cv2.CALIB_ZERO_DISPARITY, alpha=0)[:4]
        except cv2.error as error:
            raise _unusable(error) from None
        camera = StereoCamera.from_projection(P1, P2, *size)
        if left.model == EQUIDISTANT:
            focal = max(camera.fx, float(np.mean([left.K[0, 0], left.K[1, 1], right.K[0, 0], right.K[1, 1]])))
            centre = (size[0] - 1) / 2, (size[1] - 1) / 2
            camera = StereoCamera(focal, focal, *centre, camera.baseline, *size)
        return cls(left, right, R1, R2, camera)

    @classmethod
    def from_camera_info(
        cls,
        left: RawCamera,
        right: RawCamera,
        *,
        R_left: npt.ArrayLike,
        R_right: npt.ArrayLike,
        P_left: npt.ArrayLike,
        P_right: npt.ArrayLike,
    ) -> StereoRectifier:
        """From the raw topics' CameraInfo pair: left and right hold K, D, model and size, R and P as in the message.

        The message already contains the rectification somebody chose, so it is followed to the letter.
        """
        if (left.width, left.height) != (right.width, right.height):
            raise CalibrationError(
                f"left camera_info is {left.width}x{left.height} but right is {right.width}x{right.height}; "
                "both cameras must publish the same size"
            )
        camera = StereoCamera.from_projection(P_left, P_right, left.width, left.height)
        return cls(left, right, _numbers(R_left, "left R"), _numbers(R_right, "right R"), camera)

    def apply(self, left: Image, right: Image) -> tuple[Image, Image]:
        """Rectify a raw pair, (H, W) or (H, W, 3) uint8.

        Each call returns arrays of its own: the odometry keeps references to earlier frames, so a shared output
        buffer would be overwritten under it.
        """
        rectified = []
        for name, image, maps in (("left", left, self._left), ("right", right, self._right)):
            if image.shape[:2] != self._raw_size:
                raise ImageError(
                    f"{name} image is {image.shape[1]}x{image.shape[0]} but the calibration is for "
                    f"{self._raw_size[1]}x{self._raw_size[0]}; use the calibration of these images"
                )
            rectified.append(cv2.remap(image, *maps, cv2.INTER_LINEAR))
        return rectified[0], rectified[1]


def _unusable(error: cv2.error) -> CalibrationError:
    reason = " ".join(str(error).split())[:120]
    return CalibrationError(f"images cannot be rectified with this calibration ({reason}); check K, D, R and T")


def _numbers(values: object, name: str) -> Float64:
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise CalibrationError(f"{name}: expected numbers, got {str(values)[:80]!r}") from None
    if not np.isfinite(array).all():
        raise CalibrationError(f"{name}: expected finite numbers, got {str(values)[:80]!r}")
    return array


def _intrinsics(values: object) -> Float64:
    K = _numbers(values, "intrinsics K")
    if K.size == 4:
        fx, fy, cx, cy = K.ravel()
        K = np.array([[fx, 0, cx], [0, fy, cy], [0, 0, 1.0]])
    if K.size != 9:
        raise CalibrationError(f"intrinsics K: expected 9 numbers (3x3) or [fx, fy, cx, cy], got {K.size} numbers")
    K = K.reshape(3, 3)
    if K[0, 0] <= 0 or K[1, 1] <= 0 or K[1, 0] != 0 or (K[2] != (0, 0, 1)).any():
        raise CalibrationError(
            f"intrinsics K must be [fx 0 cx; 0 fy cy; 0 0 1] with fx, fy > 0, got {K.tolist()}; "
            "the camera is not calibrated"
        )
    return K


def _rotation(values: Float64, name: str) -> Float64:
    """(3, 3) rotation nearest to 9 numbers that are one up to rounding."""
    if values.size != 9:
        raise CalibrationError(f"{name}: expected 9 numbers (3x3), got {values.size}")
    R = values.reshape(3, 3)
    if np.abs(R @ R.T - np.eye(3)).max() > 1e-2 or np.linalg.det(R) < 0:
        raise CalibrationError(f"{name} is not a rotation ({R.tolist()}); check the calibration")
    return nearest_rotation(R)
