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

"""A stereo sequence that is rendered when asked for, frame by frame, with its exact truth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from macvo_ros.errors import SequenceError
from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.geometry.se3 import exp_so3, log_so3
from macvo_ros.images.frame import StereoFrame
from macvo_ros.rendering.clearance import keep_clear
from macvo_ros.rendering.motion import Still, Trajectory
from macvo_ros.rendering.projection import View
from macvo_ros.rendering.sensor import Digitizer, Sensor
from macvo_ros.rendering.shading import shade
from macvo_ros.rendering.truth import Truth, truth
from macvo_ros.rendering.visibility import look
from macvo_ros.rendering.worlds import World, build

Float64 = npt.NDArray[np.float64]

_BLUR_STEP = 1.5  # pixels between averaged sub-frames, about
_BLUR_DEPTH = 3.0  # metres, at which the translation's part of that is counted


class RenderedSequence:
    """Implements `macvo_ros.sequences.Sequence`. Frames do not depend on which were asked for before.

    world: a name (see `worlds.WORLDS`) or a World; frames: how many; rate: frames a second; camera: overrides the
    world's; still: the camera stays at its first pose; sensor: overrides the world's; name: of a World, for tables;
    texels: size of the textures.

    What comes too near to the camera in these frames, or stands in its way, is left out (`clearance.py`).

    The true pose of a blurred frame is the mean over its exposure: that is the one its image shows, and nothing in the
    image tells the pose of a single moment of a shaking hand.
    """

    def __init__(
        self,
        world: str | World,
        frames: int,
        seed: int = 0,
        *,
        camera: StereoCamera | None = None,
        rate: float = 15.0,
        still: bool = False,
        sensor: Sensor | None = None,
        name: str | None = None,
        texels: int = 1024,
    ) -> None:
        if frames < 1 or not rate > 0:
            raise SequenceError(
                f"a rendered sequence needs at least one frame and a positive rate, got {frames}, {rate}"
            )
        self.world = build(world, seed, texels) if isinstance(world, str) else world
        self.name = f"rendered {name or (world if isinstance(world, str) else 'world')} {seed}"
        self.camera = camera or self.world.camera
        self.rate = rate
        self.stamps: npt.NDArray[np.int64] = np.rint(np.arange(frames) * (1e9 / rate)).astype(np.int64)
        self._trajectory: Trajectory = self.world.trajectory
        if still:
            self._trajectory = Still(self._trajectory(0.0))
        self._digitizer = Digitizer(sensor or self.world.sensor, seed)
        views = [self.view(i / rate, right) for i in range(frames) for right in (False, True)]
        self.world = replace(self.world, scene=keep_clear(self.world.scene, views, self.world.trajectory))
        self.ground_truth: Float64 | None = np.stack([self.shown_pose(i / rate) for i in range(frames)])

    def __len__(self) -> int:
        return len(self.stamps)

    def _check(self, index: int) -> int:
        if not -len(self) <= index < len(self):
            raise IndexError(f"frame {index} of {len(self)}")
        return index % len(self)

    def shown_pose(self, time: float) -> Float64:
        """(4, 4) mean pose of the left camera over the exposure around `time` seconds."""
        poses = np.stack([self._trajectory(time + offset) for offset in self._moments(time)])
        pose = poses[len(poses) // 2].copy()
        turns = np.stack([log_so3(pose[:3, :3].T @ each[:3, :3]) for each in poses])
        pose[:3, :3] = pose[:3, :3] @ exp_so3(turns.mean(axis=0))
        pose[:3, 3] = poses[:, :3, 3].mean(axis=0)
        return np.asarray(pose)

    def view(self, time: float, right: bool = False, tilted: bool = False, *, shown: bool = False) -> View:
        """The left or right camera at `time` seconds; tilted: with the sensor's error of rectification.

        shown: at the mean pose of the exposure around it.
        """
        camera, pose = self.camera, self.shown_pose(time) if shown else self._trajectory(time)
        K = camera.K
        if right:
            K[0, 2] -= camera.disparity_offset
            offset = np.eye(4)
            offset[0, 3] = camera.baseline
            shift, roll = self._digitizer.sensor.tilt
            if tilted and (shift or roll):
                K[1, 2] += shift
                c, s = np.cos(roll), np.sin(roll)
                offset[:2, :2] = [[c, -s], [s, c]]
            pose = pose @ offset
        return View(K, camera.width, camera.height, pose, time)

    def __getitem__(self, index: int) -> StereoFrame:
        index = self._check(index)
        left, right = (self._image(index, side) for side in (False, True))
        return StereoFrame(left, right, int(self.stamps[index]), self.camera)

    def _image(self, index: int, right: bool) -> npt.NDArray[np.uint8]:
        time = index / self.rate
        offsets = self._moments(time)
        radiance = np.zeros((self.camera.height, self.camera.width, 3), np.float32)
        for offset in offsets:
            scene = self.world.scene
            radiance += shade(scene, look(scene, self.view(time + offset, right, tilted=True)))
        return self._digitizer.digitize(radiance / np.float32(len(offsets)), time, index, right)

    def _moments(self, time: float) -> Float64:
        """(M,) seconds from `time` of the instants that are averaged over the exposure: enough for a smooth blur."""
        exposure = self._digitizer.sensor.blur
        if not exposure:
            return np.zeros(1)
        motion = np.linalg.solve(self._trajectory(time - exposure / 2), self._trajectory(time + exposure / 2))
        turn = np.arccos(np.clip((np.trace(motion[:3, :3]) - 1) / 2, -1, 1))
        pixels = self.camera.fx * (turn + np.linalg.norm(motion[:3, 3]) / _BLUR_DEPTH)
        count = int(np.clip(np.ceil(pixels / _BLUR_STEP), 3, 16))
        return np.asarray(((np.arange(count) + 0.5) / count - 0.5) * exposure)

    def truth(self, index: int) -> Truth:
        """Truth at the pixels of left image `index`; flow goes to where the next frame is, even after the last one."""
        time = self._check(index) / self.rate
        scene = self.world.scene
        left, right, following = (
            look(scene, view)
            for view in (
                self.view(time, shown=True),
                self.view(time, right=True, shown=True),
                self.view(time + 1 / self.rate, shown=True),
            )
        )
        return truth(scene, left, right, following)
