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

"""KITTI odometry: rectified street scenes, grey (`image_0 image_1`) or colour (`image_2 image_3`)."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np

from macvo_ros.errors import SequenceError
from macvo_ros.geometry.calibration import load_kitti_calibration, read_kitti_projections
from macvo_ros.sequences.damaged_images import first_readable
from macvo_ros.sequences.image_files import StereoImageFiles, assumed_stamps, read_image
from macvo_ros.sequences.image_pairs import pair_images
from macvo_ros.sequences.tum import read_kitti_poses, read_times

_log = logging.getLogger(__name__)


def open_kitti(path: str | Path) -> StereoImageFiles:
    """Open a KITTI odometry sequence.

    path: one sequence's folder (`.../sequences/00`), or the folder that holds `sequences/` if there is only one. The
    poses are looked for in `poses/00.txt` beside `sequences/`. They are those of camera 0; for the colour pair they
    are moved to camera 2.
    """
    folder = Path(path)
    if (folder / "sequences").is_dir():
        found = sorted(entry for entry in (folder / "sequences").iterdir() if entry.is_dir())
        if len(found) != 1:
            listed = ", ".join(entry.name for entry in found) or "none"
            raise SequenceError(f"{folder} holds sequences {listed}; say which one (sequence)")
        folder = found[0]
    pair = next((pair for pair in ((0, 1), (2, 3)) if (folder / f"image_{pair[0]}").is_dir()), None)
    if pair is None:
        raise SequenceError(f"{folder}: expected image_0/ and image_1/, or image_2/ and image_3/")
    images = pair_images(*(folder / f"image_{number}" for number in pair))
    height, width = read_image(first_readable(images.left)).shape[:2]
    names = [f"P{number}" for number in pair]
    camera = load_kitti_calibration(folder / "calib.txt", width, height, *names)
    stamps, skipped = assumed_stamps(images.frame), images.alone
    if (folder / "times.txt").exists():
        times = read_times(folder / "times.txt")
        stamps, skipped = times[images.rows(len(times), folder / "times.txt", "times")], images.missing(len(times))
    else:
        _log.warning("%s: there is no times.txt, 10 Hz is assumed", folder)
    resolved = folder.resolve()
    # The folder may be a link: the poses are looked for beside the link first.
    candidates = [place.parent.parent / "poses" / f"{place.name}.txt" for place in (folder.absolute(), resolved)]
    poses = next((file for file in candidates if file.exists()), None)
    truth = None
    if poses is not None:
        P = read_kitti_projections(folder / "calib.txt")[names[0]]
        camera0_from_left = np.eye(4)
        camera0_from_left[:3, 3] = -np.linalg.solve(P[:, :3], P[:, 3])
        every = read_kitti_poses(poses) @ camera0_from_left
        truth = every[images.rows(len(every), poses, "poses")]
    name = f"kitti {resolved.name}"
    return StereoImageFiles(name, camera, stamps, truth, images.left, images.right, skipped=skipped)
