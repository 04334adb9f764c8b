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

"""The topics the node publishes, most urgent first; what costs much time is computed only while somebody listens."""

from __future__ import annotations

from typing import Any

import numpy as np
from geometry_msgs.msg import PoseWithCovarianceStamped
from nav_msgs.msg import Odometry
from rclpy.lifecycle import LifecycleNode
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import Image, PointCloud2

from macvo_ros.odometry.estimate import Estimate
from macvo_ros.odometry.message_fields import (
    is_published,
    keypoint_cloud,
    odometry_fields,
    status_fields,
    transform_cloud,
)
from macvo_ros.ros import messages
from macvo_ros.ros.counters import Counts
from macvo_ros.ros.history import History
from macvo_ros.ros.optional_packages import TransformBroadcaster
from macvo_ros.ros.parameters import NodeConfig
from macvo_ros.ros.tracking import Tracked

SCENE = QoSProfile(depth=2, reliability=ReliabilityPolicy.RELIABLE)
"""Of clouds and images: reliable, as RViz and most tools ask; those who read slowly miss some, and nobody waits."""


class Outputs:
    """Publishers of one configured node. What publishes an estimate runs on the worker's thread."""

    def __init__(self, node: LifecycleNode, config: NodeConfig) -> None:
        from macvo_ros.msg import Status  # generated: only there after a build

        self._config = config
        self._node = node
        self._status_type = Status
        self._publishers: list[Any] = []
        self._odometry = self._create(Odometry, "~/odometry")
        self._pose = self._create(PoseWithCovarianceStamped, "~/pose")
        self._status = self._create(Status, "~/status")
        self._keypoints = self._create(PointCloud2, "~/keypoints", SCENE)
        self._depth = self._create(Image, "~/depth", SCENE)
        self._depth_sigma = self._create(Image, "~/depth_sigma", SCENE)
        self._flow_sigma = self._create(Image, "~/flow_sigma", SCENE)
        self._debug = self._create(Image, "~/debug/keypoints", SCENE)
        self._broadcaster = TransformBroadcaster(node)
        self._history = History(node, config)
        self._publishers += self._history.publishers

    def change(self, config: NodeConfig) -> None:
        """Use the live settings of `config` from now on."""
        self._config = self._history.config = config

    def greet(self) -> None:
        """Publish path and map to those who have just subscribed."""
        self._history.greet()

    def clear(self) -> None:
        """Begin path and map anew (after a reset)."""
        self._history.clear()

    def publish_pose(self, tracked: Tracked) -> None:
        """Odometry, pose and TF of an estimate; nothing of a lost one, which no consumer would understand."""
        estimate = tracked.estimate
        if tracked.new_path:
            self.clear()
        if not is_published(estimate.status):
            return
        fields = odometry_fields(estimate)
        head = messages.header(estimate.frame.stamp, self._config.odom_frame)
        if self._config.publish.odometry:
            self._odometry.publish(messages.odometry_message(fields, head, self._config.base_frame))
        if self._config.publish_tf:
            self._broadcaster.sendTransform(messages.transform_message(fields, head, self._config.base_frame))
        if self._wanted(self._pose, self._config.publish.pose):
            self._pose.publish(messages.pose_message(fields, head))
        self._history.correct_poses(dict(estimate.corrections))
        self._history.append_pose(messages.path_pose_message(fields, head))

    def publish_status(self, estimate: Estimate, counts: Counts, latency: float, overhead: float) -> None:
        """~/status of an estimate. latency, overhead: seconds, as in msg/Status."""
        message = self._status_type(**status_fields(estimate))
        message.header = messages.header(estimate.frame.stamp, self._config.odom_frame)
        message.latency, message.overhead = latency, overhead
        now = self._node.get_clock().now().nanoseconds
        message.age = (now - estimate.frame.stamp) * 1e-9 if now else np.nan  # 0: nothing has come on /clock
        for name in ("received", "processed", "dropped", "refused", "unpaired", "lost", "degraded", "resets"):
            setattr(message, name, getattr(counts, name))
        message.waiting = min(counts.waiting, 255)
        self._status.publish(message)

    def publish_scene(self, tracked: Tracked) -> None:
        """Clouds, path and images, for whoever looks."""
        estimate, switches = tracked.estimate, self._config.publish
        head = messages.header(estimate.frame.stamp, tracked.pair.frame_id)
        wanted = self._wanted(self._keypoints, switches.keypoints)
        # Who comes late gets a map, too; its points are grey if nobody was there to see their colours.
        seen = tracked.picture() if wanted or self._history.map_is_watched else estimate.frame.left
        cloud = keypoint_cloud(estimate.landmarks, seen)
        if wanted:
            turned = not np.array_equal(tracked.camera_in_image, np.eye(4))
            in_image = transform_cloud(cloud, tracked.camera_in_image) if turned else cloud
            self._keypoints.publish(messages.cloud_message(in_image, head))
        if switches.map and is_published(estimate.status):
            self._history.append_cloud(transform_cloud(cloud, tracked.camera_in_odom))
        self._history.publish(estimate.frame.stamp)
        self._publish_images(tracked, head)

    def destroy(self) -> None:
        """Take the publishers off the graph."""
        for publisher in (*self._publishers, self._broadcaster.pub_tf):
            self._node.destroy_publisher(publisher)
        self._publishers.clear()

    def _publish_images(self, tracked: Tracked, head: Any) -> None:
        estimate, switches = tracked.estimate, self._config.publish
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
