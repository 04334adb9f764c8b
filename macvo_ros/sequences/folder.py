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

"""A plain folder: `left/ right/ calib.yaml`, and optionally `times.txt` and `groundtruth.txt`.

left/ and right/ hold png or jpg images, paired and ordered by the numbers in their names (by name without any).
calib.yaml is described in `macvo_ros.geometry.calibration`; raw images are rectified on the fly.
times.txt has the time of each pair in seconds, one a line; without it 10 Hz is assumed, or the times of a
groundtruth.txt that has one line per pair.
groundtruth.txt is a TUM trajectory (seconds tx ty tz qx qy qz qw) of the left camera as its images are on disk
(x right, y down, z forward), associated with the images by time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np

from macvo_ros.atomic_write import atomic_write
from macvo_ros.errors import CalibrationError, SequenceError
from macvo_ros.geometry.calibration import load_calibration, save_calibration
from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.geometry.rectification import StereoRectifier
from macvo_ros.geometry.se3 import quaternion
from macvo_ros.images.frame import Image
from macvo_ros.sequences.damaged_images import first_readable
from macvo_ros.sequences.image_files import StereoImageFiles, assumed_stamps, check_size
from macvo_ros.sequences.image_pairs import pair_images
from macvo_ros.sequences.sequence import Sequence
from macvo_ros.sequences.truth_at_frames import with_truth
from macvo_ros.sequences.tum import read_times, read_tum, write_times, write_tum

_log = logging.getLogger(__name__)


def open_folder(path: str | Path) -> StereoImageFiles:
    """Open a plain folder."""
    path = Path(path)
    images = pair_images(path / "left", path / "right")
    camera, rectifier, camera_from_rectified = _calibration(path / "calib.yaml", first_readable(images.left))
    truth = read_tum(path / "groundtruth.txt") if (path / "groundtruth.txt").exists() else None
    skipped = images.alone
    if (path / "times.txt").exists():
        times = read_times(path / "times.txt")
        stamps, skipped = times[images.rows(len(times), path / "times.txt", "times")], images.missing(len(times))
    elif truth is not None and len(truth) == images.total:
        stamps = truth.stamps[images.place]
    elif truth is not None:
        raise SequenceError(
            f"{path}: groundtruth.txt has {len(truth)} poses for {images.total} images and there is no times.txt to "
            "associate them by; add times.txt (seconds, one a line)"
        )
    else:
        stamps = assumed_stamps(images.place)
        _log.warning("%s: there is no times.txt, 10 Hz is assumed", path)
    name = path.resolve().name
    sequence = StereoImageFiles(name, camera, stamps, None, images.left, images.right, rectifier, skipped)
    if truth is None:
        return sequence
    quaternions = np.array([quaternion(pose[:3, :3]) for pose in truth.poses]).reshape(-1, 4)
    return with_truth(sequence, truth.stamps, truth.poses[:, :3, 3], quaternions, camera_from_rectified)


def write_folder(path: str | Path, sequence: Sequence, progress: Callable[[int], object] | None = None) -> None:
    """Write a sequence as a plain folder of png files that `open_folder` reads back bit for bit.

    path: made if need be; refused when it already holds images. progress: called with the number of each frame
    written.
    """
    path = Path(path)
    for side in ("left", "right"):
        folder = path / side
        try:
            folder.mkdir(parents=True, exist_ok=True)
            occupied = any(folder.iterdir())
        except OSError as error:
            raise SequenceError(f"{folder}: cannot make the folder ({error.strerror or error})") from None
        if occupied:
            raise SequenceError(f"{folder} is not empty; choose another folder or remove it")
    for index in range(len(sequence)):
        frame = sequence[index]
        _write_png(path / "left" / f"{index:06d}.png", frame.left)
        _write_png(path / "right" / f"{index:06d}.png", frame.right)
        if progress is not None:
            progress(index)
    write_times(path / "times.txt", sequence.stamps)
    if sequence.ground_truth is not None:
        write_tum(path / "groundtruth.txt", sequence.stamps, sequence.ground_truth)
    save_calibration(path / "calib.yaml", sequence.camera)  # last: without it the folder is not taken for whole


def _calibration(
    path: Path, image: Path
) -> tuple[StereoCamera, StereoRectifier | None, np.ndarray[tuple[int, ...], np.dtype[np.float64]]]:
    """The rectified camera, what rectifies to it, and the (4, 4) pose of the rectified camera in the one on disk."""
    calibration = load_calibration(path)
    turn = np.eye(4)
    size = calibration if isinstance(calibration, StereoCamera) else calibration.left
    check_size(image, size.width, size.height)
    if isinstance(calibration, StereoCamera):
        return calibration, None, turn
    try:
        rectifier = StereoRectifier.from_calibration(calibration)
    except CalibrationError as error:
        raise CalibrationError(f"{path}: {error}") from None
    turn[:3, :3] = rectifier.R_left.T
    return rectifier.camera, rectifier, turn


def _write_png(path: Path, image: Image) -> None:
    encoded = cv2.imencode(".png", cv2.cvtColor(image, cv2.COLOR_RGB2BGR) if image.ndim == 3 else image)[1]
    atomic_write(path, encoded.tobytes())
