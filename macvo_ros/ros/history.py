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

"""~/path and ~/map: where the robot was and what it saw there, for those who look now and those who come later."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Any

import numpy as np
import numpy.typing as npt
from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Path
from rclpy.lifecycle import LifecycleNode
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import PointCloud2

from macvo_ros.odometry.message_fields import CLOUD_DTYPE
from macvo_ros.ros import messages
from macvo_ros.ros.parameters import NodeConfig

LATCHED = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL)
"""As RViz expects it of a map: the last one is there for whoever subscribes later."""


class History:
    """Remembers poses and clouds, and publishes them now and then while somebody listens.

    Filled on the worker's thread; `greet` runs on the executor's.
    """

    def __init__(self, node: LifecycleNode, config: NodeConfig) -> None:
        self.config = config
        self._path = node.create_publisher(Path, "~/path", LATCHED)
        self._map = node.create_publisher(PointCloud2, "~/map", LATCHED)
        self._poses: deque[PoseStamped] = deque(maxlen=config.path_poses)
        self._clouds: deque[npt.NDArray[np.void]] = deque(maxlen=config.map_frames)
        self._stamp = 0
        self._published = -np.inf
        self._listeners = {self._path: 0, self._map: 0}
        self._lock = threading.Lock()

    @property
    def publishers(self) -> list[Any]:
        """To be destroyed with the others."""
        return list(self._listeners)

    @property
    def map_is_watched(self) -> bool:
        """Whether somebody sees the map now."""
        return self.config.publish.map and self._map.get_subscription_count() > 0

    def clear(self) -> None:
        """Begin anew (after a reset)."""
        with self._lock:
            self._poses.clear()
            self._clouds.clear()

    def append_pose(self, pose: PoseStamped) -> None:
        """The robot was there."""
        with self._lock:
            self._poses.append(pose)

    def correct_poses(self, corrections: dict[int, npt.NDArray[np.float64]]) -> None:
        """Earlier (4, 4) poses by stamp, nanoseconds, as a window of frames thinks of them now."""
        with self._lock:
            for pose in reversed(self._poses):
                if not corrections:
                    break
                corrected = corrections.pop(messages.path_pose_stamp(pose), None)
                if corrected is not None:
                    messages.correct_path_pose(pose, corrected)

    def append_cloud(self, cloud: npt.NDArray[np.void]) -> None:
        """It saw these points, in odom."""
        with self._lock:
            self._clouds.append(cloud)

    def publish(self, stamp: int) -> None:
        """What there is at `stamp`, nanoseconds, at most once in `map_period`, to those who listen."""
        self._stamp = stamp
        now = time.monotonic()
        if now - self._published >= self.config.map_period:
            self._published = now
            self._listeners = self._count()
            self._publish([publisher for publisher, count in self._listeners.items() if count])

    def greet(self) -> None:
        """Publish to those who came since anything was published: the images may have ended long ago."""
        before, self._listeners = self._listeners, self._count()
        if self._stamp:
            self._publish([publisher for publisher, count in self._listeners.items() if count > before[publisher]])

    def _count(self) -> dict[Any, int]:
        return {publisher: publisher.get_subscription_count() for publisher in self._listeners}

    def _publish(self, publishers: list[Any]) -> None:
        head = messages.header(self._stamp, self.config.odom_frame)
        with self._lock:
            if self._path in publishers and self.config.publish.path:
                self._path.publish(Path(header=head, poses=list(self._poses)))
            if self._map in publishers and self.config.publish.map:
                cloud = np.concatenate([np.zeros(0, CLOUD_DTYPE), *self._clouds])
                self._map.publish(messages.cloud_message(cloud, head))
