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

"""How often and how late the node answers a camera of 30 Hz on the same machine: `python -m bench.live_rate`.

The node, the camera (`bench.live_camera`) and the receiver of the odometry are processes of their own that share the
cores. The camera plays a rendered room, at the rate it was rendered for, forth and back; what the node cannot track in
time it drops for a newer pair, and counts. Age: from the stamp of the images to the arrival of their odometry.
Uncounted: images sent that the node neither took nor counts as skipped while it tracked, lost on the way or overwritten
although it wanted them, pairs sent that it counts neither as received nor by an image that was lost, overwritten or
left without a partner (or that it counts twice), and odometry it published that did not arrive.
The first second is not in the ages and the rate. Writes bench/results/live_rate.txt; ends with 1 when a bound is
missed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "test" / "ros")]
RESULTS = ROOT / "bench" / "results"
BOUNDS = {(960, 600): 15.0, (1920, 1200): 8.0}
"""Odometry messages a second, at least, by size of the images."""
OLDEST = 0.130
"""Seconds of age that 95 % of the odometry stays below."""
UNCOUNTED = {"images": "images", "pairs": "pairs", "odometry": "odometry messages"}
PAIRS, WARM_UP = 45, 1.0


def render(folder: Path, width: int, height: int) -> Path:
    """Pairs of a room, walked through at 30 Hz: (N, 2, H, W, 3) RGB in a file with the camera beside it."""
    from bench.live_camera import RATE
    from macvo_ros.atomic_write import atomic_write
    from macvo_ros.rendering.sequence import RenderedSequence
    from macvo_ros.rendering.worlds import ZED_X

    file = folder / f"room_{width}x{height}_{PAIRS}.npy"
    if not file.is_file():
        sequence = RenderedSequence("room", PAIRS, seed=5, camera=ZED_X.resized(width, height), rate=RATE)
        images = np.empty((PAIRS, 2, height, width, 3), np.uint8)
        for i in range(PAIRS):
            frame = sequence[i]
            images[i] = frame.left, frame.right
        atomic_write(file.with_suffix(".json"), json.dumps(asdict(sequence.camera)))
        np.save(file.with_suffix(".part.npy"), images)
        file.with_suffix(".part.npy").rename(file)
    return file


def measure(folder: Path, pairs: Path, size: tuple[int, int], matcher: str, seconds: float) -> dict[str, Any]:
    """One node, one camera, so many seconds."""
    from camera_messages import stamp_of
    from harness import NodeProcess, Peer
    from nav_msgs.msg import Odometry

    from macvo_ros.msg import Status
    from macvo_ros.odometry.status import Status as State

    name = f"live{size[0]}"
    # What auto settles on with this camera; images sent while it does so would be nobody's.
    parameters = {"camera_at_base": True, "watchdog": 0.5, "matcher": matcher, "reliability": "best_effort"}
    node = NodeProcess(name, folder / f"{name}.txt", **parameters)
    peer = Peer(name)
    peer.watched = node
    ages: dict[int, float] = {}

    def take(message: Any) -> None:
        stamp = stamp_of(message)
        ages[stamp] = (time.time_ns() - stamp) * 1e-9

    statuses = peer.listen(Status, f"{node.name}/status", 1000)
    peer.node.create_subscription(Odometry, f"{node.name}/odometry", take, 1000)
    words = [sys.executable, "-m", "bench.live_camera", name, str(pairs), str(seconds)]
    camera = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        while camera.poll() is None:
            peer.drain(0.1)
        assert camera.stdout is not None
        if camera.returncode:
            raise SystemExit("the simulated camera failed; see above")
        figures: dict[str, Any] = json.loads(camera.stdout.read())
        peer.drain(0.5)
    finally:
        camera.kill()
        peer.close()
        node.stop()
    begin = min(ages) + int(WARM_UP * 1e9)
    late = [age for stamp, age in ages.items() if stamp >= begin]
    core = [status.core_time for status in statuses if stamp_of(status) >= begin]
    added = [status.overhead for status in statuses if stamp_of(status) >= begin]
    lost = sum(status.state == int(State.LOST) for status in statuses)
    counted = sum(figures[f"images_{what}"] for what in ("seen", "lost", "skipped", "overwritten"))
    alone = sum(figures[what] for what in ("images_lost", "images_overwritten", "unpaired"))
    missing = figures["sent"] - figures["received"]
    return figures | {
        "rate": len(late) / ((max(ages) - begin) * 1e-9),
        "age": np.percentile(late, [50, 95]).tolist(),
        "core": np.percentile(core, [50, 95, 99]).tolist(),
        "overhead": float(np.median(added)),
        "degraded": sum(status.state == int(State.DEGRADED) for status in statuses),
        "lost": lost,
        "odometry": len(ages),
        "uncounted_images": 2 * figures["sent"] - counted,
        "uncounted_pairs": max(0, missing - alone) or min(0, missing),
        "uncounted_odometry": figures["processed"] - lost - len(ages),
    }


def describe(size: tuple[int, int], found: dict[str, Any]) -> list[str]:
    """The figures of one size in lines of text."""
    ms = [f"{1e3 * value:.0f}" for value in (*found["age"], *found["core"], found["late"])]
    return [
        f"{size[0]}x{size[1]}",
        f"  odometry a second        {found['rate']:6.1f}   (wanted: at least {BOUNDS[size]:g})",
        f"  age, ms                  {ms[0]:>6s}   95 % {ms[1]} (wanted: below {1e3 * OLDEST:.0f})",
        f"  core, ms                 {ms[2]:>6s}   95 % {ms[3]}, 99 % {ms[4]}",
        f"  decoding, publishing, ms {1e3 * found['overhead']:6.1f}",
        f"  pairs sent {found['sent']} ({found['sent_rate']:.1f} a second, {ms[5]} ms late at most)",
        f"  received {found['received']}, processed {found['processed']}, refused {found['refused']}",
        f"  dropped for a newer one {found['dropped']}",
        f"  images seen {found['images_seen']}, of these without a partner {found['unpaired']}",
        f"  images skipped while tracking {found['images_skipped']}, lost on the way {found['images_lost']}",
        f"  images overwritten although wanted {found['images_overwritten']}",
        f"  estimates degraded {found['degraded']}, lost {found['lost']}",
        "  uncounted: " + ", ".join(f"{found[f'uncounted_{what}']} {name}" for what, name in UNCOUNTED.items()),
    ]


def complaints(size: tuple[int, int], found: dict[str, Any]) -> list[str]:
    """Which bounds do not hold."""
    name = f"{size[0]}x{size[1]}"
    wrong = []
    if found["rate"] < BOUNDS[size]:
        wrong.append(f"{name}: {found['rate']:.1f} odometry messages a second, fewer than {BOUNDS[size]:g}")
    if found["age"][1] >= OLDEST:
        wrong.append(f"{name}: age {1e3 * found['age'][1]:.0f} ms (95 %), not below {1e3 * OLDEST:.0f}")
    if any(found[f"uncounted_{what}"] for what in UNCOUNTED):
        wrong.append(f"{name}: something was lost that is not counted")
    return wrong


def main() -> int:
    """Both sizes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20.0, help="of each size")
    parser.add_argument("--matcher", default="auto")
    parser.add_argument("--rendered", type=Path, help="folder that keeps the rendered pairs for the next time")
    parser.add_argument("--render-only", action="store_true", help="fill that folder and measure nothing")
    options = parser.parse_args()

    import rclpy
    from harness import ros_environment

    from macvo_ros.atomic_write import atomic_write
    from macvo_ros.evaluation.environment import measured_with

    lines = [f"{options.matcher}, bgra8 at 30 Hz for {options.seconds:g} s, camera and node on the same cores"]
    wrong = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        kept = options.rendered or folder
        files = {size: render(kept, *size) for size in BOUNDS}
        if options.render_only:
            return 0
        os.environ.update(ros_environment(folder))
        os.environ.pop("OMP_NUM_THREADS")
        rclpy.init()
        for size, file in files.items():
            found = measure(folder, file, size, options.matcher, options.seconds)
            lines += ["", *describe(size, found)]
            wrong += complaints(size, found)
        rclpy.try_shutdown()
    text = "\n".join([*lines, "", "\n".join(wrong) or "all bounds hold", "", measured_with()])
    RESULTS.mkdir(exist_ok=True)
    atomic_write(RESULTS / "live_rate.txt", text)
    print(text)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
