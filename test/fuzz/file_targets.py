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

"""What comes in files: calibrations, configurations, datasets, trajectories, bags."""

from __future__ import annotations

import random
import shutil
from functools import cache
from pathlib import Path

import bag_making
import numpy as np
import tiny_datasets
from damage import mutated, scratch, written

from macvo_ros.geometry.calibration import load_calibration, load_euroc_calibration, load_kitti_calibration
from macvo_ros.images.camera_info import StereoInput
from macvo_ros.sequences.bag import BagSequence
from macvo_ros.sequences.recognise import open_sequence
from macvo_ros.sequences.tum import read_tum
from macvo_ros.settings.config import Config, load_config
from macvo_ros.settings.declaration import settings

_EUROC = (
    b"T_BS:\n  cols: 4\n  rows: 4\n  data: [1.0, 0.0, 0.0, %s, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0, 0, 0, 1]\n"
    b"resolution: [64, 48]\nintrinsics: [39.0, 38.9, 31.0, 24.5]\ndistortion_model: radial-tangential\n"
    b"distortion_coefficients: [-0.28, 0.07, 0.0002, 1.8e-05]\n"
)
_KITTI = b"P0: 7e2 0 20 0 0 7e2 12 0 0 0 1 0\nP1: 7e2 0 20 -3.8e2 0 7e2 12 0 0 0 1 0\n"


def calibration_file(rng: random.Random) -> None:
    """Calibration files of all kinds, damaged."""
    kind = rng.randrange(4)
    if kind < 2:
        text = (tiny_datasets.RECTIFIED_YAML, tiny_datasets.RAW_YAML)[kind].encode()
        StereoInput.from_calibration(load_calibration(written("calib.yaml", mutated(rng, text))))
    elif kind == 2:
        load_kitti_calibration(written("calib.txt", mutated(rng, _KITTI)), 40, 24)
    else:
        left, right = _EUROC % b"0.0", _EUROC % b"0.11"
        load_euroc_calibration(written("l.yaml", mutated(rng, left)), written("r.yaml", mutated(rng, right)))


@cache
def _config_text() -> bytes:
    lines, last = [], ""
    for leaf in settings(Config):
        group, _, name = leaf.key.rpartition(".")
        if group and group != last:
            lines.append(f"{group}:")
        last = group
        lines.append(f"{'  ' if group else ''}{name}: {str(leaf.default).lower() if leaf.default != '' else '~'}")
    return "\n".join(line for line in lines if not line.endswith("~")).encode()


def configuration(rng: random.Random) -> None:
    """Configuration files and key=value words."""
    if rng.random() < 0.5:
        load_config(written("config.yaml", mutated(rng, _config_text())))
    else:
        keys = [leaf.key for leaf in settings(Config)]
        word = f"{rng.choice(keys)}={rng.choice(['1', 'true', '2.5', 'classic', 'full'])}".encode()
        load_config(None, [mutated(rng, word).decode(errors="replace") if rng.random() < 0.9 else word.decode()])


@cache
def _datasets() -> dict[str, tuple[Path, list[Path]]]:
    found = {}
    for layout, write in tiny_datasets.WRITERS.items():
        folder = scratch() / f"whole_{layout}"
        folder.mkdir()
        write(folder, count=2)
        found[layout] = (folder, sorted(file for file in folder.rglob("*") if file.is_file()))
    return found


def dataset(rng: random.Random) -> None:
    """One damaged file in a dataset of any layout."""
    folder, files = _datasets()[rng.choice(list(_datasets()))]
    texts = [file for file in files if file.suffix != ".png"]
    file = rng.choice(texts if rng.random() < 0.7 else files)
    content = file.read_bytes()
    try:
        file.write_bytes(mutated(rng, content))
        sequence = open_sequence(folder)
        for index in range(len(sequence)):
            sequence[index]
        assert sequence.ground_truth is None or np.isfinite(sequence.ground_truth).all()
    finally:
        file.write_bytes(content)


def trajectory_file(rng: random.Random) -> None:
    """TUM trajectories, ours with covariance among them."""
    row = "1403636584.123456789 0.1 0.2 0.3 0 0 0 1"
    rows = [row if rng.random() < 0.5 else row + " 0.5" * 21] * rng.randint(1, 4)
    read = read_tum(written("trajectory.txt", mutated(rng, "\n".join(rows).encode())))
    assert np.isfinite(read.poses).all()


@cache
def _bags() -> tuple[Path, ...]:
    folder = scratch() / "bags"
    folder.mkdir()
    mcap = bag_making.write_ros2(folder / "a", 2)
    db3 = bag_making.write_ros2(folder / "b", 2, storage="sqlite3")
    jpeg = bag_making.write_ros2(folder / "c", 2, compressed="png")
    ros1 = [bag_making.write_ros1(folder / f"{i}.bag", 2, how) for i, how in enumerate([None, "LZ4", "BZ2"])]
    return (*mcap.glob("*.mcap"), *db3.glob("*.db3"), *jpeg.glob("*.mcap"), *ros1, mcap, db3)


def bag(rng: random.Random) -> None:
    """Damaged recordings of every format, single files and folders with metadata."""
    source = rng.choice(_bags())
    if source.is_dir():
        target = scratch() / "broken_bag"
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(source, target)
        file = rng.choice(sorted(target.iterdir()))
        file.write_bytes(mutated(rng, file.read_bytes()))
    else:
        target = written(f"broken{source.suffix}", mutated(rng, source.read_bytes()))
    with BagSequence(target) as sequence:
        for index in range(len(sequence)):
            sequence[index]
