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

"""Our topics in a bag: what the node would have published, computed offline."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from macvo_ros.bags.status_definition import STATUS_TYPE
from macvo_ros.bags.writer import BagWriter
from macvo_ros.odometry.estimate import Estimate
from macvo_ros.odometry.message_fields import (
    CLOUD_DTYPE,
    CLOUD_FIELDS,
    POINT_FIELD_FLOAT32,
    is_published,
    keypoint_cloud,
    odometry_fields,
    status_fields,
    transform_cloud,
)
from macvo_ros.odometry.status import Status

Float64 = npt.NDArray[np.float64]

NAMESPACE = "/macvo"


class EstimateWriter:
    """Writes each estimate under /macvo as the node does: odometry, pose, keypoints, status, /tf; the path last.

    /tf_static comes first, with what the recording knew, so that the new bag can be played beside nothing else.
    """

    def __init__(
        self,
        bag: BagWriter,
        *,
        base_frame: str,
        camera_frame: str,
        odom_frame: str = "odom",
        raw_from_rectified: Float64 | None = None,
        static: Sequence[tuple[str, str, Float64]] = (),
        unpaired: npt.NDArray[np.int64] | None = None,
    ) -> None:
        """raw_from_rectified: (4, 4) pose of the tracked camera in `camera_frame`, where we rectified the images.

        static: transforms of the recording (`static_transforms`). unpaired: sorted stamps, nanoseconds, of its images
        without a partner.
        """
        self._bag = bag
        self._base_frame, self._camera_frame, self._odom_frame = base_frame, camera_frame, odom_frame
        self._raw_from_rectified = raw_from_rectified
        self._static = static
        self._unpaired = np.empty(0, np.int64) if unpaired is None else unpaired
        self._seen: Counter[Status] = Counter()
        self._path: list[Any] = []

    def write(self, estimate: Estimate) -> None:
        """Write one estimate; a lost one is silence on odometry, as in the node."""
        bag, stamp = self._bag, estimate.frame.stamp
        header = bag.header(stamp, self._odom_frame)
        if self._static and not self._seen:
            bag.write_static(stamp, self._static)
        self._seen[estimate.status] += 1
        bag.write(f"{NAMESPACE}/status", stamp, self._status(estimate))
        if not is_published(estimate.status):
            return
        fields = odometry_fields(estimate)
        pose = bag.message(
            "geometry_msgs/msg/PoseWithCovariance",
            pose=bag.pose(fields.position, fields.orientation),
            covariance=fields.pose_covariance,
        )
        velocity = bag.message(
            "geometry_msgs/msg/Twist",
            linear=bag.vector("geometry_msgs/msg/Vector3", fields.linear),
            angular=bag.vector("geometry_msgs/msg/Vector3", fields.angular),
        )
        odometry = bag.message(
            "nav_msgs/msg/Odometry",
            header=header,
            child_frame_id=self._base_frame,
            pose=pose,
            twist=bag.message(
                "geometry_msgs/msg/TwistWithCovariance", twist=velocity, covariance=fields.twist_covariance
            ),
        )
        bag.write(f"{NAMESPACE}/odometry", stamp, odometry)
        stamped = bag.message("geometry_msgs/msg/PoseWithCovarianceStamped", header=header, pose=pose)
        bag.write(f"{NAMESPACE}/pose", stamp, stamped)
        bag.write("/tf", stamp, bag.transforms(stamp, [(self._odom_frame, self._base_frame, estimate.pose)]))
        bag.write(f"{NAMESPACE}/keypoints", stamp, self._cloud(estimate))
        self._path.append(bag.message("geometry_msgs/msg/PoseStamped", header=header, pose=pose.pose))

    def finish(self) -> None:
        """Write the whole path, once."""
        if self._path:
            last = self._path[-1].header
            stamp = last.stamp.sec * 1_000_000_000 + last.stamp.nanosec
            path = self._bag.message("nav_msgs/msg/Path", header=last, poses=self._path)
            self._bag.write(f"{NAMESPACE}/path", stamp, path, latched=True)

    def _cloud(self, estimate: Estimate) -> Any:
        cloud = keypoint_cloud(estimate.landmarks, estimate.frame.left)
        if self._raw_from_rectified is not None:
            cloud = transform_cloud(cloud, self._raw_from_rectified)
        fields = [
            self._bag.message(
                "sensor_msgs/msg/PointField", name=name, offset=4 * index, datatype=POINT_FIELD_FLOAT32, count=1
            )
            for index, name in enumerate(CLOUD_FIELDS)
        ]
        return self._bag.message(
            "sensor_msgs/msg/PointCloud2",
            header=self._bag.header(estimate.frame.stamp, self._camera_frame),
            height=1,
            width=len(cloud),
            fields=fields,
            is_bigendian=False,
            point_step=CLOUD_DTYPE.itemsize,
            row_step=CLOUD_DTYPE.itemsize * len(cloud),
            data=np.frombuffer(cloud.tobytes(), np.uint8),
            is_dense=True,
        )

    def _status(self, estimate: Estimate) -> Any:
        """Latencies mean nothing offline and stay zero; so do the counters of what cannot happen there."""
        message_type = self._bag.message_type(STATUS_TYPE)
        fields: dict[str, Any] = {name: 0 for name in message_type.__dataclass_fields__ if name.islower()}
        fields.pop("__msgtype__", None)
        fields["header"] = self._bag.header(estimate.frame.stamp, self._odom_frame)
        fields["received"] = fields["processed"] = self._seen.total()
        fields["lost"], fields["degraded"] = self._seen[Status.LOST], self._seen[Status.DEGRADED]
        fields["unpaired"] = int(np.searchsorted(self._unpaired, estimate.frame.stamp, side="right"))
        return message_type(**{**fields, **status_fields(estimate)})
