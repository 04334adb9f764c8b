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

"""What is fuzzed: everything that reads bytes or numbers from outside.

Each target takes a source of randomness, makes one input and feeds it. Coming back, or one of our own errors in one
line, is right; anything else that escapes is a defect.
"""

from __future__ import annotations

import io
import math
import pickle
import random
import shutil
import tempfile
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import bag_making
import cv2
import numpy as np
import safetensors.torch
import tiny_datasets
import torch

from macvo_ros.calibration import load_calibration, load_euroc_calibration, load_kitti_calibration
from macvo_ros.camera_info import CameraInfo, StereoInput
from macvo_ros.config import Config, load_config
from macvo_ros.image_decoding import BYTES_PER_PIXEL, decode_compressed, decode_image
from macvo_ros.matching.flowformer.checkpoint import clean_state
from macvo_ros.matching.weights_file import read_metadata, read_tensors
from macvo_ros.sequences.bag import BagSequence
from macvo_ros.sequences.recognise import open_sequence
from macvo_ros.sequences.tum import read_tum
from macvo_ros.settings import settings

WORDS = [
    b"", b"\n", b"nan", b"inf", b"-inf", b"1e309", b"-1", b"0", b",,,", b"0 " * 12, b"\xff\xfe", b"\x00" * 30, b"#",
    b"9" * 400, b"&a [*a]", b"&a {x: *a}", b"!!python/object/apply:os.system [id]", b"2001-99-99", b"{", b"]", b"? [1]",
    b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x80\x00\x00\x00", b"!!binary x", b"0x7fffffffffffffff", b"~", b"<<: 3",
]  # fmt: skip
NUMBERS = [0.0, -0.0, 1.0, -1.0, 0.12, 320.0, 1e-300, 1e-12, 1e12, 1e300, -1e300, math.nan, math.inf, -math.inf]


def mutated(rng: random.Random, content: bytes) -> bytes:
    """One to four edits: bits, bytes, cuts, doublings, words that mean something to some parser."""
    data = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        at = rng.randint(0, len(data))
        kind = rng.randrange(6)
        if kind == 0 and data:
            data[at % len(data)] ^= 1 << rng.randrange(8)
        elif kind == 1 and data:
            data[at % len(data)] = rng.randrange(256)
        elif kind == 2:
            del data[at : at + rng.randint(1, 40)]
        elif kind == 3:
            data[at:at] = data[at : at + rng.randint(1, 60)]
        elif kind == 4:
            word = rng.choice(WORDS)
            data[at : at + rng.choice([0, len(word), 4])] = word
        else:
            del data[at:]
    return bytes(data)


def number(rng: random.Random) -> float:
    return rng.choice(NUMBERS) if rng.random() < 0.5 else rng.gauss(0, 10.0 ** rng.randint(-3, 6))


@cache
def scratch() -> Path:
    """A folder for the files of this process; removed at its end."""
    folder = tempfile.TemporaryDirectory(prefix="macvo_fuzz_")
    _KEPT.append(folder)
    return Path(folder.name)


_KEPT: list[object] = []


def written(name: str, content: bytes) -> Path:
    path = scratch() / name
    path.write_bytes(content)
    return path


def image_message(rng: random.Random) -> None:
    """Fields of sensor_msgs/Image that do not belong together."""
    encoding = rng.choice([*BYTES_PER_PIXEL, "yuv422", "", "bayer_rggb8", "32FC1", "\0", "MONO8"])
    sizes = [0, 1, 2, 3, 7, 8, 640, 2**16, 2**31, 2**32 - 1]
    height, width = rng.choice(sizes), rng.choice(sizes)
    step = rng.choice([*sizes, width * rng.randint(1, 4), width * 4 + 3])
    size = rng.choice([0, 1, 63, 64, min(step * height, 10**6), min(step * height + 1, 10**6)])
    image = decode_image(bytes(size), encoding, height, width, step, rng.choice([0, 1, 2, True]))
    assert image.shape[:2] == (height, width)
    assert image.dtype == np.uint8


@cache
def _pictures() -> tuple[bytes, ...]:
    image = tiny_datasets.image(0, 24, 16, colour=True)
    deep = image.astype(np.uint16) * 257
    made = [cv2.imencode(".jpg", image), cv2.imencode(".png", image), cv2.imencode(".png", deep)]
    made += [cv2.imencode(".png", image[:, :, 0]), cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_PROGRESSIVE, 1])]
    return tuple(content.tobytes() for _, content in made)


def png(width: int, height: int, content: bytes = b"") -> bytes:
    """A PNG that claims a size, with right checksums."""
    import struct
    import zlib

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(content)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def compressed_message(rng: random.Random) -> None:
    """Damaged JPEG and PNG, and pictures that claim to be larger than memory."""
    if rng.random() < 0.1:
        content = png(rng.choice([1, 40000, 2**31 - 1, 0]), rng.choice([1, 40000, 2**31 - 1, 0]))
    else:
        content = mutated(rng, rng.choice(_pictures()))
    form = rng.choice(["jpeg", "png", "bgr8; jpeg compressed bgr8", "rgb8; png compressed rgb8", "", "\0", "rvl"])
    image = decode_compressed(content, form)
    assert image.dtype == np.uint8
    assert image.ndim in (2, 3)


def camera_info(rng: random.Random) -> None:
    """Any numbers in a pair of camera_info, rectified and raw."""
    P = np.array([320.0, 0, 160, 0, 0, 320.0, 120, 0, 0, 0, 1, 0])

    def side(x: float) -> CameraInfo:
        k, r, p = np.delete(P, [3, 7, 11]), np.eye(3).ravel(), P.copy()
        p[3] = x
        d = np.array([number(rng) if rng.random() < 0.3 else 0.0 for _ in range(rng.choice([0, 4, 5, 5, 8, 12, 3]))])
        for array in (k, r, p):
            for _ in range(rng.choice([0, 0, 1, 2])):
                array[rng.randrange(array.size)] = number(rng)
        if rng.random() < 0.05:
            p = p[: rng.randrange(12)]
        model = rng.choice(["plumb_bob", "plumb_bob", "rational_polynomial", "equidistant", "", "fisheye", "x" * 99])
        width, height = rng.choice([(320, 240), (320, 240), (0, 0), (1, 1), (2**31, 2**31), (-1, 5), (64, 48)])
        return CameraInfo(width, height, model, d, k, r, p)

    left, right = side(0.0), side(rng.choice([-38.4, -38.4, number(rng)]))
    if rng.random() < 0.8:
        object.__setattr__(right, "width", left.width)
        object.__setattr__(right, "height", left.height)
    made = StereoInput.from_camera_info(left, right, rectify=rng.random() < 0.5)
    assert np.isfinite(made.camera.K).all()
    assert made.camera.baseline > 0
    assert np.isfinite(made.raw_from_rectified).all()


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


_TENSORS = {"a.weight": torch.ones(2, 3), "b": torch.zeros(1)}


class Bomb:
    """Unpickling this would write a file."""

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return (Path.touch, (executed(),))


def executed() -> Path:
    """The file that exists once code from a checkpoint or bag has run."""
    return scratch() / "executed"


@cache
def _checkpoints() -> tuple[tuple[str, bytes], ...]:
    tensors = _TENSORS
    made = []
    for content in (tensors, tensors | {"c": Bomb()}, Bomb()):
        buffer = io.BytesIO()
        torch.save(content, buffer)
        made.append((".pth", buffer.getvalue()))
    old = io.BytesIO()
    torch.save(tensors, old, _use_new_zipfile_serialization=False)
    made += [(".pth", old.getvalue()), (".pt", pickle.dumps(Bomb())), (".safetensors", safetensors.torch.save(tensors))]
    made.append((".safetensors", safetensors.torch.save(tensors, {"name": "x"})))
    return tuple(made)


def _rezipped(rng: random.Random, content: bytes) -> bytes:
    """Damage inside the archive, its checksums made right again."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as before, zipfile.ZipFile(out, "w") as after:
        names = before.namelist()
        hit = rng.choice(names)
        for name in names:
            data = before.read(name)
            after.writestr(name, mutated(rng, data) if name == hit else data)
    return out.getvalue()


def checkpoint(rng: random.Random) -> None:
    """Damaged and hostile files of weights."""
    suffix, content = rng.choice(_checkpoints())
    if content.startswith(b"PK") and rng.random() < 0.7:
        content = _rezipped(rng, content)
    elif rng.random() < 0.95:
        content = mutated(rng, content)
    path = written(f"weights{suffix}", content)
    try:
        tensors = read_tensors(path)
        read_metadata(path)
        clean_state(tensors, {**_TENSORS, "memory_decoder.delta": torch.zeros(1)})
    finally:
        assert not executed().exists(), "loading weights ran code from the file"


def reset_pose(rng: random.Random) -> None:
    """Requests to continue from a pose."""
    from macvo_ros.ros.services import pose_and_covariance

    xyz = SimpleNamespace(**{name: number(rng) for name in "xyz"})
    turn = SimpleNamespace(
        **dict(zip("xyzw", rng.choice([(0, 0, 0, 1.0), [number(rng) for _ in range(4)]]), strict=True))
    )
    covariance = np.diag([rng.choice([1.0, number(rng)]) for _ in range(6)])
    if rng.random() < 0.5:
        covariance[rng.randrange(6), rng.randrange(6)] = number(rng)
    pose = SimpleNamespace(pose=SimpleNamespace(position=xyz, orientation=turn), covariance=covariance.ravel())
    header = SimpleNamespace(frame_id=rng.choice(["", "odom", "/odom", "map"]))
    place, spread = pose_and_covariance(SimpleNamespace(header=header, pose=pose), "odom")
    assert np.isfinite(place).all()
    assert np.isfinite(spread).all()


TARGETS: dict[str, tuple[Callable[[random.Random], None], float]] = {
    "image message": (image_message, 0.2),
    "compressed image": (compressed_message, 0.2),
    "camera_info": (camera_info, 0.1),
    "calibration file": (calibration_file, 0.1),
    "configuration": (configuration, 0.1),
    "trajectory file": (trajectory_file, 0.1),
    "dataset": (dataset, 0.05),
    "bag": (bag, 0.03),
    "checkpoint": (checkpoint, 0.1),
    "reset_to_pose": (reset_pose, 0.02),
}
"""Each with its share of a long run; the slow ones get less."""
