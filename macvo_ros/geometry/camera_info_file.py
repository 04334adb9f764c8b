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

"""Calibration of raw cameras as files: our own YAML, and the pair that ROS's camera_info_manager reads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from macvo_ros.atomic_write import atomic_write
from macvo_ros.geometry.rectification import RawCamera, RawStereoCalibration, StereoRectifier

Float64 = npt.NDArray[np.float64]


def save_raw_calibration(path: str | Path, calibration: RawStereoCalibration) -> None:
    """Write our own YAML, second form (`calibration.py`), atomically."""
    left, right = calibration.left, calibration.right
    lines = ["# Raw stereo pair, x_right = R x_left + T; pixels and metres."]
    lines += [f"width: {left.width}", f"height: {left.height}"]
    for side, camera in (("left", left), ("right", right)):
        K = [camera.K[0, 0], camera.K[1, 1], camera.K[0, 2], camera.K[1, 2]]
        lines.append(f"{side}: {{model: {camera.model}, K: {_numbers(K)}, D: {_numbers(camera.D)}}}")
    lines += [f"R: {_numbers(calibration.R)}", f"T: {_numbers(calibration.T)}"]
    atomic_write(path, "\n".join(lines) + "\n")


def save_camera_infos(directory: str | Path, calibration: RawStereoCalibration) -> tuple[Path, Path]:
    """Write left.yaml and right.yaml as camera_info_manager and camera_calibration_parsers read them."""
    rectifier = StereoRectifier.from_calibration(calibration)
    camera = rectifier.camera
    paths = []
    for name, raw, rotation, projection in (
        ("left", calibration.left, rectifier.R_left, camera.P_left),
        ("right", calibration.right, rectifier.R_right, camera.P_right),
    ):
        path = Path(directory) / f"{name}.yaml"
        atomic_write(path, _camera_info(name, raw, rotation, projection))
        paths.append(path)
    return paths[0], paths[1]


def _camera_info(name: str, raw: RawCamera, rotation: Float64, projection: Float64) -> str:
    def matrix(key: str, values: Float64, rows: int, columns: int) -> list[str]:
        return [f"{key}:", f"  rows: {rows}", f"  cols: {columns}", f"  data: {_numbers(values)}"]

    D = np.zeros(5) if raw.D.size < 5 and raw.model == "plumb_bob" else np.array(raw.D)
    D[: raw.D.size] = raw.D
    lines = [
        f"image_width: {raw.width}",
        f"image_height: {raw.height}",
        f"camera_name: {name}",
        *matrix("camera_matrix", raw.K, 3, 3),
        f"distortion_model: {raw.model}",
        *matrix("distortion_coefficients", D, 1, len(D)),
        *matrix("rectification_matrix", rotation, 3, 3),
        *matrix("projection_matrix", projection, 3, 4),
    ]
    return "\n".join(lines) + "\n"


def _numbers(values: npt.ArrayLike) -> str:
    return "[" + ", ".join(f"{float(value):.12g}" for value in np.asarray(values).ravel()) + "]"
