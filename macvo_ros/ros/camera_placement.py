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

"""Where the camera sits on the robot: from TF, or the identity if told so."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import numpy.typing as npt
from rclpy.lifecycle import LifecycleNode
from rclpy.time import Time

from macvo_ros.ros.optional_packages import Buffer, TransformException, TransformListener
from macvo_ros.ros.parameters import NodeConfig
from macvo_ros.ros.tracking import Refusal
from macvo_ros.ros.transforms import transform_matrix

Float64 = npt.NDArray[np.float64]

FIRST_WAIT = 2.0
"""Seconds the worker waits for the first transform: latched ones arrive a moment after start."""


class CameraPlacement:
    """Looks up frames in the base frame. The listener runs on the executor, `base_from` on the worker."""

    def __init__(self, node: LifecycleNode, config: NodeConfig) -> None:
        self._config = config
        self._buffer: Any = Buffer()
        self._listener: Any = None if config.camera_at_base else TransformListener(self._buffer, node)
        self._closed = threading.Event()
        self._patient = True

    def close(self) -> None:
        """Stop listening, and wake a worker that waits."""
        self._closed.set()
        if self._listener is not None:
            self._listener.unregister()

    def base_from(self, frame: str) -> Float64:
        """(4, 4) pose of `frame` in the base frame, metres; Refusal while TF does not know it."""
        if self._config.camera_at_base or frame == self._config.base_frame.removeprefix("/"):
            return np.eye(4)
        if not frame:
            raise Refusal(
                "transform",
                "the left image's header names no frame, so TF cannot say where the camera is; set frame_id in the "
                "camera driver, or the parameter camera_at_base",
            )
        waited = 0.0
        while True:
            try:
                message = self._buffer.lookup_transform(self._config.base_frame, frame, Time())
                pose = transform_matrix(message.transform)
                if pose is None:
                    raise Refusal("transform", f"the transform of {frame!r} in TF is not a rotation and a translation")
                return pose
            except TransformException as error:
                if not self._patient or waited >= FIRST_WAIT or self._closed.wait(0.02):
                    self._patient = False
                    raise Refusal(
                        "transform",
                        f"TF has no transform from {frame!r} to {self._config.base_frame!r} ({error}); publish it (for "
                        "example with static_transform_publisher), set base_frame, or set camera_at_base if the base "
                        "frame is the left optical frame",
                    ) from error
                waited += 0.02
