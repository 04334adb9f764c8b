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

"""EuRoC (ASL folders, also TUM-VI's): raw stereo, rectified on the fly, truth of the body at 100 to 200 Hz."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from macvo_ros.errors import CalibrationError, SequenceError
from macvo_ros.geometry.calibration import load_euroc_calibration
from macvo_ros.geometry.rectification import StereoRectifier
from macvo_ros.sequences.damaged_images import first_readable
from macvo_ros.sequences.image_files import StereoImageFiles, check_size
from macvo_ros.sequences.text_rows import check_quaternions, number_rows, text_rows
from macvo_ros.sequences.truth_at_frames import with_truth

TRUTH_FOLDERS = ("state_groundtruth_estimate0", "mocap0")


def mav_folder(path: Path) -> Path | None:
    """The `mav0` folder: in `path`, or `path` itself; None if there is none."""
    return next((folder for folder in (path / "mav0", path) if (folder / "cam0").is_dir()), None)


def open_euroc(path: str | Path) -> StereoImageFiles:
    """Open an ASL folder, given as the one that holds `mav0` or as `mav0`.

    Frames are those whose stamp both cameras have. Ground truth is the body's (p_RS, q_RS with w first); it is
    interpolated to the image stamps and moved by T_BS and the rectifying rotation to the left rectified frame.
    """
    path = Path(path)
    folder = mav_folder(path)
    if folder is None:
        raise SequenceError(f"{path}: expected mav0/cam0 and mav0/cam1 (an EuRoC ASL folder)")
    (lefts, lost), (rights, lost_too) = (_images(folder / camera) for camera in ("cam0", "cam1"))
    common = sorted(lefts.keys() & rights.keys())
    if not common:
        if lost or lost_too:
            raise SequenceError((lost + lost_too)[0])
        raise SequenceError(
            f"{folder}: cam0 and cam1 have no stamp in common; expected the same stamps in both data.csv"
        )
    calibration, body_from_raw = load_euroc_calibration(folder / "cam0/sensor.yaml", folder / "cam1/sensor.yaml")
    check_size(first_readable([lefts[stamp] for stamp in common]), calibration.left.width, calibration.left.height)
    try:
        rectifier = StereoRectifier.from_calibration(calibration)
    except CalibrationError as error:
        raise CalibrationError(f"{folder}: {error}") from None
    resolved = folder.resolve()
    sequence = StereoImageFiles(
        name=f"euroc {resolved.parent.name if resolved.name == 'mav0' else resolved.name}",
        camera=rectifier.camera,
        stamps=np.array(common, dtype=np.int64),
        ground_truth=None,
        left=tuple(lefts[stamp] for stamp in common),
        right=tuple(rights[stamp] for stamp in common),
        rectifier=rectifier,
        skipped=(*lost, *lost_too),
    )
    truth = next((folder / name / "data.csv" for name in TRUTH_FOLDERS if (folder / name / "data.csv").exists()), None)
    if truth is None:
        return sequence
    body_from_camera = body_from_raw.copy()
    body_from_camera[:3, :3] = body_from_raw[:3, :3] @ rectifier.R_left.T
    lines = text_rows(truth)
    stamps = np.array([_stamp(columns[0], f"{truth}, line {line}") for line, columns in lines], dtype=np.int64)
    rows = number_rows(truth, [(line, columns[1:8]) for line, columns in lines], 7)
    check_quaternions(truth, lines, rows[:, 3:])
    return with_truth(sequence, stamps, rows[:, :3], rows[:, [4, 5, 6, 3]], body_from_camera)


def _images(camera: Path) -> tuple[dict[int, Path], list[str]]:
    """Image files of one camera by stamp, as its data.csv lists them, and a sentence for each that is not there."""
    images, lost = {}, []
    for line, columns in text_rows(camera / "data.csv"):
        where = f"{camera / 'data.csv'}, line {line}"
        if len(columns) != 2:
            raise SequenceError(f"{where}: expected a timestamp and a file name, got {len(columns)} columns")
        file = camera / "data" / columns[1]
        if not file.is_file():
            lost.append(f"{where}: {file} does not exist; copy the images again")
            continue
        images[_stamp(columns[0], where)] = file
    return images, lost


def _stamp(text: str, where: str) -> int:
    """Nanoseconds."""
    if not text.isascii() or not text.isdigit() or len(text) > 18 + 1 or int(text) >= 2**62:
        raise SequenceError(f"{where}: expected a timestamp in nanoseconds, got {text[:40]!r}")
    return int(text)
