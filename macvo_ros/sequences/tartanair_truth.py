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

"""Dense truth of TartanAir: depth and flow of the left camera, for evaluation and training.

Version 1 keeps them as .npy (depth (H, W), flow (H, W, 2) float32, and a mask per flow whose 0 is valid), version 2 as
.png: depth is a float32 in the four bytes of a pixel; flow is (value - 32768) / 64 in 16 bits, with the mask as third
channel.
"""

from __future__ import annotations

import re
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt

from macvo_ros.errors import SequenceError
from macvo_ros.sequences.tartanair import tartanair_layout

Float32 = npt.NDArray[np.float32]
Bool = npt.NDArray[np.bool_]


class TartanAirTruth:
    """Depth, disparity and flow of a trajectory folder by frame number (that of the file name)."""

    def __init__(self, path: str | Path) -> None:
        path = Path(path)
        layout = tartanair_layout(path)
        if layout is None:
            raise SequenceError(f"{path}: expected image_left/ (TartanAir v1) or image_lcam_front/ (v2)")
        self.camera = layout.camera
        self._depth = _by_number(path / layout.depth, r"([0-9]+)_.*depth")
        self._flow = _by_number(path / layout.flow, r"([0-9]+)_[0-9]+_flow")
        self._path = path

    @property
    def depth_frames(self) -> frozenset[int]:
        """Frames with a depth file."""
        return frozenset(self._depth)

    @property
    def flow_frames(self) -> frozenset[int]:
        """Frames with a flow file (to the next one)."""
        return frozenset(self._flow)

    def depth(self, frame: int) -> Float32:
        """(H, W) metres along z of the left camera."""
        return read_depth(self._file(self._depth, frame, "depth"))

    def disparity(self, frame: int) -> Float32:
        """(H, W) pixels, u_left - u_right."""
        depth = self.depth(frame)
        camera = self.camera.resized(depth.shape[1], depth.shape[0])
        return camera.disparity(depth).astype(np.float32)

    def flow(self, frame: int) -> tuple[Float32, Bool]:
        """(H, W, 2) pixels (u, v) from `frame` to the next one in the left image, and (H, W) where it is seen there."""
        return read_flow(self._file(self._flow, frame, "flow"))

    def _file(self, files: dict[int, Path], frame: int, kind: str) -> Path:
        if frame not in files:
            raise SequenceError(f"{self._path} has no {kind} of frame {frame} (it has {len(files)} {kind} files)")
        return files[frame]


def read_depth(path: str | Path) -> Float32:
    """(H, W) depth in metres of a TartanAir .npy (v1) or .png (v2) file."""
    path = Path(path)
    if path.suffix == ".npy":
        depth = _load_npy(path)
        if depth.ndim != 2:
            raise SequenceError(f"{path}: expected (H, W) depth, got shape {depth.shape}")
        return depth.astype(np.float32)
    image = _load_png(path)
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 4:
        raise SequenceError(f"{path}: expected a depth png of 4 channels of uint8, got {image.shape} of {image.dtype}")
    return np.ascontiguousarray(image).view("<f4")[..., 0].astype(np.float32)


def read_flow(path: str | Path) -> tuple[Float32, Bool]:
    """(H, W, 2) flow in pixels and (H, W) validity of a TartanAir .npy (v1, with its _mask.npy) or .png (v2) file."""
    path = Path(path)
    if path.suffix == ".npy":
        flow = _load_npy(path)
        if flow.ndim != 3 or flow.shape[2] != 2:
            raise SequenceError(f"{path}: expected (H, W, 2) flow, got shape {flow.shape}")
        mask = path.with_name(path.name.replace("_flow.npy", "_mask.npy"))
        valid = _load_npy(mask) == 0 if mask.exists() else np.ones(flow.shape[:2], dtype=np.bool_)
        if valid.shape != flow.shape[:2]:
            raise SequenceError(f"{mask}: expected the shape {flow.shape[:2]} of its flow, got {valid.shape}")
        return flow.astype(np.float32), valid & np.isfinite(flow).all(axis=2)
    image = _load_png(path)
    if image.dtype != np.uint16 or image.ndim != 3 or image.shape[2] != 3:
        raise SequenceError(f"{path}: expected a flow png of 3 channels of uint16, got {image.shape} of {image.dtype}")
    flow = (image[..., :2].astype(np.float32) - np.float32(32768)) / np.float32(64)
    return flow, image[..., 2] == 0


def _by_number(folder: Path, pattern: str) -> dict[int, Path]:
    files = sorted(folder.iterdir()) if folder.is_dir() else []
    matches = ((re.fullmatch(pattern, file.stem), file) for file in files if file.suffix in (".npy", ".png"))
    return {int(match[1]): file for match, file in matches if match}


def _load_npy(path: Path) -> npt.NDArray[np.generic]:
    try:
        array = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise SequenceError(f"{path}: cannot read the array ({str(error)[:100]}); copy it again") from None
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "fiub":
        raise SequenceError(f"{path}: expected an array of numbers")
    return array


def _load_png(path: Path) -> npt.NDArray[np.generic]:
    """All channels and bits, in the order OpenCV gives them, which is the order the dataset was written in."""
    try:
        image = cv2.imdecode(np.fromfile(path, np.uint8), cv2.IMREAD_UNCHANGED)
    except (OSError, cv2.error):
        image = None
    if image is None:
        raise SequenceError(f"{path}: not an image that can be read; copy it again")
    return np.asarray(image)
