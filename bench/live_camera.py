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

"""A simulated camera in a process of its own: `python -m bench.live_camera NAMESPACE PAIRS SECONDS`.

Plays the rendered pairs of a file (see `bench.live_rate`) forth and back as bgra8 at 30 Hz with camera_info, as a
driver does. Each image is serialized beforehand and only its stamp, the clock's, written anew: a camera costs the
machine little more than the copy into the middleware. Prints a line of JSON: what it sent, and what the node's own
counters gained from before the first pair to after the last.
"""

from __future__ import annotations

import json
import re
import struct
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "test" / "ros")]
RATE = 30.0
WORDS = {"seen": "messages", "lost": "lost on the way", "skipped": "skipped", "overwritten": "overwritten"}
"""What diagnostics say of the images of a topic."""
COUNTERS = ("received", "processed", "dropped", "refused", "unpaired")


def serialized(image: np.ndarray) -> bytes:
    """The rest of a serialized bgra8 image after its stamp, which is the 8 bytes after the 4 of the CDR header."""
    from camera_messages import image_message
    from rclpy.serialization import serialize_message

    return bytes(serialize_message(image_message(image, 0)))[12:]


def play(node: Any, pairs: list[tuple[bytes, bytes]], seconds: float) -> dict[str, Any]:
    """Publish for so long; returns how many pairs, how many a second, and by how much the latest was late (seconds)."""
    from camera_messages import info_messages, set_stamp

    order = [*range(len(pairs)), *range(len(pairs) - 2, 0, -1)]
    infos = info_messages(node.driver.camera, 0)
    sent, late, started = 0, 0.0, time.monotonic()
    while (due := started + sent / RATE) < started + seconds:
        time.sleep(max(0.0, due - time.monotonic()))
        late = max(late, time.monotonic() - due)
        now = time.time_ns()
        head = b"\x00\x01\x00\x00" + struct.pack("<iI", *divmod(now, 1_000_000_000))
        for publisher, message in zip(node.driver.infos, infos, strict=True):
            publisher.publish(set_stamp(message, now))
        for publisher, rest in zip((node.driver.left, node.driver.right), pairs[order[sent % len(order)]], strict=True):
            publisher.publish(head + rest)
        sent += 1
    return {"sent": sent, "sent_rate": sent / (time.monotonic() - started), "late": late}


def settled(node: Any) -> dict[str, int]:
    """The node's counters once nothing comes or waits any more."""
    before = -1
    while (received := node.count("received")) != before or node.count("waiting"):
        before = received
        node.refresh()
    told = [value for key, value in node.values().items() if key.startswith(("left image", "right image"))]
    numbers = {
        f"images_{name}": sum(int(found) for text in told for found in re.findall(rf"(\d+) {word}", text))
        for name, word in WORDS.items()
    }
    return {name: node.count(name) for name in COUNTERS} | numbers


def main() -> int:
    """Play to the node in NAMESPACE."""
    import rclpy
    from harness import Peer
    from rclpy.qos import qos_profile_sensor_data
    from supervised_node import SupervisedNode

    from macvo_ros.geometry.camera import StereoCamera

    namespace, file, seconds = sys.argv[1], Path(sys.argv[2]), float(sys.argv[3])
    images = np.load(file, mmap_mode="r")  # (N, 2, H, W, 3) RGB
    calibration = StereoCamera(**json.loads(file.with_suffix(".json").read_text()))
    rclpy.init()
    peer = Peer(namespace)
    remote = SimpleNamespace(name=f"/{namespace}/macvo", alive=lambda: True)
    node = SupervisedNode(remote, peer, calibration, qos=qos_profile_sensor_data)
    node.calibrate()
    pairs = [(serialized(left), serialized(right)) for left, right in images]
    node.refresh()
    before = settled(node)
    figures = play(node, pairs, seconds)
    after = settled(node)
    figures |= {name: after[name] - before[name] for name in after}
    print(json.dumps(figures), flush=True)
    peer.close()
    rclpy.try_shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
