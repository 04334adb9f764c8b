"""A rectified stereo camera: one pinhole model for both images, and the baseline between them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from macvo_ros.errors import CalibrationError

Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True)
class StereoCamera:
    """Rectified stereo pair.

    fx, fy, cx, cy: pixels, of the left image and (up to cx_right) the right one.
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
        for name in ("cx", "cy"):
            if not math.isfinite(getattr(self, name)):
                raise CalibrationError(f"camera {name} must be a number of pixels, got {getattr(self, name)!r}")
        if self.width < 1 or self.height < 1:
            raise CalibrationError(f"image size must be positive, got {self.width}x{self.height}")
        if not math.isfinite(self.baseline) or self.baseline == 0:
            raise CalibrationError(
                f"stereo baseline must be a positive number of metres, got {self.baseline!r}; "
                "the right camera's P[3] should be -fx * baseline"
            )
        if self.baseline < 0:
            raise CalibrationError(
                f"stereo baseline is negative ({self.baseline:.4f} m): left and right cameras are swapped; exchange the topics or files"
            )

    @property
    def disparity_offset(self) -> float:
        """Disparity of a point at infinity, pixels: cx - cx_right."""
        return 0.0 if self.cx_right is None else self.cx - self.cx_right

    @property
    def K(self) -> Float64:
        """(3, 3) left intrinsic matrix, pixels."""
        return np.array([[self.fx, 0.0, self.cx], [0.0, self.fy, self.cy], [0.0, 0.0, 1.0]])

    # Construction from P matrices, KITTI, EuRoC and our own YAML, resize and crop: to be added.
