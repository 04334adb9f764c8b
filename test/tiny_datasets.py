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

"""Tiny datasets of every layout, written to a folder, with the truth they were made of."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt

from macvo_ros.geometry.se3 import exp_so3, quaternion, transform

Float64 = npt.NDArray[np.float64]

KITTI_GREY = ((718.856, 0.0, 0.0, 0.0), (718.856, -386.1448, 0.0, 0.0))
"""fx, P[3], P[7], P[11] of KITTI's cameras 0 and 1 (sequence 00), and below of its colour cameras 2 and 3."""
KITTI_COLOUR = ((718.856, 45.38225, -0.1130887, 0.003779761), (718.856, -337.2877, 2.369057, 0.004915215))

EUROC_T_BS = (
    transform(exp_so3(np.array([0.02, -0.01, 1.55])), np.array([-0.02, -0.06, 0.01])),
    transform(exp_so3(np.array([0.02, 0.005, 1.56])), np.array([-0.02, 0.045, 0.008])),
)
"""Poses of the two raw cameras in the body."""


def image(seed: int, width: int, height: int, *, colour: bool = False) -> npt.NDArray[np.uint8]:
    """Noise, (H, W) grey or (H, W, 3) RGB."""
    shape = (height, width, 3) if colour else (height, width)
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def save(path: Path, pixels: npt.NDArray[np.uint8]) -> None:
    """Write RGB or grey pixels as the suffix of `path` says."""
    path.parent.mkdir(parents=True, exist_ok=True)
    stored = cv2.cvtColor(pixels, cv2.COLOR_RGB2BGR) if pixels.ndim == 3 else pixels
    assert cv2.imwrite(str(path), stored)


def trajectory(count: int, seed: int = 0) -> Float64:
    """(count, 4, 4) poses of a wandering body, metres."""
    rng = np.random.default_rng(seed)
    poses = [transform(exp_so3(rng.normal(size=3)), rng.normal(size=3))]
    for _ in range(count - 1):
        poses.append(poses[-1] @ transform(exp_so3(rng.normal(0, 0.05, 3)), rng.normal(0, 0.1, 3)))
    return np.array(poses)


def tartanair(path: Path, count: int = 5, version: int = 2, size: tuple[int, int] = (32, 32)) -> Float64:
    """Write a TartanAir trajectory; returns its NED poses."""
    poses = trajectory(count)
    left, right, name = {
        1: ("image_left/{:06d}_left.png", "image_right/{:06d}_right.png", "pose_left.txt"),
        2: ("image_lcam_front/{:06d}_lcam_front.png", "image_rcam_front/{:06d}_rcam_front.png", "pose_lcam_front.txt"),
    }[version]
    for i in range(count):
        save(path / left.format(i), image(2 * i, *size, colour=True))
        save(path / right.format(i), image(2 * i + 1, *size, colour=True))
    rows = [[*pose[:3, 3], *quaternion(pose[:3, :3])] for pose in poses]
    np.savetxt(path / name, rows)
    return poses


def kitti(path: Path, count: int = 4, *, colour: bool = False, size: tuple[int, int] = (40, 24)) -> Float64:
    """Write `sequences/00` and `poses/00.txt`; returns the poses of camera 0."""
    folder = path / "sequences/00"
    names, pair = ((2, 3), KITTI_COLOUR) if colour else ((0, 1), KITTI_GREY)
    lines = []
    for name, (fx, x, y, z) in zip(names, pair, strict=True):
        P = [fx, 0, size[0] / 2, x, 0, fx, size[1] / 2, y, 0, 0, 1, z]
        lines.append(f"P{name}: " + " ".join(f"{n:.12e}" for n in P))
        for i in range(count):
            save(folder / f"image_{name}/{i:06d}.png", image(10 * name + i, *size, colour=colour))
    (folder / "calib.txt").write_text("\n".join(lines) + "\n")
    (folder / "times.txt").write_text("".join(f"{i * 0.1037:e}\n" for i in range(count)))
    poses = trajectory(count)
    (path / "poses").mkdir()
    np.savetxt(path / "poses/00.txt", poses[:, :3].reshape(-1, 12))
    return poses


EUROC_START = 1403636584763555584
EUROC_PERIOD = 50_000_000


def euroc(path: Path, count: int = 4, size: tuple[int, int] = (64, 48), model: str = "radial-tangential") -> None:
    """Write `mav0` with raw images and ground truth at 200 Hz of `euroc_body`."""
    D = [-0.28, 0.07, 0.0002, 1.8e-05] if model == "radial-tangential" else [0.0034, 0.0007, -0.002, 0.0002]
    for number, T_BS in enumerate(EUROC_T_BS):
        camera = path / f"mav0/cam{number}"
        rows = ["#timestamp [ns],filename"]
        for i in range(count):
            stamp = EUROC_START + i * EUROC_PERIOD
            save(camera / f"data/{stamp}.png", image(100 * number + i, *size))
            rows.append(f"{stamp},{stamp}.png")
        (camera / "data.csv").write_text("\n".join(rows) + "\n")
        (camera / "sensor.yaml").write_text(
            f"sensor_type: camera\nT_BS:\n  cols: 4\n  rows: 4\n  data: {T_BS.ravel().tolist()}\nrate_hz: 20\n"
            f"resolution: [{size[0]}, {size[1]}]\ncamera_model: pinhole\n"
            f"intrinsics: [{0.61 * size[0]}, {0.608 * size[0]}, {0.49 * size[0]}, {0.52 * size[1]}]\n"
            f"distortion_model: {model}\ndistortion_coefficients: {D}\n"
        )
    truth = path / "mav0/state_groundtruth_estimate0/data.csv"
    truth.parent.mkdir()
    rows = ["#timestamp, p_RS_R_x [m], p_RS_R_y [m], p_RS_R_z [m], q_RS_w [], q_RS_x [], q_RS_y [], q_RS_z [], v"]
    for stamp in range(EUROC_START - 12_000_000, EUROC_START + count * EUROC_PERIOD, 5_000_000):
        pose = euroc_body(stamp)
        x, y, z, w = quaternion(pose[:3, :3])
        rows.append(",".join(map(repr, [stamp, *map(float, [*pose[:3, 3], w, x, y, z]), 0.0, 0.0])))
    truth.write_text("\n".join(rows) + "\n")


def euroc_body(stamp: int) -> Float64:
    """True (4, 4) pose of the body: a turn at constant rate on a straight line, so that interpolation is exact."""
    t = (stamp - EUROC_START) / 1e9
    start = transform(exp_so3(np.array([0.3, 1.2, -2.0])), np.zeros(3))
    return (
        transform(np.eye(3), np.array([4.0, -1.0 + 0.5 * t, 1.0]))
        @ start
        @ transform(exp_so3(np.array([0.4, -0.8, 0.3]) * t), np.zeros(3))
    )


RECTIFIED_YAML = "width: 32\nheight: 24\nfx: 30.5\nfy: 30.0\ncx: 15.5\ncy: 11.5\nbaseline: 0.12\n"
RAW_YAML = """\
width: 64
height: 48
left: {model: plumb_bob, K: [39.0, 38.9, 31.0, 24.5], D: [-0.28, 0.07, 0.0002, 1e-5]}
right: {model: plumb_bob, K: [38.9, 38.8, 32.0, 24.0], D: [-0.28, 0.07, -0.0001, -3e-5]}
R: [[1, 0, 0], [0, 0.99995, -0.01], [0, 0.01, 0.99995]]
T: [-0.11, 0.001, 0.0005]
"""


def folder(path: Path, count: int = 4, *, raw: bool = False, suffix: str = ".png") -> Float64:
    """Write a plain folder with times and ground truth; returns the poses."""
    size = (64, 48) if raw else (32, 24)
    for i in range(count):
        save(path / f"left/{i}{suffix}", image(i, *size, colour=not raw))
        save(path / f"right/{i}{suffix}", image(50 + i, *size, colour=not raw))
    (path / "calib.yaml").write_text(RAW_YAML if raw else RECTIFIED_YAML)
    times = [f"{1403636584 + i}.123456789" for i in range(count)]
    (path / "times.txt").write_text("\n".join(times) + "\n")
    poses = trajectory(count)
    rows = (
        " ".join([t, *map(repr, map(float, [*p[:3, 3], *quaternion(p[:3, :3])]))])
        for t, p in zip(times, poses, strict=True)
    )
    (path / "groundtruth.txt").write_text("# timestamp tx ty tz qx qy qz qw\n" + "\n".join(rows) + "\n")
    return poses


WRITERS = {"tartanair": tartanair, "euroc": euroc, "kitti": kitti, "folder": folder}
