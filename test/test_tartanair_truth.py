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

"""TartanAir's depth and flow files of both versions."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
import tiny_datasets

from macvo_ros.errors import SequenceError
from macvo_ros.sequences.tartanair_truth import TartanAirTruth, read_depth, read_flow

DEPTH = np.random.default_rng(0).uniform(0.5, 80, (32, 32)).astype(np.float32)
FLOW = (np.random.default_rng(1).integers(-9000, 9000, (32, 32, 2)) / 64).astype(np.float32)
HIDDEN = np.random.default_rng(2).random((32, 32)) < 0.2


def write_version_2(path: Path) -> None:
    tiny_datasets.tartanair(path, 2)
    for folder in ("depth_lcam_front", "flow_lcam_front"):
        (path / folder).mkdir()
    cv2.imwrite(str(path / "depth_lcam_front/000001_lcam_front_depth.png"), DEPTH.view(np.uint8).reshape(32, 32, 4))
    stored = np.dstack([FLOW * 64 + 32768, np.where(HIDDEN, 10, 0)]).astype(np.uint16)
    cv2.imwrite(str(path / "flow_lcam_front/000000_000001_flow.png"), stored)


def write_version_1(path: Path) -> None:
    tiny_datasets.tartanair(path, 2, 1, (32, 24))
    for folder in ("depth_left", "flow"):
        (path / folder).mkdir()
    np.save(path / "depth_left/000001_left_depth.npy", DEPTH)
    np.save(path / "flow/000000_000001_flow.npy", FLOW)
    np.save(path / "flow/000000_000001_mask.npy", np.where(HIDDEN, 1, 0).astype(np.uint8))


@pytest.mark.parametrize("write", [write_version_1, write_version_2])
def test_depth_and_flow_by_frame(tmp_path: Path, write) -> None:
    write(tmp_path)
    truth = TartanAirTruth(tmp_path)
    np.testing.assert_array_equal(truth.depth(1), DEPTH)
    flow, valid = truth.flow(0)
    np.testing.assert_array_equal(flow, FLOW)
    np.testing.assert_array_equal(valid, ~HIDDEN)
    focal = 320 * 32 / 640  # of the small images
    np.testing.assert_allclose(truth.disparity(1), 0.25 * focal / DEPTH, rtol=1e-6)
    with pytest.raises(SequenceError, match="no depth of frame 0"):
        truth.depth(0)


def test_depth_and_flow_that_are_something_else_are_refused(tmp_path: Path) -> None:
    tiny_datasets.save(tmp_path / "grey.png", tiny_datasets.image(0, 8, 8))
    np.save(tmp_path / "flat.npy", np.zeros(5))
    np.save(tmp_path / "text.npy", np.array(["a"]))
    np.save(tmp_path / "pickle.npy", np.array([{}], dtype=object), allow_pickle=True)
    (tmp_path / "broken.npy").write_bytes(b"\x93NUMPY")
    (tmp_path / "broken.png").write_bytes(b"\x89PNG")
    for read in (read_depth, read_flow):
        for file in (*tmp_path.iterdir(), tmp_path / "missing.png", tmp_path / "missing.npy"):
            with pytest.raises(SequenceError, match=file.name):
                read(file)
    with pytest.raises(SequenceError, match="image_left"):
        TartanAirTruth(tmp_path)
