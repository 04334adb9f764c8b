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

"""What comes in messages: images, compressed images, camera_info, requests to continue from a pose."""

from __future__ import annotations

import random
import struct
import zlib
from functools import cache
from types import SimpleNamespace

import cv2
import numpy as np
import tiny_datasets
from damage import mutated, number

from macvo_ros.images.camera_info import CameraInfo, StereoInput
from macvo_ros.images.image_decoding import BYTES_PER_PIXEL, decode_compressed, decode_image


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
