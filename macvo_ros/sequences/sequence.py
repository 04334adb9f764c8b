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

"""What every reader gives: rectified stereo frames in order, and the truth where it is known."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.images.frame import StereoFrame


class Sequence(Protocol):
    """A stereo sequence. Images are read when a frame is asked for, never all at once.

    name: short and readable, for tables ("euroc MH_01", "kitti 00").
    camera: of the rectified images.
    stamps: (N,) int64 nanoseconds, increasing.
    ground_truth: (N, 4, 4) poses of the left *rectified optical* frame (x right, y down, z forward) in the
    sequence's world, one per frame, metres; None where unknown.
    """

    name: str
    camera: StereoCamera
    stamps: npt.NDArray[np.int64]
    ground_truth: npt.NDArray[np.float64] | None

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> StereoFrame: ...
