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

"""What happens to cameras on robots, done to a rendered sequence whose truth is known."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import partial

import cv2
import numpy as np

from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.images.frame import StereoFrame
from macvo_ros.rendering.sequence import RenderedSequence

BEGIN = 8
"""Frame at which the fault sets in; before it everything is well."""


class Worth(Enum):
    """What a frame can be worth."""

    GOOD = "good"
    IMPAIRED = "impaired"
    """Something is wrong with it; any status may be right, as long as the covariance is."""
    BLIND = "blind"
    """Whoever calls this tracked lies."""


@dataclass(frozen=True, eq=False)
class Shot:
    """A frame as it reaches the odometry; pose: (4, 4) true pose of the left camera in the world."""

    frame: StereoFrame
    pose: np.ndarray
    worth: Worth = Worth.GOOD


class Source:
    """Frames of a rendered sequence, by index and camera, each rendered once."""

    def __init__(self, sequence: RenderedSequence) -> None:
        self.sequence = sequence
        self._frames: dict[tuple[int, StereoCamera], StereoFrame] = {}

    def __len__(self) -> int:
        return len(self.sequence)

    def frame(self, index: int, camera: StereoCamera | None = None) -> StereoFrame:
        camera = camera or self.sequence.camera
        if (index, camera) not in self._frames:
            other = RenderedSequence(self.sequence.world, len(self), seed=7, camera=camera, rate=self.sequence.rate)
            self._frames[index, camera] = other[index]
        return self._frames[index, camera]

    def shot(self, index: int) -> Shot:
        assert self.sequence.ground_truth is not None
        return Shot(self.frame(index), self.sequence.ground_truth[index])

    def shots(self) -> list[Shot]:
        return [self.shot(i) for i in range(len(self))]


Change = Callable[[np.ndarray, np.random.Generator], np.ndarray]


def changed(shot: Shot, left: Change | None, right: Change | None, worth: Worth, rng: np.random.Generator) -> Shot:
    frame = dataclasses.replace(
        shot.frame,
        left=shot.frame.left if left is None else left(shot.frame.left, rng),
        right=shot.frame.right if right is None else right(shot.frame.right, rng),
    )
    return dataclasses.replace(shot, frame=frame, worth=worth)


def black(image: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.zeros_like(image)


def dark_noise(image: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """No light and full gain: noise with contrast enough to look like an image."""
    return np.clip(rng.normal(20, 8, image.shape), 0, 255).astype(np.uint8)


def palm(image: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A hand before the lens: a soft gradient, some noise."""
    y, x = np.mgrid[: image.shape[0], : image.shape[1]]
    shade = 40 + 30 * (x / image.shape[1]) + 15 * (y / image.shape[0])
    skin = shade[..., None] * np.array([1.0, 0.6, 0.5])
    return np.clip(skin + rng.normal(0, 2.0, image.shape), 0, 255).astype(np.uint8)


def exposed(image: np.ndarray, rng: np.random.Generator, gain: float) -> np.ndarray:
    return np.clip(image * gain, 0, 255).astype(np.uint8)


def flare(image: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A lamp in the lens: a bright blob and its veil, elsewhere in every image."""
    h, w = image.shape[:2]
    y, x = np.mgrid[:h, :w]
    cx, cy = rng.uniform(0.2, 0.8) * w, rng.uniform(0.2, 0.8) * h
    glow = 300 * np.exp(-((x - cx) ** 2 + (y - cy) ** 2) / (2 * (0.12 * w) ** 2)) + 40
    return np.clip(image + glow[..., None], 0, 255).astype(np.uint8)


def robot_arm(image: np.ndarray, rng: np.random.Generator, part: float, shift: int = 0) -> np.ndarray:
    """Part of the image shows something textured that moves with the camera; shift: its disparity, pixels."""
    h, w = image.shape[:2]
    texture = np.random.default_rng(5).integers(0, 255, (h // 4 + 1, w // 4 + 20), dtype=np.uint8)
    arm = cv2.resize(texture, None, fx=4, fy=4, interpolation=cv2.INTER_CUBIC)[:h, shift : shift + w]
    out = image.copy()
    edge = int(part * w)
    noise = rng.normal(0, 1.5, (h, edge, 1))
    out[:, :edge] = np.clip(arm[:, :edge, None] + noise, 0, 255).astype(np.uint8)
    return out


def curtain(image: np.ndarray, rng: np.random.Generator, part: float) -> np.ndarray:
    """Part of the image is covered by something dark and plain."""
    out = image.copy()
    edge = int(part * image.shape[1])
    out[:, :edge] = np.clip(rng.normal(12, 1.5, out[:, :edge].shape), 0, 255)
    return out


def dirt(image: np.ndarray, rng: np.random.Generator, seed: int) -> np.ndarray:
    """Drops on the lens: blurred discs at fixed places."""
    fixed = np.random.default_rng(seed)
    mask = np.zeros(image.shape[:2], np.float32)
    for _ in range(12):
        centre = (int(fixed.integers(image.shape[1])), int(fixed.integers(image.shape[0])))
        cv2.circle(mask, centre, int(fixed.integers(6, 22)), 1.0, -1)
    mask = cv2.GaussianBlur(mask, (0, 0), 4.0)[..., None]
    return (image * (1 - 0.8 * mask) + 0.8 * mask * cv2.GaussianBlur(image, (0, 0), 12.0)).astype(np.uint8)


Fault = Callable[[Source, np.random.Generator], list[Shot]]


def apply(name: str, source: Source, seed: int = 0, after: int = 24) -> list[Shot]:
    """The shots of a fault, up to `after` frames behind its end."""
    shots = FAULTS[name](source, np.random.default_rng(seed))
    end = max((i for i, shot in enumerate(shots) if shot.worth is not Worth.GOOD), default=BEGIN + after)
    return shots[: end + 1 + after]


def drops(source: Source, rng: np.random.Generator, share: float) -> list[Shot]:
    return [shot for i, shot in enumerate(source.shots()) if i < BEGIN or rng.random() >= share]


def burst(source: Source, rng: np.random.Generator, length: int) -> list[Shot]:
    """Frames that never arrive, all at once: a stalled network, or a second of left images only."""
    return [source.shot(i) for i in range(len(source)) if not BEGIN <= i < BEGIN + length]


def spoiled(
    source: Source, rng: np.random.Generator, left: Change | None, right: Change | None, length: int, worth: Worth
) -> list[Shot]:
    """Frames BEGIN to BEGIN + length, changed."""
    return [
        changed(shot, left, right, worth, rng) if BEGIN <= i < BEGIN + length else shot
        for i, shot in enumerate(source.shots())
    ]


def flicker(source: Source, rng: np.random.Generator, right_too: bool) -> list[Shot]:
    """Every frame from BEGIN on exposed otherwise; the right camera with the left or by itself."""
    shots = source.shots()
    for i in range(BEGIN, min(BEGIN + 12, len(shots))):
        left = partial(exposed, gain=(0.4, 1.8, 1.0)[i % 3])
        shots[i] = changed(shots[i], left, left if right_too else None, Worth.IMPAIRED, rng)
    return shots


def frozen(source: Source, rng: np.random.Generator, length: int, left: bool) -> list[Shot]:
    """The driver repeats its last image with new stamps: of both cameras, or of the right one only."""
    shots = source.shots()
    last = shots[BEGIN - 1].frame
    for i in range(BEGIN, BEGIN + length):
        kept = {"left": last.left, "right": last.right} if left else {"right": last.right}
        worth = Worth.BLIND if left else Worth.IMPAIRED
        shots[i] = dataclasses.replace(shots[i], frame=dataclasses.replace(shots[i].frame, **kept), worth=worth)
    return shots


def swapped(source: Source, rng: np.random.Generator, length: int) -> list[Shot]:
    shots = source.shots()
    for i in range(BEGIN, BEGIN + length):
        frame = shots[i].frame
        frame = dataclasses.replace(frame, left=frame.right, right=frame.left)
        shots[i] = dataclasses.replace(shots[i], frame=frame, worth=Worth.BLIND)
    return shots


def longer_lens(camera: StereoCamera) -> StereoCamera:
    return dataclasses.replace(camera, fx=1.1 * camera.fx, fy=1.1 * camera.fy)


def smaller_image(camera: StereoCamera) -> StereoCamera:
    return camera.resized(3 * camera.width // 4, 3 * camera.height // 4)


def other_camera(
    source: Source, rng: np.random.Generator, other: Callable[[StereoCamera], StereoCamera], length: int
) -> list[Shot]:
    """Another lens or image size for a while; the first frame of each cannot be tracked against the one before."""
    shots = source.shots()
    camera = other(source.sequence.camera)
    for i in range(BEGIN, BEGIN + length):
        shots[i] = dataclasses.replace(shots[i], frame=source.frame(i, camera))
    for i in (BEGIN, BEGIN + length):
        if i < len(shots):
            shots[i] = dataclasses.replace(shots[i], worth=Worth.BLIND)
    return shots


def clock_jump(source: Source, rng: np.random.Generator, seconds: float) -> list[Shot]:
    """The stamps jump ahead once and go on from there; the images know nothing of it."""
    shots = source.shots()
    ahead = round(seconds * 1e9)
    for i in range(BEGIN, len(shots)):
        frame = shots[i].frame
        shots[i] = dataclasses.replace(shots[i], frame=dataclasses.replace(frame, stamp=frame.stamp + ahead))
    if seconds > 5:
        shots[BEGIN] = dataclasses.replace(shots[BEGIN], worth=Worth.BLIND)
    return shots


def jitter(source: Source, rng: np.random.Generator) -> list[Shot]:
    """Stamps off by up to 20 ms each, still in order."""
    shots = source.shots()
    for i in range(BEGIN, len(shots)):
        frame = shots[i].frame
        stamp = frame.stamp + int(rng.uniform(-20e6, 20e6))
        shots[i] = dataclasses.replace(shots[i], frame=dataclasses.replace(frame, stamp=stamp))
    return shots


def late_right(source: Source, rng: np.random.Generator, length: int) -> list[Shot]:
    """The right camera runs a frame behind, with a stamp that hides it."""
    shots = source.shots()
    for i in range(BEGIN, BEGIN + length):
        frame = dataclasses.replace(shots[i].frame, right=source.frame(i - 1).right)
        shots[i] = dataclasses.replace(shots[i], frame=frame, worth=Worth.IMPAIRED)
    return shots


_LENGTH = 12


def _spoil(left: Change | None, right: Change | None, worth: Worth, length: int = _LENGTH) -> Fault:
    return partial(spoiled, left=left, right=right, length=length, worth=worth)


FAULTS: dict[str, Fault] = {
    "none": lambda source, rng: source.shots(),
    "5 % dropped": partial(drops, share=0.05),
    "30 % dropped": partial(drops, share=0.3),
    "60 % dropped": partial(drops, share=0.6),
    "burst of 6 lost": partial(burst, length=6),
    "a second of left images only": partial(burst, length=15),
    "black-out of 1": _spoil(black, black, Worth.BLIND, 1),
    "black-out of 5": _spoil(black, black, Worth.BLIND, 5),
    "black-out of 20": _spoil(black, black, Worth.BLIND, 20),
    "black-out of 50": _spoil(black, black, Worth.BLIND, 50),
    "left lens covered": _spoil(palm, None, Worth.BLIND),
    "right lens covered": _spoil(None, palm, Worth.BLIND),
    "dark, noise only": _spoil(dark_noise, dark_noise, Worth.BLIND),
    "exposure jumps": partial(flicker, right_too=True),
    "exposure jumps, left only": partial(flicker, right_too=False),
    "lens flare": _spoil(flare, flare, Worth.IMPAIRED),
    "drops on the lenses": _spoil(partial(dirt, seed=1), partial(dirt, seed=2), Worth.IMPAIRED),
    "half covered, dark": _spoil(partial(curtain, part=0.5), partial(curtain, part=0.5), Worth.IMPAIRED),
    "half covered, left only": _spoil(partial(curtain, part=0.5), None, Worth.IMPAIRED),
    "third is robot arm": _spoil(
        partial(robot_arm, part=0.35), partial(robot_arm, part=0.35, shift=12), Worth.IMPAIRED
    ),
    "half is robot arm": _spoil(partial(robot_arm, part=0.55), partial(robot_arm, part=0.55, shift=12), Worth.IMPAIRED),
    "frozen images": partial(frozen, length=_LENGTH, left=True),
    "right image frozen": partial(frozen, length=_LENGTH, left=False),
    "right image a frame late": partial(late_right, length=_LENGTH),
    "cameras swapped": partial(swapped, length=_LENGTH),
    "another lens": partial(other_camera, other=longer_lens, length=_LENGTH),
    "another resolution": partial(other_camera, other=smaller_image, length=_LENGTH),
    "clock jumps 0.5 s ahead": partial(clock_jump, seconds=0.5),
    "clock jumps 3 s ahead": partial(clock_jump, seconds=3.0),
    "clock jumps an hour ahead": partial(clock_jump, seconds=3600.0),
    "stamps jitter by 20 ms": jitter,
}
