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

"""How much time the node adds to the core: `python bench/node_overhead.py [--size 1280x720] [--pairs 30]`.

The real node in a process of its own is fed bgra8 pairs one by one over DDS on loopback. Overhead is what lies between
the arrival of the second image and the publication of the odometry without the core: decoding, rectifying, filling and
publishing messages. Transport is from publishing the pair to its arrival, measured with one clock for both processes.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "test" / "ros")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="1280x720")
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--encoding", default="bgra8")
    arguments = parser.parse_args()
    width, height = (int(number) for number in arguments.size.split("x"))

    from harness import NodeProcess, Peer, ros_environment

    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(ros_environment(Path(folder)))
        os.environ.pop("OMP_NUM_THREADS")
        import rclpy

        rclpy.init()
        process = NodeProcess("bench", Path(folder) / "node.txt", camera_at_base=True, watchdog=0.5)
        peer = Peer("bench")
        try:
            statuses = measure(process, peer, width, height, arguments.pairs, arguments.encoding)
        finally:
            peer.close()
            process.stop()
            rclpy.try_shutdown()
    for name, scale in (("overhead", 1e3), ("core_time", 1e3), ("latency", 1e3), ("age", 1e3)):
        values = np.array([getattr(status, name) for status in statuses[2:]]) * scale
        print(f"{name:10s} median {np.median(values):7.1f} ms   95 % {np.percentile(values, 95):7.1f} ms")
    transport = np.array([status.age - status.latency for status in statuses[2:]]) * 1e3
    print(f"{'transport':10s} median {np.median(transport):7.1f} ms   95 % {np.percentile(transport, 95):7.1f} ms")


def measure(process, peer, width: int, height: int, pairs: int, encoding: str) -> list:  # type: ignore[no-untyped-def]
    """Send pairs of a shifting texture one by one, stamped with the clock, and collect the status of each."""
    from camera_messages import CameraDriver, image_message

    from macvo_ros.camera import StereoCamera
    from macvo_ros.msg import Status

    camera = StereoCamera(0.5 * width, 0.5 * width, width / 2 - 0.5, height / 2 - 0.5, 0.12, width, height)
    statuses = peer.listen(Status, f"{process.name}/status")
    driver = CameraDriver(peer, camera)
    texture = np.random.default_rng(0).integers(0, 255, (height // 4, width // 4, 3), np.uint8)
    texture = texture.repeat(4, axis=0).repeat(4, axis=1)
    for i in range(pairs):
        images = [np.roll(texture, shift, axis=1) for shift in (2 * i, 2 * i - 20)]
        messages = [image_message(image, 0, encoding) for image in images]
        now = peer.node.get_clock().now().to_msg()
        for publisher, message in zip((driver.left, driver.right), messages, strict=True):
            message.header.stamp = now
            publisher.publish(message)
        peer.until(lambda i=i: len(statuses) > i, f"the status of pair {i}")
    return list(statuses)


if __name__ == "__main__":
    main()
