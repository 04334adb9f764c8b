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

"""A rectified stereo camera: one pinhole model for both images, and the baseline between them."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from macvo_ros.errors import CalibrationError

Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True)
class StereoCamera:
    """Rectified stereo pair.

    fx, fy, cx, cy: pixels, of the left image and (up to cx_right) the right one. Integer coordinates are pixel
    centres (OpenCV, ROS): the image spans -0.5 .. width - 0.5.
    baseline: metres, positive, right camera on the +x side of the left optical frame.
    width, height: pixels.
    cx_right: pixels, where it differs from cx (a rectification with shifted principal points); depth is
    fx * baseline / (disparity - (cx - cx_right)).
    """

    fx: float
    fy: float
    cx: float
    cy: float
    baseline: float
    width: int
    height: int
    cx_right: float | None = None

    def __post_init__(self) -> None:
        for name in ("fx", "fy"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise CalibrationError(
                    f"camera {name} must be a positive number of pixels, got {value!r}; check the calibration"
                )
        for name in ("cx", "cy", "cx_right"):
            value = getattr(self, name)
            if value is not None and not math.isfinite(value):
                raise CalibrationError(
                    f"camera {name} must be a number of pixels, got {value!r}; check the calibration"
                )
        if self.width < 1 or self.height < 1:
            raise CalibrationError(
                f"image size must be positive, got {self.width}x{self.height}; give the size of the rectified images"
            )
        if not math.isfinite(self.baseline) or self.baseline == 0:
            raise CalibrationError(
                f"stereo baseline must be a positive number of metres, got {self.baseline!r}; "
                "the right camera's P[3] should be -fx * baseline"
            )
        if self.baseline < 0:
            raise CalibrationError(
                f"stereo baseline is negative ({self.baseline:.4f} m): left and right cameras are swapped; "
                "exchange the topics or files"
            )

    @classmethod
    def from_projection(
        cls, P_left: npt.ArrayLike, P_right: npt.ArrayLike, width: int, height: int, *, tolerance: float = 0.5
    ) -> StereoCamera:
        """The camera behind two projection matrices, as CameraInfo.P and KITTI calib files give them.

        P_left, P_right: (3, 4) or 12 row-major numbers, P = K [I | t], pixels and pixels * metres.
        width, height: pixels, of the images both matrices belong to.
        tolerance: pixels, by which fx, fy and cy of the two may differ before they are no rectified pair.

        The baseline is t_left.x - t_right.x, which is (P_left[3] - P_right[3]) / fx when P[11] is 0 (every
        CameraInfo). KITTI's colour cameras sit millimetres ahead of camera 0 and have P[11] = t.z there; taking
        t.x = (P[3] - cx P[11]) / fx keeps that from shortening the baseline by 0.2 %.
        """
        left, right = _projection(P_left, "left"), _projection(P_right, "right")
        for name, at in (("fx", (0, 0)), ("fy", (1, 1)), ("cy", (1, 2))):
            if abs(left[at] - right[at]) > tolerance:
                raise CalibrationError(
                    f"left and right cameras differ in {name} ({left[at]:.3f} and {right[at]:.3f} pixels), so the pair "
                    "is not rectified; use the rectified topics or files, or rectify first"
                )
        try:
            between = np.linalg.solve(left[:, :3], left[:, 3]) - np.linalg.solve(right[:, :3], right[:, 3])
        except np.linalg.LinAlgError:
            raise CalibrationError("the projection matrices cannot be inverted; check the calibration") from None
        if abs(between[1]) > 0.1 * abs(between[0]) and abs(between[1]) > 1e-3:
            raise CalibrationError(
                f"the cameras are {between[0]:.4f} m apart along x and {between[1]:.4f} m along y; expected a "
                "horizontal stereo pair, whose right P[7] equals the left's"
            )
        fx, fy, cx, cy = (float(left[at]) for at in ((0, 0), (1, 1), (0, 2), (1, 2)))
        cx_right = float(right[0, 2])
        return cls(fx, fy, cx, cy, float(between[0]), width, height, None if cx_right == cx else cx_right)

    @property
    def disparity_offset(self) -> float:
        """Disparity of a point at infinity, pixels: cx - cx_right."""
        return 0.0 if self.cx_right is None else self.cx - self.cx_right

    @property
    def K(self) -> Float64:
        """(3, 3) left intrinsic matrix, pixels."""
        return np.array([[self.fx, 0.0, self.cx], [0.0, self.fy, self.cy], [0.0, 0.0, 1.0]])

    @property
    def P_left(self) -> Float64:
        """(3, 4) left projection matrix."""
        return np.column_stack([self.K, np.zeros(3)])

    @property
    def P_right(self) -> Float64:
        """(3, 4) right projection matrix, P[0, 3] = -fx * baseline."""
        P = self.P_left
        P[0, 2] -= self.disparity_offset
        P[0, 3] = -self.fx * self.baseline
        return P

    def depth(self, disparity: npt.ArrayLike) -> Float64:
        """Depth in metres of disparities in pixels, any shape; inf at or beyond infinity, nan for nan."""
        shift = np.asarray(disparity, dtype=np.float64) - self.disparity_offset
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(shift <= 0, np.inf, self.fx * self.baseline / shift)

    def disparity(self, depth: npt.ArrayLike) -> Float64:
        """Disparity in pixels of positive depths in metres, any shape."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.fx * self.baseline / np.asarray(depth, dtype=np.float64) + self.disparity_offset

    def resized(self, width: int, height: int) -> StereoCamera:
        """The camera of the images resized to width x height pixels, as cv2.resize does it.

        Image edges map to image edges, so a pixel centre x goes to (x + 0.5) * scale - 0.5, and so does cx.
        """
        if width < 1 or height < 1:
            raise CalibrationError(f"cannot resize to {width}x{height}; give a positive size")
        sx, sy = width / self.width, height / self.height
        return dataclasses.replace(
            self,
            fx=self.fx * sx,
            fy=self.fy * sy,
            cx=(self.cx + 0.5) * sx - 0.5,
            cy=(self.cy + 0.5) * sy - 0.5,
            cx_right=None if self.cx_right is None else (self.cx_right + 0.5) * sx - 0.5,
            width=width,
            height=height,
        )

    def cropped(self, x: int, y: int, width: int, height: int) -> StereoCamera:
        """The camera of image[y : y + height, x : x + width], both images cropped alike."""
        if x < 0 or y < 0 or width < 1 or height < 1 or x + width > self.width or y + height > self.height:
            raise CalibrationError(
                f"crop of {width}x{height} at ({x}, {y}) leaves the {self.width}x{self.height} image"
            )
        return dataclasses.replace(
            self,
            cx=self.cx - x,
            cy=self.cy - y,
            cx_right=None if self.cx_right is None else self.cx_right - x,
            width=width,
            height=height,
        )


def rays(camera: StereoCamera, pixel: Float64) -> Float64:
    """(N, 2) pixels to (N, 3) rays with z = 1: a point is depth times ray."""
    return np.column_stack(
        ((pixel[:, 0] - camera.cx) / camera.fx, (pixel[:, 1] - camera.cy) / camera.fy, np.ones(len(pixel)))
    )


def pixels(camera: StereoCamera, point: Float64) -> Float64:
    """(N, 2) pixels of the left image that (N, 3) points in front of it are seen at, metres: the inverse of `rays`."""
    return np.asarray(point[:, :2] / point[:, 2:] * (camera.fx, camera.fy) + (camera.cx, camera.cy))


def _projection(P: npt.ArrayLike, side: str) -> Float64:
    """(3, 4) float64 of a projection matrix, checked to be K [I | t] with a usable K."""
    try:
        matrix = np.asarray(P, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise CalibrationError(f"{side} projection matrix: expected 12 numbers, got {str(P)[:80]!r}") from None
    if matrix.size != 12:
        raise CalibrationError(f"{side} projection matrix: expected 12 numbers (3x4), got shape {matrix.shape}")
    matrix = matrix.reshape(3, 4)
    if not np.isfinite(matrix).all():
        raise CalibrationError(f"{side} projection matrix has values that are not finite; check the calibration")
    if matrix[0, 0] <= 0 or matrix[1, 1] <= 0:
        raise CalibrationError(
            f"{side} projection matrix has fx = {matrix[0, 0]:g} and fy = {matrix[1, 1]:g}; expected positive pixels: "
            "the camera is not calibrated, or its driver does not fill camera_info.p"
        )
    expected = np.array([[1, 0, 1], [0, 1, 1], [0, 0, 0]]) != 0
    skewed = np.abs(np.where(expected, 0, matrix[:, :3] - np.diag([0, 0, 1.0]))).max(axis=1)
    if (skewed > 1e-6 * np.array([matrix[0, 0], matrix[0, 0], 1.0])).any():  # pixels, pixels, and no unit
        raise CalibrationError(
            f"{side} projection matrix must be [fx 0 cx *; 0 fy cy *; 0 0 1 *] for a rectified camera, got "
            f"{matrix[:, :3].tolist()}; check that the numbers are row-major"
        )
    return matrix
