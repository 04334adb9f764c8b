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

"""What was learned of a calibration, in units and words for people, and as a calibration to use from now on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from macvo_ros.errors import MacvoError
from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.geometry.camera_info_file import save_camera_infos, save_raw_calibration
from macvo_ros.geometry.rectification import RawCamera, RawStereoCalibration
from macvo_ros.geometry.se3 import exp_so3
from macvo_ros.uncertainty.calibration_model import (
    AHEAD,
    CENTRE_U,
    CENTRE_V,
    FOCAL,
    FOCAL_RIGHT,
    K1,
    PHYSICAL,
    PITCH,
    ROLL,
    YAW,
    CalibrationModel,
)

Float64 = npt.NDArray[np.float64]

_UNITS = dict.fromkeys(("pitch", "yaw", "roll"), "deg") | dict.fromkeys(("focal", "focal_right", "ahead"), "%")
_UNITS |= dict.fromkeys(("centre_u", "centre_v"), "px")
_SCALES = {"deg": 180 / np.pi, "%": 100.0}
_AXES = {"pitch": "x", "yaw": "y", "roll": "z"}
_NOTABLE = 3.0
"""Sigmas beyond which an error is spoken of."""
_MATTERS = 0.3
"""Of the prior's sigma: a smaller error is what calibrations are like."""
_GRID = 24
"""Columns of the grid on which the size of the fields is looked at."""


@dataclass(frozen=True)
class Figure:
    """One number of the calibration: what it is off by, and how well that is known."""

    name: str
    value: float
    sigma: float
    unit: str

    def __str__(self) -> str:
        return f"{self.value:+.4f} +- {self.sigma:.4f} {self.unit}".rstrip()


@dataclass(frozen=True, eq=False)
class LearnedCalibration:
    """error, sigma, prior: (C,) of the numbers of `CalibrationModel`; knocks: how often a camera was knocked."""

    camera: StereoCamera
    error: Float64
    sigma: Float64
    prior: Float64
    knocks: int = 0

    def figures(self) -> list[Figure]:
        """The physical numbers, in degrees, percent and pixels."""
        out = []
        for index, name in enumerate(PHYSICAL):
            unit = _UNITS.get(name, "")
            scale = _SCALES.get(unit, 1.0)
            out.append(Figure(name, scale * float(self.error[index]), scale * float(self.sigma[index]), unit))
        return out

    def field_size(self) -> float:
        """Pixels: root mean square over the image by which what is corrected in all moves matches of the left image."""
        camera = self.camera
        v, u = np.mgrid[: camera.height : camera.width / _GRID, : camera.width : camera.width / _GRID]
        moved = CalibrationModel(camera).left_displacement(np.column_stack((u.ravel(), v.ravel())), self.error)
        return float(np.sqrt((moved**2).sum(axis=1).mean()))

    def findings(self) -> list[str]:
        """Sentences about what is certainly off, for a user to act on; empty where all is well."""
        sentences = []
        for index, figure in enumerate(self.figures()):
            certain = abs(figure.value) > _NOTABLE * figure.sigma
            if not certain or abs(self.error[index]) < _MATTERS * self.prior[index]:
                continue
            size, off = f"{abs(figure.value):.3f} +- {figure.sigma:.3f}", f"{figure.value:+.3f} +- {figure.sigma:.3f}"
            if figure.name in _AXES:
                text = f"the right camera is turned by {off} deg about {_AXES[figure.name]}"
            elif figure.name == "ahead":
                text = f"the right camera stands {off} % of the baseline ahead of the left"
            elif figure.unit == "%":
                side = "right focal length" if figure.name == "focal_right" else "focal length"
                text = f"the {side} is {size} % too {'small' if figure.value > 0 else 'large'} in the calibration"
            else:
                text = f"{figure.name} is {figure.value:+.4f} +- {figure.sigma:.4f} {figure.unit}".rstrip()
            beyond = abs(self.error[index]) > _NOTABLE * self.prior[index]
            sentences.append(f"{text}{', beyond what calibration.prior allows for' if beyond else ''}: recalibrate")
        return sentences

    def save(self, folder: Path) -> str:
        """Write the corrected calibration: calibration.yaml, and left.yaml and right.yaml; returns a sentence."""
        raw = self.as_raw()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            save_raw_calibration(folder / "calibration.yaml", raw)
            save_camera_infos(folder, raw)
        except OSError as error:
            raise MacvoError(f"cannot write {folder}: {error.strerror}; choose a writable folder with room") from error
        return f"written to {folder}/: calibration.yaml, left.yaml, right.yaml"

    def as_raw(self) -> RawStereoCalibration:
        """The cameras behind the images as they are: rectified once more by this, they fit what was learned.

        The smooth fields have no place in a lens model and are not in it.
        """
        camera, error = self.camera, self.error
        scales = 1.0 + error[FOCAL], 1.0 + error[FOCAL] + error[FOCAL_RIGHT]
        sides = [
            RawCamera(
                np.array([camera.fx * scale, camera.fy * scale, cx + error[CENTRE_U], camera.cy + error[CENTRE_V]]),
                np.array([error[K1], 0.0, 0.0, 0.0]),
                "plumb_bob",
                camera.width,
                camera.height,
            )
            for scale, cx in zip(scales, (camera.cx, camera.cx - camera.disparity_offset), strict=True)
        ]
        rotation = exp_so3(np.array([error[PITCH], error[YAW], error[ROLL]])).T
        right = camera.baseline * np.array([1.0, 0.0, error[AHEAD]])
        return RawStereoCalibration(sides[0], sides[1], rotation, -rotation @ right)
