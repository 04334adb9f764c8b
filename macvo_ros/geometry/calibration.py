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

"""Calibration files: KITTI, EuRoC, and our own YAML.

Our own YAML comes in two forms. Rectified images, pixels and metres (cx_right only where it differs from cx):

    width: 640
    height: 480
    fx: 320.0
    fy: 320.0
    cx: 319.5
    cy: 239.5
    baseline: 0.12

Raw images, with x_right = R x_left + T as OpenCV's stereoCalibrate gives them, T in metres (T[0] is -baseline):

    width: 752
    height: 480
    left:  {model: plumb_bob, K: [458.654, 457.296, 367.215, 248.375], D: [-0.283, 0.0740, 0.0002, 0.00002]}
    right: {model: plumb_bob, K: [457.587, 456.134, 379.999, 255.238], D: [-0.284, 0.0745, -0.0001, -0.00004]}
    R: [1, 0, 0, 0, 1, 0, 0, 0, 1]
    T: [-0.11, 0, 0]

K is [fx, fy, cx, cy] or 9 row-major numbers; models are plumb_bob, rational_polynomial and equidistant.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from macvo_ros.atomic_write import atomic_write
from macvo_ros.errors import CalibrationError
from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.geometry.rectification import RawCamera, RawStereoCalibration
from macvo_ros.settings.plain_yaml import load_plain_yaml

Float64 = npt.NDArray[np.float64]


def load_calibration(path: str | Path) -> StereoCamera | RawStereoCalibration:
    """Read our own YAML (see the module): a StereoCamera for rectified images, a RawStereoCalibration for raw ones."""
    content = _read_yaml(Path(path))
    try:
        width, height = (_whole(content, key) for key in ("width", "height"))
        if "left" in content or "right" in content:
            cameras = []
            for side in ("left", "right"):
                lens = content.get(side)
                if not isinstance(lens, Mapping):
                    raise CalibrationError(f"{side} must hold model, K and D, got {str(lens)[:60]!r}")
                _only(lens, {"model", "K", "D"}, f"{side}.")
                K, D = _get(lens, "K"), lens.get("D", [])
                cameras.append(RawCamera(_array(K, "K"), _array(D, "D"), str(_get(lens, "model")), width, height))
            _only(content, {"width", "height", "left", "right", "R", "T"})
            R, T = (_array(_get(content, key), key) for key in ("R", "T"))
            return RawStereoCalibration(cameras[0], cameras[1], R, T)
        _only(content, {"width", "height", "fx", "fy", "cx", "cy", "baseline", "cx_right"})
        fx, fy, cx, cy, baseline = (_number(content, key) for key in ("fx", "fy", "cx", "cy", "baseline"))
        cx_right = _number(content, "cx_right") if content.get("cx_right") is not None else None
        return StereoCamera(fx, fy, cx, cy, baseline, width, height, cx_right)
    except CalibrationError as error:
        raise CalibrationError(f"{path}: {error}") from None


def save_calibration(path: str | Path, camera: StereoCamera) -> None:
    """Write a rectified camera as our own YAML, atomically."""
    keys = ("width", "height", "fx", "fy", "cx", "cy", "baseline", "cx_right")
    lines = [f"{key}: {getattr(camera, key)!r}" for key in keys if getattr(camera, key) is not None]
    atomic_write(path, "# Rectified stereo pair; pixels and metres.\n" + "\n".join(lines) + "\n")


def read_kitti_projections(path: str | Path) -> dict[str, Float64]:
    """The (3, 4) projection matrices of a KITTI calib file by name (P0 .. P3).

    The odometry and object files name them P0 .. P3, the raw data's calib_cam_to_cam.txt P_rect_00 .. P_rect_03.
    """
    found: dict[str, Float64] = {}
    for line in _read_text(Path(path)).splitlines():
        name, _, numbers = line.partition(":")
        name = name.strip().replace("P_rect_0", "P")
        if name not in ("P0", "P1", "P2", "P3"):
            continue
        try:
            values = np.array(numbers.split(), dtype=np.float64)
        except (ValueError, OverflowError):
            values = np.empty(0)
        if values.size != 12 or not np.isfinite(values).all():
            raise CalibrationError(f"{path}: {name} should be 12 numbers, got {numbers.strip()[:80]!r}")
        found[name] = values.reshape(3, 4)
    return found


def load_kitti_calibration(
    path: str | Path, width: int, height: int, left: str = "P0", right: str = "P1"
) -> StereoCamera:
    """The camera of a KITTI calib file, grey pair P0/P1 by default, colour pair P2/P3; the file holds no image size."""
    projections = read_kitti_projections(path)
    for name in (left, right):
        if name not in projections:
            raise CalibrationError(
                f"{path}: expected a line {name!r} with 12 numbers, found {', '.join(projections) or 'no P lines'}"
            )
    try:
        return StereoCamera.from_projection(projections[left], projections[right], width, height)
    except CalibrationError as error:
        raise CalibrationError(f"{path}: {error}") from None


def load_euroc_calibration(left: str | Path, right: str | Path) -> tuple[RawStereoCalibration, Float64]:
    """A pair of EuRoC (ASL) sensor.yaml files.

    Returns the raw calibration and T_BS of the left camera, its (4, 4) pose in the body frame, metres.
    """
    cameras, poses = zip(*(_euroc_camera(Path(path)) for path in (left, right)), strict=True)
    right_from_left = np.linalg.inv(poses[1]) @ poses[0]
    try:
        calibration = RawStereoCalibration(cameras[0], cameras[1], right_from_left[:3, :3], right_from_left[:3, 3])
    except CalibrationError as error:
        raise CalibrationError(f"{left} and {right}: {error}") from None
    return calibration, poses[0]


def _euroc_camera(path: Path) -> tuple[RawCamera, Float64]:
    content = _read_yaml(path)
    try:
        pose = _get(content, "T_BS")
        numbers = _array(pose.get("data") if isinstance(pose, Mapping) else pose, "T_BS")
        if numbers.size != 16:
            raise CalibrationError(f"T_BS: expected 16 numbers (4x4), got {numbers.size}")
        T_BS = numbers.reshape(4, 4)
        R = T_BS[:3, :3]
        if np.abs(R @ R.T - np.eye(3)).max() > 1e-2 or np.linalg.det(R) < 0 or np.abs(T_BS[3] - (0, 0, 0, 1)).max() > 0:
            raise CalibrationError(f"T_BS is not a pose: {T_BS.tolist()}")
        resolution = _array(_get(content, "resolution"), "resolution")
        if resolution.size != 2 or (resolution != resolution.round()).any() or resolution.max() > 1 << 15:
            raise CalibrationError(f"resolution: expected [width, height] in pixels, got {resolution.tolist()}")
        K, D = (_array(_get(content, key), key) for key in ("intrinsics", "distortion_coefficients"))
        width, height = (int(value) for value in resolution)
        return RawCamera(K, D, str(_get(content, "distortion_model")), width, height), T_BS
    except CalibrationError as error:
        raise CalibrationError(f"{path}: {error}") from None


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise CalibrationError(f"{path}: cannot read the calibration ({error})") from None


def _read_yaml(path: Path) -> Mapping[str, Any]:
    text = _read_text(path)
    if text.startswith("%YAML"):  # OpenCV's own header, which is not YAML
        text = text.partition("\n")[2]
    try:
        content = load_plain_yaml(text)
    except ValueError as error:
        raise CalibrationError(f"{path}: not a YAML file ({error})") from None
    if not isinstance(content, Mapping):
        raise CalibrationError(f"{path}: expected `key: value` lines, got {str(content)[:60]!r}")
    return content


def _get(content: Mapping[str, Any], key: str) -> Any:
    if key not in content:
        raise CalibrationError(f"{key} is missing; found {', '.join(map(str, content))[:120] or 'nothing'}")
    return content[key]


def _only(content: Mapping[str, Any], allowed: set[str], where: str = "") -> None:
    for key in content:
        if key not in allowed:
            raise CalibrationError(f"{where}{str(key)[:40]} is not a known key; expected {', '.join(sorted(allowed))}")


def _array(value: Any, name: str) -> Float64:
    """Numbers, however nested. PyYAML reads 1e-3 as text, so text that is a number is one."""
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError, RecursionError):
        raise CalibrationError(f"{name}: expected numbers, got {str(value)[:80]!r}") from None
    if not np.isfinite(array).all():
        raise CalibrationError(f"{name}: expected finite numbers, got {str(value)[:80]!r}")
    return array


def _number(content: Mapping[str, Any], key: str) -> float:
    array = _array(_get(content, key), key)
    if array.ndim != 0:
        raise CalibrationError(f"{key}: expected one number, got {str(content[key])[:80]!r}")
    return float(array)


def _whole(content: Mapping[str, Any], key: str) -> int:
    number = _number(content, key)
    if number != round(number) or not 1 <= number <= 1 << 15:
        raise CalibrationError(f"{key}: expected a whole number of pixels from 1 to 32768, got {content[key]!r}")
    return int(number)
