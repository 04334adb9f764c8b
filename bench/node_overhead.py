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

"""What the node adds to the core, and whether it takes in two HD1200 streams: `python bench/node_overhead.py`.

The real node in a process of its own is fed bgra8 pairs over DDS on loopback, by best effort as a camera driver would.
Overhead (1280x720, one pair at a time): from the arrival of the second image to the publication of the odometry, minus
the core's own time; it must stay below 10 ms. Streams (1920x1200 at 15 Hz): every pair must arrive, whether it is
tracked or dropped for a newer one. Writes node.json and node.txt to bench/results; ends with 1 when one does not hold.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "test" / "ros")]
RESULTS = ROOT / "bench" / "results"
LIMIT, RATE, DISTINCT = 10.0, 15.0, 6
"""Milliseconds of overhead, pairs a second, and pairs that differ before they repeat."""


def textured_pairs(width: int, height: int) -> list[list[Any]]:
    """Left and right messages of a texture that moves by two pixels a pair."""
    from camera_messages import image_message

    texture = np.random.default_rng(0).integers(0, 255, (height // 4, width // 4, 3), np.uint8)
    texture = texture.repeat(4, axis=0).repeat(4, axis=1)
    return [[image_message(np.roll(texture, 2 * i - d, axis=1), 0) for d in (0, 20)] for i in range(DISTINCT)]


def start(name: str, folder: Path, width: int, height: int, matcher: str) -> tuple[Any, Any]:
    """A node that tracks, and the other side of it."""
    from harness import NodeProcess, Peer
    from supervised_node import SupervisedNode

    from macvo_ros.geometry.camera import StereoCamera

    parameters = {"camera_at_base": True, "watchdog": 0.5, "matcher": matcher, "reliability": "best_effort"}
    process = NodeProcess(name, folder / f"{name}.txt", **parameters)
    peer = Peer(name)
    camera = StereoCamera(0.5 * width, 0.5 * width, width / 2 - 0.5, height / 2 - 0.5, 0.12, width, height)
    node = SupervisedNode(process, peer, camera)
    node.calibrate()
    return node, process


def send(node: Any, pair: list[Any]) -> Any:
    """Publish a pair stamped with the clock; returns the stamp."""
    now = node.peer.node.get_clock().now().to_msg()
    for publisher, message in zip((node.driver.left, node.driver.right), pair, strict=True):
        message.header.stamp = now
        publisher.publish(message)
    return now


def overhead(node: Any, pairs: list[list[Any]], count: int) -> dict[str, Any]:
    """Milliseconds, median and 95 %, of `count` pairs sent one by one (the first two warm up)."""
    for i in range(count + 2):
        stamp = send(node, pairs[i % DISTINCT])
        node.peer.until(lambda stamp=stamp: node.status and node.status[-1].header.stamp == stamp, f"pair {i}")
    statuses = node.status[-count:]
    columns = {
        "overhead": [status.latency - status.core_time for status in statuses],
        "of it decoding and publishing": [status.overhead for status in statuses],
        "core": [status.core_time for status in statuses],
        "latency": [status.latency for status in statuses],
        "transport": [status.age - status.latency for status in statuses],
    }
    return {
        name: {"median": float(np.median(values) * 1e3), "p95": float(np.percentile(values, 95) * 1e3)}
        for name, values in columns.items()
    }


def streams(node: Any, pairs: list[list[Any]], seconds: float) -> dict[str, Any]:
    """Two streams at RATE for so long; counts what became of them."""
    from receiving_threads import longest_wait, processor_seconds

    pid = node.node.pid
    node.refresh()
    before = {name: node.count(name) for name in ("received", "processed", "refused", "dropped")}
    waited, used = longest_wait(pid), processor_seconds(pid)
    sent, started = 0, time.monotonic()
    while (due := started + sent / RATE) < started + seconds:
        node.peer.drain(max(0.0, due - time.monotonic()))
        send(node, pairs[sent % DISTINCT])
        sent += 1
    elapsed = time.monotonic() - started
    while (received := node.count("received")) != before.get("last") or node.count("waiting"):
        before["last"] = received
        node.refresh()
    gained = {name: node.count(name) - before[name] for name in ("received", "processed", "refused", "dropped")}
    latency = [status.latency for status in node.status[-gained["processed"] :]]
    return {
        "sent": sent,
        "sent_rate": sent / elapsed,
        **gained,
        "latency_median_ms": float(np.median(latency) * 1e3),
        "receiving_ms_a_pair": 1e3 * (processor_seconds(pid) - used) / max(1, sent),
        "receiving_waited_s": longest_wait(pid) - waited,
        "input": {key: value for key, value in node.values().items() if "image" in key},
    }


def report(figures: dict[str, Any]) -> list[str]:
    """The figures in lines of text."""
    lines = [f"{name}: {value}" for part in ("versions", "machine") for name, value in figures[part].items()]
    lines += ["", f"1280x720 bgra8, one pair at a time, milliseconds (limit of the overhead: {LIMIT:g})"]
    for name, row in figures["overhead"].items():
        lines.append(f"  {name:31s} median {row['median']:7.1f}   95 % {row['p95']:7.1f}")
    hd = figures["hd1200"]
    lines += ["", f"two HD1200 bgra8 streams at {RATE:g} Hz, best effort"]
    lines.append(
        f"  sent {hd['sent']} pairs ({hd['sent_rate']:.2f} a second), received {hd['received']}, of these tracked "
        f"{hd['processed']} and dropped for a newer one {hd['dropped']}"
    )
    lines.append(
        f"  latency {hd['latency_median_ms']:.0f} ms (median); receiving took {hd['receiving_ms_a_pair']:.1f} ms of "
        f"processor a pair and waited {hd['receiving_waited_s']:.2f} s for one in all"
    )
    return [*lines, "", "; ".join(figures["complaints"]) or "both hold"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=60, help="of the overhead")
    parser.add_argument("--seconds", type=float, default=20.0, help="of the streams")
    parser.add_argument("--matcher", default="auto")
    options = parser.parse_args()

    import rclpy
    from harness import ros_environment

    from macvo_ros.atomic_write import atomic_write
    from macvo_ros.evaluation.environment import machine, versions
    from macvo_ros.evaluation.result import write_json

    figures: dict[str, Any] = {"versions": versions(), "machine": machine(), "matcher": options.matcher}
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(ros_environment(Path(folder)))
        os.environ.pop("OMP_NUM_THREADS")
        rclpy.init()
        for name, width, height in (("overhead", 1280, 720), ("hd1200", 1920, 1200)):
            node, process = start(name, Path(folder), width, height, options.matcher)
            pairs = textured_pairs(width, height)
            try:
                measured = (
                    overhead(node, pairs, options.pairs)
                    if name == "overhead"
                    else streams(node, pairs, options.seconds)
                )
                figures[name] = measured
            finally:
                node.peer.close()
                process.stop()
        rclpy.try_shutdown()
    hd, added = figures["hd1200"], figures["overhead"]["overhead"]["median"]
    found = [] if added < LIMIT else [f"the overhead is {added:.1f} ms, above {LIMIT:g}"]
    found += [] if hd["received"] == hd["sent"] else [f"{hd['sent'] - hd['received']} of {hd['sent']} pairs were lost"]
    if hd["received"] != hd["processed"] + hd["refused"] + hd["dropped"]:
        found.append("received is not processed + refused + dropped")
    figures["complaints"] = found
    RESULTS.mkdir(exist_ok=True)
    lines = report(figures)
    write_json(RESULTS / "node.json", figures)
    atomic_write(RESULTS / "node.txt", "\n".join(lines) + "\n")
    print("\n".join(lines))
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
