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

"""The topics the node publishes, most urgent first; whatever costs time is computed only while somebody listens."""

from __future__ import annotations

import time
from collections import deque
from typing import Any

import numpy as np
import numpy.typing as npt
from geometry_msgs.msg import PoseStamped, PoseWithCovarianceStamped
from nav_msgs.msg import Odometry, Path
from rclpy.lifecycle import LifecycleNode
from rclpy.qos import QoSProfile, qos_profile_sensor_data
from sensor_msgs.msg import Image, PointCloud2

from macvo_ros.odometry.estimate import Estimate
from macvo_ros.odometry.message_fields import (
    CLOUD_DTYPE,
    is_published,
    keypoint_cloud,
    odometry_fields,
    status_fields,
    transform_cloud,
)
from macvo_ros.ros import messages
from macvo_ros.ros.counters import Counts
from macvo_ros.ros.optional_packages import TransformBroadcaster
from macvo_ros.ros.parameters import NodeConfig
from macvo_ros.ros.tracking import Tracked


class Outputs:
    """Publishers of one configured node. `publish` runs on the worker's thread."""

    def __init__(self, node: LifecycleNode, config: NodeConfig) -> None:
        from macvo_ros.msg import Status  # generated: only there after a build

        self.config = config
        self._node = node
        self._status_type = Status
        self._publishers: list[Any] = []
        self._odometry = self._create(Odometry, "~/odometry")
        self._pose = self._create(PoseWithCovarianceStamped, "~/pose")
        self._status = self._create(Status, "~/status")
        self._keypoints = self._create(PointCloud2, "~/keypoints", qos_profile_sensor_data)
        self._path = self._create(Path, "~/path")
        self._map = self._create(PointCloud2, "~/map")
        self._depth = self._create(Image, "~/depth", qos_profile_sensor_data)
        self._depth_sigma = self._create(Image, "~/depth_sigma", qos_profile_sensor_data)
        self._flow_sigma = self._create(Image, "~/flow_sigma", qos_profile_sensor_data)
        self._debug = self._create(Image, "~/debug/keypoints", qos_profile_sensor_data)
        self._broadcaster = TransformBroadcaster(node)
        self._poses: deque[PoseStamped] = deque(maxlen=config.path_poses)
        self._clouds: deque[npt.NDArray[np.void]] = deque(maxlen=config.map_frames)
        self._drawn = -np.inf

    def clear(self) -> None:
        """Begin path and map anew (after a reset)."""
        self._poses.clear()
        self._clouds.clear()

    def publish_pose(self, tracked: Tracked) -> None:
        """Odometry, pose and TF of an estimate; nothing of a lost one, which no consumer would understand."""
        estimate = tracked.estimate
        if tracked.new_path:
            self.clear()
        if not is_published(estimate.status):
            return
        fields = odometry_fields(estimate)
        head = messages.header(estimate.frame.stamp, self.config.odom_frame)
        if self.config.publish.odometry:
            self._odometry.publish(messages.odometry_message(fields, head, self.config.base_frame))
        if self.config.publish_tf:
            self._broadcaster.sendTransform(messages.transform_message(fields, head, self.config.base_frame))
        if self._wanted(self._pose, self.config.publish.pose):
            self._pose.publish(messages.pose_message(fields, head))
        self._poses.append(messages.path_pose_message(fields, head))

    def publish_status(self, estimate: Estimate, counts: Counts, latency: float, overhead: float) -> None:
        """~/status of an estimate. latency, overhead: seconds, as in msg/Status."""
        message = self._status_type(**status_fields(estimate))
        message.header = messages.header(estimate.frame.stamp, self.config.odom_frame)
        message.latency, message.overhead = latency, overhead
        message.age = (self._node.get_clock().now().nanoseconds - estimate.frame.stamp) * 1e-9
        for name in ("received", "processed", "dropped", "refused", "unpaired", "lost", "degraded", "resets"):
            setattr(message, name, getattr(counts, name))
        message.waiting = min(counts.waiting, 255)
        self._status.publish(message)

    def publish_scene(self, tracked: Tracked) -> None:
        """Clouds, path and images, for whoever looks."""
        estimate, switches = tracked.estimate, self.config.publish
        head = messages.header(estimate.frame.stamp, tracked.pair.frame_id)
        wants_map = self._wanted(self._map, switches.map)
        if self._wanted(self._keypoints, switches.keypoints) or wants_map:
            cloud = keypoint_cloud(estimate.landmarks, tracked.picture())
            if switches.keypoints:
                turned = not np.array_equal(tracked.camera_in_image, np.eye(4))
                seen = transform_cloud(cloud, tracked.camera_in_image) if turned else cloud
                self._keypoints.publish(messages.cloud_message(seen, head))
            if wants_map and is_published(estimate.status):
                self._clouds.append(transform_cloud(cloud, tracked.camera_in_odom))
        self._publish_history(estimate.frame.stamp, wants_map)
        self._publish_images(tracked, head)

    def destroy(self) -> None:
        """Take the publishers off the graph."""
        for publisher in (*self._publishers, self._broadcaster.pub_tf):
            self._node.destroy_publisher(publisher)
        self._publishers.clear()

    def _publish_history(self, stamp: int, wants_map: bool) -> None:
        now = time.monotonic()
        if now - self._drawn < self.config.map_period:
            return
        self._drawn = now
        head = messages.header(stamp, self.config.odom_frame)
        if self._wanted(self._path, self.config.publish.path):
            self._path.publish(Path(header=head, poses=list(self._poses)))
        if wants_map:
            cloud = np.concatenate([np.zeros(0, CLOUD_DTYPE), *self._clouds])
            self._map.publish(messages.cloud_message(cloud, head))

    def _publish_images(self, tracked: Tracked, head: Any) -> None:
        estimate, switches = tracked.estimate, self.config.publish
        wants_depth = self._wanted(self._depth, switches.depth)
        wants_sigma = self._wanted(self._depth_sigma, switches.depth)
        if (wants_depth or wants_sigma) and (maps := messages.depth_maps(estimate)) is not None:
            if wants_depth:
                self._depth.publish(messages.image_message(maps[0], "32FC1", head))
            if wants_sigma:
                self._depth_sigma.publish(messages.image_message(maps[1], "32FC1", head))
        if self._wanted(self._flow_sigma, switches.flow_sigma):
            sigma = messages.flow_sigma_map(estimate)
            if sigma is not None:
                self._flow_sigma.publish(messages.image_message(sigma, "32FC1", head))
        if self._wanted(self._debug, switches.debug):
            drawn = messages.keypoint_image(estimate.landmarks, tracked.picture())
            self._debug.publish(messages.image_message(drawn, "rgb8", head))

    def _create(self, kind: Any, name: str, qos: QoSProfile | int = 10) -> Any:
        publisher = self._node.create_publisher(kind, name, qos)
        self._publishers.append(publisher)
        return publisher

    @staticmethod
    def _wanted(publisher: Any, switch: bool) -> bool:
        return switch and publisher.get_subscription_count() > 0
