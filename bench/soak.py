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

"""The real node for a long time, then under too much load: `python bench/soak.py [--minutes 60] [--size 640x400]`.

Soak: pairs as fast as they are answered, with a fault now and then (black-outs, swapped sides, doubled stamps, clock
jumps). Memory, handles and threads of the node must stay flat, covariances positive, and lost frames silent.
Load: pairs at one half to four times the rate it holds, of a camera that moves equally fast at each rate. Throughput
must hold, no pair wait for more than the one before it, and received = processed + refused + dropped.
Writes soak.json and soak.png to bench/results; ends with 1 when something does not hold.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "test"), str(ROOT / "test" / "ros")]
RESULTS = ROOT / "bench" / "results"
FAULT_EVERY = 100
RATE, FINE, FRAMES = 15.0, 4, 120
"""Frames a second of the walk as soaked with, steps between them for higher rates, and steps in all."""


def process_facts(pid: int) -> tuple[float, int, int]:
    """Resident megabytes, open file handles and threads of a process."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":" in line)
    return int(status["VmRSS"].split()[0]) / 1024, len(os.listdir(f"/proc/{pid}/fd")), int(status["Threads"])


class Feed:
    """A walk there and back again for ever, as messages made once."""

    def __init__(self, width: int, height: int) -> None:
        from camera_messages import image_message

        from macvo_ros.rendering.sequence import RenderedSequence
        from macvo_ros.rendering.worlds import ZED_X

        sequence = RenderedSequence(
            "room", FRAMES, seed=7, camera=ZED_X.resized(width, height), rate=RATE * FINE, texels=512
        )
        self.camera = sequence.camera
        frames = [sequence[i] for i in range(FRAMES)]
        self._pairs = [tuple(image_message(image, 0) for image in (frame.left, frame.right)) for frame in frames]
        dark = np.zeros_like(frames[0].left)
        self._black = (image_message(dark, 0), image_message(dark, 0))
        self._count = self._at = 0
        self.stamp = 1_790_000_000_000_000_000

    def next(self, faults: bool, steps: int = FINE) -> tuple[Any, Any, str]:
        """The messages of the pair `steps` further on the walk, stamped, and the fault in it."""
        from camera_messages import set_stamp

        self._at = (self._at + steps) % (2 * FRAMES - 2)
        left, right = self._pairs[min(self._at, 2 * FRAMES - 2 - self._at)]
        kind, step = divmod(self._count, FAULT_EVERY)
        fault = ""
        period = round(steps * 1e9 / (RATE * FINE))
        self.stamp += period
        if faults and kind and step < 5:
            fault = ("black", "swapped", "jump", "doubled")[kind % 4]
            if fault == "black":
                left, right = self._black
            elif fault == "swapped":
                left, right = right, left
            elif fault == "jump" and step == 0:
                self.stamp += 10_000_000_000
            elif fault == "doubled" and step == 0:
                self.stamp -= period
        self._count += 1
        return set_stamp(left, self.stamp), set_stamp(right, self.stamp), fault


def soak(node: Any, feed: Feed, seconds: float) -> dict[str, Any]:
    """One pair at a time; returns the record of the run."""
    from macvo_ros.odometry.status import Status

    rows, latencies, states = [], [], {state.name: 0 for state in Status}
    improper = spoke_while_lost = answered = repeated = 0
    started = sampled = time.monotonic()
    while time.monotonic() - started < seconds:
        left, right, fault = feed.next(faults=True)
        before, refused = len(node.status), node.count("refused")

        def send(pair: tuple[Any, Any] = (left, right)) -> None:
            node.driver.left.publish(pair[0])
            node.driver.right.publish(pair[1])

        def send_again(send: Any = send) -> None:  # by best effort one may be lost, and the hour must not end with it
            nonlocal repeated
            repeated += 1
            send()

        send()
        node.peer.until(
            lambda before=before, refused=refused: len(node.status) > before or node.count("refused") > refused,
            f"an answer to a pair ({fault or 'a good one'})",
            again=send_again,
        )
        for status in node.status[before:]:
            answered += 1
            latencies.append(status.latency)
            states[Status(status.state).name] += 1
        lost = {(s.header.stamp.sec, s.header.stamp.nanosec) for s in node.status if s.state == Status.LOST}
        for message in node.odometry:
            covariance = np.array(message.pose.covariance).reshape(6, 6)
            improper += not (np.array_equal(covariance, covariance.T) and np.linalg.eigvalsh(covariance)[0] > 0)
            spoke_while_lost += (message.header.stamp.sec, message.header.stamp.nanosec) in lost
        now = time.monotonic()
        if now - sampled >= max(1.0, seconds / 600):
            rows.append((now - started, *process_facts(node.node.pid), answered / (now - sampled)))
            sampled, answered = now, 0
        for inbox in (node.status, node.odometry):  # ours must not grow either
            del inbox[:-1], inbox.arrived[:-1]
        del node.driver.diagnostics[:-3], node.driver.diagnostics.arrived[:-3]
    return {
        "seconds": seconds,
        "samples": rows,
        "latency": [float(value) for value in latencies],
        "states": states,
        "sent_again": repeated,
        "improper_covariances": int(improper),
        "odometry_while_lost": int(spoke_while_lost),
    }


def settled_counts(node: Any) -> dict[str, int]:
    """Counters by diagnostics that were sent after everything was done."""
    seen = len(node.driver.diagnostics) + 3
    node.peer.until(lambda: len(node.driver.diagnostics) > seen and node.count("waiting") == 0, "the node to settle")
    return {name: node.count(name) for name in ("received", "processed", "refused", "dropped")}


def load(node: Any, feed: Feed, held: float, times: float, seconds: float) -> dict[str, Any]:
    """Pairs at `times` the rate that is held, whatever happens; returns what became of them.

    The camera moves as fast as ever, so that from one tracked pair to the next there is as much motion at each rate.
    """
    from latency import waited_too_long, waits_and_work
    from receiving_threads import processor_seconds

    before, receiving = settled_counts(node), processor_seconds(node.node.pid)
    del node.status[:], node.status.arrived[:]
    rate, steps = held * times, round(FINE / times)
    started = due = time.monotonic()
    sent = 0
    while (now := time.monotonic()) - started < seconds:
        if now < due:
            node.peer.drain(due - now)
        left, right, _ = feed.next(faults=False, steps=steps)
        node.driver.left.publish(left)
        node.driver.right.publish(right)
        sent += 1
        due += 1 / rate
    elapsed = time.monotonic() - started
    after = settled_counts(node)
    latencies = [status.latency for status in node.status]
    waits, work = waits_and_work(node.status)
    gained = {name: after[name] - before[name] for name in before}
    return {
        "times": times,
        "asked_rate": rate,
        "sent_rate": sent / elapsed,
        "processed_rate": gained["processed"] / elapsed,
        "latency_p50": float(np.median(latencies)),
        "latency_max": float(np.max(latencies)),
        "work_p50": float(np.median(work)),
        "wait_p50": float(np.median(waits)),
        "wait_max": float(np.max(waits)),
        "receiving_ms_a_pair": 1e3 * (processor_seconds(node.node.pid) - receiving) / max(1, gained["received"]),
        "waited_too_long": waited_too_long(node.status),
        **{name: float(value) for name, value in gained.items()},
    }


def complaints(record: dict[str, Any], loads: list[dict[str, Any]]) -> list[str]:
    """What did not hold."""
    found = []
    rows = np.array(record["samples"])
    settled = rows[len(rows) // 4 :]
    if len(settled) >= 4:
        first, last = (part[:, 1].mean() for part in np.array_split(settled, 2))
        if last - first > 0.02 * first + 5.0:
            found.append(f"memory grew from {first:.0f} to {last:.0f} MB")
        for column, what in ((2, "file handles"), (3, "threads")):
            if settled[-1, column] > settled[0, column] + 2:
                found.append(f"{what} grew from {settled[0, column]:.0f} to {settled[-1, column]:.0f}")
    if record["improper_covariances"] or record["odometry_while_lost"]:
        found.append("a covariance was not positive, or odometry was published while lost")
    for entry in loads:
        if entry["received"] != entry["processed"] + entry["refused"] + entry["dropped"]:
            found.append(f"received is not processed + refused + dropped: {entry}")
        if entry["waited_too_long"]:
            found.append(f"at {entry['times']:g} times the rate {entry['waited_too_long']}")
    idle = os.getloadavg()[2] < (os.cpu_count() or 1)  # else others take what the node is measured by
    if idle and len(loads) > 1 and loads[-1]["processed_rate"] < 0.7 * max(entry["processed_rate"] for entry in loads):
        found.append("throughput falls when more comes in")
    return found


def plot(record: dict[str, Any], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    rows, latency = np.array(record["samples"]), 1e3 * np.array(record["latency"])
    figure, axes = pyplot.subplots(2, 2, figsize=(10, 6), constrained_layout=True)
    for axis, column, title in zip(
        axes.flat, (1, 4, 2), ("memory (MB)", "pairs a second", "handles and threads"), strict=False
    ):
        axis.plot(rows[:, 0] / 60, rows[:, column])
        axis.set(title=title, xlabel="minutes", ylim=(0, None))
    axes[1, 0].plot(rows[:, 0] / 60, rows[:, 3])
    axes[1, 1].hist(latency, bins=80)
    axes[1, 1].set(title="latency (ms)", yscale="log")
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def latency_summary(latency: np.ndarray) -> dict[str, Any]:
    """Of (N,) milliseconds: quantiles, and how many there are in each 10 ms."""
    return {
        "count": len(latency),
        **{f"p{q}": round(float(np.percentile(latency, q)), 2) for q in (50, 90, 99, 100)},
        "in each 10 ms": np.bincount((latency / 10).astype(int)).tolist(),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--load-seconds", type=float, default=20.0, help="of each rate; 0: no load")
    parser.add_argument("--size", default="640x400")
    parser.add_argument("--matcher", default="auto")
    options = parser.parse_args()
    width, height = (int(number) for number in options.size.split("x"))

    from harness import NodeProcess, Peer, ros_environment
    from supervised_node import SupervisedNode

    from macvo_ros.atomic_write import atomic_write
    from macvo_ros.evaluation.environment import machine, versions

    feed = Feed(width, height)
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(ros_environment(Path(folder)))
        os.environ.pop("OMP_NUM_THREADS")
        import rclpy

        rclpy.init()
        log = Path(folder) / "node.txt"
        settings = {"camera_at_base": True, "watchdog": 0.5, "matcher": options.matcher, "trajectory_poses": 1000}
        settings["reliability"] = "best_effort"  # what does not come in time must not come late
        process, peer = NodeProcess("soak", log, **settings), Peer("soak")
        try:
            node = SupervisedNode(process, peer, feed.camera)
            node.calibrate()
            record = soak(node, feed, 60 * options.minutes)
            held = len(record["latency"]) / record["seconds"]
            loads = [load(node, feed, held, f, options.load_seconds) for f in (0.5, 1, 2, 4) if options.load_seconds]
            alive = process.alive()
        finally:
            peer.close()
            code = process.stop()
            output = log.read_text()
            rclpy.try_shutdown()
    found = complaints(record, loads)
    found += [] if alive and code == 0 else [f"the node ended with {code}"]
    found += ["an exception is in the log"] if "Traceback" in output else []
    latency = 1e3 * np.array(record["latency"])
    p50, p99 = np.percentile(latency, (50, 99))
    rows = np.array(record["samples"])
    print(f"{len(latency)} pairs in {options.minutes:g} min, {held:.1f} a second; {record['states']}")
    print(f"latency p50 {p50:.0f} ms, p99 {p99:.0f} ms, max {latency.max():.0f} ms")
    for column, what in ((1, "memory (MB)"), (2, "handles"), (3, "threads"), (4, "pairs a second")):
        start, middle, end = rows[len(rows) // 4, column], rows[len(rows) // 2, column], rows[-1, column]
        print(f"{what}: {start:.1f} after a quarter, {middle:.1f} at half time, {end:.1f} at the end")
    for entry in loads:
        print("load " + ", ".join(f"{name} {value:.3g}" for name, value in entry.items() if not isinstance(value, str)))
    RESULTS.mkdir(exist_ok=True)
    made = {"versions": versions(), "machine": machine(), "soak": record, "load": loads, "complaints": found}
    made["soak"] = {**record, "latency": latency_summary(latency)}
    atomic_write(RESULTS / "soak.json", json.dumps(made))
    plot(record, RESULTS / "soak.png")
    print("\n".join(found) or "everything held")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
