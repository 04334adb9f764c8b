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

"""Stereo frames as camera drivers publish them."""

from __future__ import annotations

import array
from typing import Any

import cv2
import numpy as np

from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.images.frame import StereoFrame
from macvo_ros.odometry.message_fields import split_stamp

OPTICAL_FRAME = "left_optical"


def byte_array(values: Any) -> array.array[int]:
    data = array.array("B")
    data.frombytes(bytes(values) if isinstance(values, (bytes, bytearray)) else np.ascontiguousarray(values).tobytes())
    return data


def set_stamp(message: Any, stamp: int, frame: str = OPTICAL_FRAME) -> Any:
    message.header.stamp.sec, message.header.stamp.nanosec = split_stamp(stamp)
    message.header.frame_id = frame
    return message


def encode(image: np.ndarray, encoding: str) -> np.ndarray:
    """(H, W, 3) RGB to the pixels of a sensor_msgs encoding."""
    if encoding in ("mono8", "mono16"):
        grey = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)
        return grey if encoding == "mono8" else grey.astype(np.uint16) * 257
    codes = {"bgr8": cv2.COLOR_RGB2BGR, "rgba8": cv2.COLOR_RGB2RGBA, "bgra8": cv2.COLOR_RGB2BGRA}
    return image if encoding == "rgb8" else cv2.cvtColor(image, codes[encoding])


def image_message(image: np.ndarray, stamp: int, encoding: str = "bgra8") -> Any:
    """sensor_msgs/Image of an RGB image."""
    from sensor_msgs.msg import Image

    pixels = encode(image, encoding)
    message = Image(height=pixels.shape[0], width=pixels.shape[1], encoding=encoding, step=pixels.strides[0])
    message.data = byte_array(pixels)
    return set_stamp(message, stamp)


def compressed_message(image: np.ndarray, stamp: int, kind: str) -> Any:
    """sensor_msgs/CompressedImage of an RGB image, kind jpeg or png."""
    from sensor_msgs.msg import CompressedImage

    ok, content = cv2.imencode({"jpeg": ".jpg", "png": ".png"}[kind], cv2.cvtColor(image, cv2.COLOR_RGB2BGR))
    assert ok
    message = CompressedImage(format=f"bgr8; {kind} compressed bgr8")
    message.data = byte_array(content)
    return set_stamp(message, stamp)


def info_messages(camera: StereoCamera, stamp: int) -> tuple[Any, Any]:
    """sensor_msgs/CameraInfo of the rectified pair; D is filled, as the ZED driver does, and must be ignored."""
    from sensor_msgs.msg import CameraInfo

    messages = []
    for P in (camera.P_left, camera.P_right):
        message = CameraInfo(height=camera.height, width=camera.width, distortion_model="plumb_bob")
        message.d = [0.1, -0.2, 0.0, 0.0, 0.3]
        message.k, message.r, message.p = P[:, :3].ravel(), np.eye(3).ravel(), P.ravel()
        messages.append(set_stamp(message, stamp))
    return messages[0], messages[1]


class CameraDriver:
    """Publishes a stereo camera under the names a node in the peer's namespace listens to.

    Once constructed, every topic is connected both ways: best-effort messages sent before that are simply lost. Probes
    (images of one pixel whose stamps never pair) are sent until the node's diagnostics tell of them.
    """

    def __init__(
        self,
        peer: Any,
        camera: StereoCamera,
        kind: Any = None,
        topic: str = "image_rect",
        qos: Any = 100,
        infos: bool = True,
    ) -> None:
        from diagnostic_msgs.msg import DiagnosticArray
        from sensor_msgs.msg import CameraInfo, Image

        self.peer, self.camera = peer, camera
        self.diagnostics = peer.listen(DiagnosticArray, "/diagnostics")  # after every other: see `Peer.meet`
        self.left = peer.publisher(kind or Image, f"left/{topic}", qos)
        self.right = peer.publisher(kind or Image, f"right/{topic}", qos)
        sides = ("left", "right") if infos else ()
        self.infos = tuple(peer.publisher(CameraInfo, f"{side}/camera_info", qos) for side in sides)
        self._probes = [(self.left, self._probe_image(1)), (self.right, self._probe_image(2))]
        self._probes += list(zip(self.infos, info_messages(camera, 0), strict=False))
        peer.until(self._connected, f"{topic} to connect")

    def _probe_image(self, stamp: int) -> Any:
        kind = self.left.msg_type
        return set_stamp(kind(format="probe") if hasattr(kind, "format") else kind(), stamp)

    def _connected(self) -> bool:
        seen = {
            value.key.split()[-1]
            for array_ in self.diagnostics
            for status in array_.status
            for value in status.values
            if " messages" in value.value
        }
        self._probes = [probe for probe in self._probes if probe[0].topic_name not in seen]
        for publisher, message in self._probes:
            publisher.publish(message)
        return not self._probes

    def send(self, frame: StereoFrame, stamp: int | None = None, encoding: str = "bgra8") -> int:
        """Publish a frame with its camera_info; returns its stamp."""
        stamp = frame.stamp if stamp is None else stamp
        self.left.publish(image_message(frame.left, stamp, encoding))
        self.right.publish(image_message(frame.right, stamp, encoding))
        return stamp


def stamp_of(message: Any) -> int:
    return message.header.stamp.sec * 1_000_000_000 + message.header.stamp.nanosec
