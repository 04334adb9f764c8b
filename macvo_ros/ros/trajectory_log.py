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

"""Every pose the node published, for ~/save_trajectory."""

from __future__ import annotations

import threading
from collections import deque
from pathlib import Path

import numpy as np
import numpy.typing as npt

from macvo_ros.errors import MacvoError
from macvo_ros.odometry.estimate import Estimate
from macvo_ros.odometry.message_fields import is_published
from macvo_ros.sequences.tum import write_tum

Float64 = npt.NDArray[np.float64]


class TrajectoryLog:
    """Keeps the newest `limit` poses with their covariances: 412 bytes each, 128 more where a window corrected them."""

    def __init__(self, limit: int) -> None:
        self._rows: deque[tuple[int, Float64, Float64]] = deque(maxlen=limit)
        self._corrected: dict[int, Float64] = {}
        self._lock = threading.Lock()
        self._forgotten = 0

    def append(self, estimate: Estimate) -> None:
        """Add an estimate, unless it is lost: a prediction is not a measured pose."""
        if not is_published(estimate.status):
            return
        with self._lock:
            if len(self._rows) == self._rows.maxlen:
                self._forgotten += 1
                self._corrected.pop(self._rows[0][0], None)
            self._rows.append((estimate.frame.stamp, estimate.pose, estimate.covariance))
            oldest = self._rows[0][0]
            self._corrected.update({stamp: pose for stamp, pose in estimate.corrections if stamp >= oldest})

    def save(self, path: str) -> tuple[int, str]:
        """Write `path` in TUM format and, beside it, the same with covariance; returns the count and a sentence.

        Where a window of frames has corrected earlier poses, the smoothed trajectory is written beside it, too.
        """
        if not path.strip():
            raise MacvoError("no path given; say where to write, for example path: trajectory.txt")
        target = Path(path).expanduser()
        if target.is_dir():
            raise MacvoError(f"{path} is a folder; give the name of a file in it")
        with self._lock:
            rows, forgotten, corrected = list(self._rows), self._forgotten, dict(self._corrected)
        stamps = np.array([row[0] for row in rows], dtype=np.int64)
        poses = np.array([row[1] for row in rows]).reshape(-1, 4, 4)
        covariance = np.array([row[2] for row in rows]).reshape(-1, 6, 6)
        beside, smooth = (
            target.with_name(f"{target.stem}_{kind}{target.suffix}") for kind in ("covariance", "smoothed")
        )
        try:
            write_tum(target, stamps, poses)
            write_tum(beside, stamps, poses, covariance)
            if corrected:
                smoothed = np.array([corrected.get(stamp, pose) for stamp, pose, _ in rows])
                write_tum(smooth, stamps, smoothed)
        except OSError as error:
            raise MacvoError(
                f"cannot write {target}: {error.strerror or error}; choose a writable folder with room"
            ) from error
        also = f" and, corrected by later frames, to {smooth}" if corrected else ""
        older = f"; {forgotten} older ones were forgotten (parameter trajectory_poses)" if forgotten else ""
        return len(rows), f"wrote {len(rows)} poses to {target} and, with covariance, to {beside}{also}{older}"
