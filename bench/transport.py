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

"""How many images of a camera driver reach the node, by reliability and by the sender's room in shared memory.

    python -m bench.transport

The real node, and a driver in a process of its own that offers reliable QoS (depth 10) and sends 90 pairs of bgra8
images at 30 Hz; with `config/fastdds.xml` and as FastDDS is installed. Counts are the node's own, of the left and the
right image. Writes bench/results/transport.json and .txt. Two minutes.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "test" / "ros")]

from macvo_ros.atomic_write import atomic_write  # noqa: E402
from macvo_ros.evaluation.environment import machine, versions  # noqa: E402

PAIRS = 90
SIZES = ("640x360", "1280x720")
RESULTS = ROOT / "bench" / "results" / "transport"


def main() -> None:
    """Measure each case, print and log."""
    import rclpy
    from harness import ros_environment

    os.environ.update(ros_environment(Path(tempfile.mkdtemp(prefix="macvo_transport_"))))
    document: dict[str, Any] = {"versions": versions(), "machine": machine(), "load": os.getloadavg(), "cases": []}
    lines = [f"images received of {PAIRS} left and {PAIRS} right ones"]
    rclpy.init()
    for size in SIZES:
        for reliability in ("best_effort", "auto"):
            for profile in (False, True):
                left, right = measure(f"case{len(document['cases'])}", size, reliability, profile)
                room = "64 MB" if profile else "512 KB"
                document["cases"].append(
                    {"size": size, "reliability": reliability, "room": room, "came": [left, right]}
                )
                lines.append(f"  {size:9} reliability: {reliability:11}  sender's room {room:6}  {left:3d} {right:3d}")
                print(lines[-1], flush=True)
    rclpy.try_shutdown()
    lines.append(f"load average of the machine at the start: {document['load'][0]:.1f}")
    lines += [f"{key}: {value}" for part in (versions(), machine()) for key, value in part.items()]
    atomic_write(RESULTS.with_suffix(".json"), json.dumps(document, indent=1) + "\n")
    atomic_write(RESULTS.with_suffix(".txt"), "\n".join(lines) + "\n")


def measure(name: str, size: str, reliability: str, profile: bool) -> tuple[int, int]:
    """Left and right images that the node counts."""
    from harness import NodeProcess, Peer

    log = Path(os.environ["ROS_LOG_DIR"]) / f"{name}.txt"
    node = NodeProcess(name, log, matcher="classic", camera_at_base=True, watchdog=0.5, reliability=reliability)
    peer = Peer(name)
    try:
        diagnostics = peer.meet(node.name)
        environment = dict(os.environ)
        if not profile:
            environment = {key: text for key, text in environment.items() if not key.endswith("DEFAULT_PROFILES_FILE")}
        script = ROOT / "test" / "ros" / "plain_publisher.py"
        words = [sys.executable, str(script), name, str(PAIRS), "reliable", size]
        words += ["any"] if reliability == "best_effort" else []
        driver = subprocess.Popen(words, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            assert driver.stdout is not None
            driver.stdout.readline()  # all are sent
            peer.drain(4.0)
        finally:
            driver.kill()
            driver.wait()
        newest = next(array for array in reversed(diagnostics) if array.status[0].name.startswith(name))
        values = {value.key: value.value for status in newest.status for value in status.values}
        seen = [values[f"{side} image /{name}/{side}/image_rect"] for side in ("left", "right")]
        counts = [int(found[1]) if (found := re.search(r"(\d+) messages", text)) else 0 for text in seen]
        return counts[0], counts[1]
    finally:
        peer.close()
        node.stop()


if __name__ == "__main__":
    main()
