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

"""How long until `macvo --help` has answered and the node is ready: `python -m bench.startup`. Run nothing beside it.

Each is a process of its own, started as a user would, median of five; files are in the page cache after the first.
Active: until the node has configured itself and subscribed, by the stamp of the line in its log that says so. When
others learn of it is up to DDS: the time until a program that ran before has its answer "active" is below it, without a
limit. The first pairs show whether something was only put off. Writes bench/results/startup.txt; ends with 1 when a
median is above its limit.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "test" / "ros")]
RESULTS = ROOT / "bench" / "results"
HELP, ACTIVE = "macvo --help", "node configured and active"
LIMITS = {HELP: 0.3, ACTIVE: 3.0}
"""Seconds."""
SUBSCRIBED = re.compile(r"\[INFO\] \[([0-9.]+)\] \[[^]]*\]: listening to ")
"""The last thing that the node says before it spins, with the time."""
ASK_EVERY = 0.05
"""Seconds between two questions for the state: DDS drops an answer to a client that the node has not met yet."""


def help_seconds() -> float:
    """From the start of `macvo --help` to its end."""
    started = time.monotonic()
    subprocess.run([sys.executable, "-m", "macvo_ros.cli", "--help"], stdout=subprocess.DEVNULL, check=True, cwd=ROOT)
    return time.monotonic() - started


def node_seconds(name: str, folder: Path, matcher: str) -> dict[str, float]:
    """A node from its start until it is active and known; and its first pairs, from publication to status."""
    from harness import NodeProcess, Peer
    from supervised_node import SupervisedNode

    from macvo_ros.rendering.sequence import RenderedSequence
    from macvo_ros.rendering.worlds import ZED_X

    sequence = RenderedSequence("room", frames=3, camera=ZED_X.resized(960, 600))
    frames = [sequence[i] for i in range(3)]
    peer = Peer(name)
    started = time.time()
    parameters = {"camera_at_base": True, "watchdog": 0.5, "matcher": matcher, "reliability": "reliable"}
    process = NodeProcess(name, folder / f"{name}.txt", **parameters)
    try:
        wait_until_active(peer, process.name)
        known = time.time() - started
        subscribed = SUBSCRIBED.search(process.output())
        if subscribed is None:
            raise SystemExit(f"the node is active but its log does not say when: {process.output()}")
        seconds = {ACTIVE: float(subscribed[1]) - started, "its state known over DDS": known}
        node = SupervisedNode(process, peer, sequence.camera)
        node.calibrate()
        for which, frame in zip(("first", "second", "third"), frames, strict=True):
            sent = time.monotonic()
            node.track(frame)
            seconds[f"{which} pair, 960x600"] = time.monotonic() - sent
        return seconds
    finally:
        peer.close()
        process.stop()


def wait_until_active(peer: Any, node: str) -> None:
    """Ask for the lifecycle state until the answer is "active"; it answers as soon as it spins."""
    from lifecycle_msgs.srv import GetState

    client = peer.node.create_client(GetState, f"{node}/get_state")
    asked: list[Any] = []
    due = 0.0

    def active() -> bool:
        nonlocal due
        if client.service_is_ready() and time.monotonic() > due:
            asked.append(client.call_async(GetState.Request()))
            due = time.monotonic() + ASK_EVERY
        return any(answer.done() and answer.result().current_state.label == "active" for answer in asked)

    peer.until(active, f"{node} to be active")
    peer.node.destroy_client(client)


def main() -> int:
    """Measure both, write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=5, help="starts of each")
    parser.add_argument("--matcher", default="auto")
    options = parser.parse_args()

    import rclpy
    from harness import ros_environment

    from macvo_ros.atomic_write import atomic_write
    from macvo_ros.evaluation.environment import measured_with

    # ROS 2 from pip starts every Python twice, unless it inherits this variable: a user's shell does not have it.
    os.environ.pop("_ROS_WHEELS_BOOTSTRAP_COMPLETE", None)
    runs = [{HELP: help_seconds()} for _ in range(options.times)]
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(ros_environment(Path(folder)))
        os.environ.pop("OMP_NUM_THREADS")
        rclpy.init()
        for i in range(options.times):
            runs[i] |= node_seconds(f"startup{i}", Path(folder), options.matcher)
        rclpy.try_shutdown()
    lines, late = [f"{'seconds':28s} {'median':>8s} {'limit':>8s}   each of {options.times}"], False
    for what in runs[0]:
        each = [run[what] for run in runs]
        limit = LIMITS.get(what)
        late |= limit is not None and float(np.median(each)) > limit
        bound = f"{limit:.2f}" if limit is not None else ""
        lines.append(f"{what:28s} {np.median(each):8.2f} {bound:>8s}   {' '.join(f'{value:.2f}' for value in each)}")
    text = "\n".join([*lines, "", "a limit is exceeded" if late else "both limits hold", "", measured_with()])
    RESULTS.mkdir(exist_ok=True)
    atomic_write(RESULTS / "startup.txt", text)
    print(text)
    return int(late)


if __name__ == "__main__":
    sys.exit(main())
