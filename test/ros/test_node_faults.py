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

"""What happens to processes, files and messages on robots: the node lives, says what it did, and goes on."""

from __future__ import annotations

import itertools
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from camera_messages import image_message, info_messages, stamp_of
from harness import ROOT, NodeProcess
from supervised_node import SupervisedNode, supervised

from macvo_ros.odometry.status import Status
from macvo_ros.sequences.tum import read_tum


@pytest.fixture(scope="module")
def node(start_node, frames):
    process = start_node("faults", camera_at_base=True, watchdog=0.3, publish_tf=False)
    with supervised(process, frames[0].camera) as node:
        node.calibrate()
        yield node


def states(node):
    return [Status(status.state) for status in node.status]


def test_images_of_either_side_in_any_order(node, frames):
    """Right before left, all of one side first, newest first: each pair is tracked once or refused for its stamp."""
    node.refresh()
    received = node.count("received")
    for order in itertools.permutations(range(3)):
        stamps = [node.next_stamp() for _ in range(3)]
        for i in order:
            node.driver.right.publish(image_message(frames[i].right, stamps[i]))
        for i in reversed(order):
            node.driver.left.publish(image_message(frames[i].left, stamps[i]))
        node.peer.until(
            lambda last=stamps[-1]: any(stamp_of(status) == last for status in node.status),
            "the newest pair of a shuffled lot",
        )
    node.peer.until(lambda: node.count("received") == received + 18 and node.count("waiting") == 0, "all 18 pairs")
    counts = {name: node.count(name) for name in ("received", "processed", "refused", "dropped")}
    assert counts["received"] == counts["processed"] + counts["refused"] + counts["dropped"]
    stamps = [stamp_of(message) for message in node.odometry]
    assert stamps == sorted(set(stamps))


def test_images_lost_and_late_on_the_way(node, frames):
    """A poor network: a third of the images never comes, others come up to three frames late."""
    rng = np.random.default_rng(3)
    node.refresh()
    received, waiting, whole = node.count("received"), [], 0
    for i in range(24):
        stamp = node.next_stamp()
        arrive = rng.random(2) > 0.33
        whole += int(arrive.all())
        for side, image, comes in zip(
            ("left", "right"), (frames[i % 12].left, frames[i % 12].right), arrive, strict=True
        ):
            if comes:
                waiting.append((i + int(rng.integers(0, 4)), side, image_message(image, stamp, "mono8")))
        for entry in [entry for entry in waiting if entry[0] <= i]:
            waiting.remove(entry)
            getattr(node.driver, entry[1]).publish(entry[2])
        node.peer.drain(0.02)
    for _, side, message in waiting:
        getattr(node.driver, side).publish(message)
    node.peer.until(
        lambda: node.count("received") == received + whole and node.count("waiting") == 0, "all whole pairs"
    )
    assert node.count("received") == sum(node.count(name) for name in ("processed", "refused", "dropped"))
    node.track(frames[0])
    assert node.track(frames[1]).state in (Status.TRACKING, Status.DEGRADED)


def test_a_subscriber_that_never_reads_holds_nobody_up(node, frames):
    import rclpy
    from nav_msgs.msg import Odometry
    from rclpy.qos import QoSProfile
    from sensor_msgs.msg import Image

    deaf = rclpy.create_node("deaf", namespace="/faults")  # in no executor: its queues fill up and stay full
    for kind, topic in ((Odometry, "odometry"), (Image, "depth"), (Image, "debug/keypoints")):
        deaf.create_subscription(kind, f"{node.node.name}/{topic}", lambda message: None, QoSProfile(depth=1))
    for i in range(30):
        node.track(frames[i % 12])
    deaf.destroy_node()
    assert node.track(frames[0]).state in (Status.TRACKING, Status.DEGRADED, Status.LOST)
    assert max(status.latency for status in node.status[-30:]) < 30.0


def test_clock_jumps_ahead_by_an_hour(node, frames):
    node.track(frames[4])
    node.track(frames[5])
    jumped = node.track(frames[6], stamp=node.next_stamp(3600.0))
    assert jumped.state == Status.LOST
    assert "3600" in jumped.reason
    assert stamp_of(node.odometry[-1]) != stamp_of(jumped)
    assert node.track(frames[7]).state == Status.TRACKING


def test_every_published_covariance_is_one(node, frames):
    for frame in frames[8:12]:
        node.track(frame)
    assert len(node.odometry) > 3
    for message in node.odometry:
        for values in (message.pose.covariance, message.twist.covariance):
            covariance = np.array(values).reshape(6, 6)
            assert np.isfinite(covariance).all()
            assert np.array_equal(covariance, covariance.T)
            assert np.linalg.eigvalsh(covariance)[0] > 0
    lost = {stamp_of(status) for status in node.status if status.state == Status.LOST}
    assert not lost & {stamp_of(message) for message in node.odometry}


def test_disk_full_while_saving(node, tmp_path):
    from macvo_ros.srv import SaveTrajectory

    path = tmp_path / "trajectory.txt"
    request = SaveTrajectory.Request(path=str(path))
    service = f"{node.node.name}/save_trajectory"
    assert node.peer.call(SaveTrajectory, service, request).success
    before = path.read_bytes()
    poses = len(read_tum(path))
    limits = resource.prlimit(node.node.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(node.node.pid, resource.RLIMIT_FSIZE, (1000, limits[1]))  # "file too large" as "no space left"
    try:
        full = node.peer.call(SaveTrajectory, service, request)
    finally:
        resource.prlimit(node.node.pid, resource.RLIMIT_FSIZE, limits)
    assert not full.success
    assert "cannot write" in full.message
    assert path.read_bytes() == before
    names = ["trajectory.txt", "trajectory_covariance.txt", "trajectory_smoothed.txt"]
    assert sorted(file.name for file in tmp_path.iterdir()) == names
    again = node.peer.call(SaveTrajectory, service, request)
    assert again.success
    assert again.poses >= poses
    assert read_tum(tmp_path / "trajectory_covariance.txt").covariance is not None


CAMERA = """
import sys, time, pickle
sys.path[:0] = [{here!r}, {root!r}]
import rclpy
from camera_messages import image_message, info_messages
from sensor_msgs.msg import CameraInfo, Image
frames, stamp = pickle.load(open({frames!r}, "rb")), {stamp}
rclpy.init()
node = rclpy.create_node("camera", namespace="/faults")
images = [node.create_publisher(Image, f"{{side}}/image_rect", 10) for side in ("left", "right")]
while not all(publisher.get_subscription_count() for publisher in images):
    time.sleep(0.02)
for i in range(10**6):
    stamp += 66_000_000
    for publisher, image in zip(images, (frames[i % 12].left, frames[i % 12].right)):
        publisher.publish(image_message(image, stamp))
    time.sleep(0.2)
"""


def test_kill_the_camera_and_start_it_again(node, frames, tmp_path):
    import pickle

    content = tmp_path / "frames.pickle"
    content.write_bytes(pickle.dumps(frames))
    for _ in range(2):
        script = CAMERA.format(
            here=str(Path(__file__).parent), root=str(ROOT), frames=str(content), stamp=node.next_stamp(0.0)
        )
        start = node._stamp
        camera = subprocess.Popen([sys.executable, "-c", script])
        try:
            node.peer.until(
                lambda start=start: sum(stamp_of(status) > start for status in node.status) > 2,
                "pairs of the new camera",
            )
        finally:
            camera.kill()
            camera.wait()
        node.next_stamp(100.0)  # beyond whatever of the old camera is still on its way
        assert node.node.alive()
    node.track(frames[0])
    assert node.track(frames[1]).state in (Status.TRACKING, Status.DEGRADED)


def test_kill_the_node_and_start_it_again(start_node, make_peer, frames):
    peer = make_peer("killed")
    for _ in range(2):
        process = start_node("killed", camera_at_base=True, watchdog=0.3, publish_tf=False)
        node = SupervisedNode(process, peer, frames[0].camera)
        node.calibrate()
        first, second = node.track(frames[0]), node.track(frames[1])
        assert (first.state, second.state) == (Status.INITIALIZING, Status.TRACKING)
        assert (first.received, first.processed) == (1, 1)
        node.driver.send(frames[2], stamp=node.next_stamp())
        assert process.stop(signal.SIGKILL) == -signal.SIGKILL
        for publisher in (node.driver.left, node.driver.right, *node.driver.infos):
            peer.node.destroy_publisher(publisher)


def test_a_home_that_cannot_be_written(make_peer, ros, frames, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", "/proc/nobody")  # not even root can write there
    monkeypatch.delenv("ROS_LOG_DIR")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    process = NodeProcess(
        "homeless", tmp_path / "output.txt", camera_at_base=True, watchdog=0.3, reliability="reliable"
    )
    try:
        node = SupervisedNode(process, make_peer("homeless"), frames[0].camera)
        node.calibrate()
        node.track(frames[0])
        assert node.track(frames[1]).state == Status.TRACKING
    finally:
        code = process.stop()
    assert code == 0
    assert "not writable" in process.output()
    assert "Traceback" not in process.output()


@pytest.mark.parametrize("when", ["importing", "configuring", "listening"])
def test_interrupt_while_starting(ros, tmp_path, when):
    process = NodeProcess("hasty", tmp_path / "output.txt", camera_at_base=True)
    end = time.monotonic() + 60
    if when == "importing":
        while time.monotonic() < end and "rclpy" not in Path(f"/proc/{process.pid}/maps").read_text():
            os.sched_yield()
    elif when == "configuring":
        while time.monotonic() < end and "INFO" not in process.output():
            os.sched_yield()
    else:
        while time.monotonic() < end and "listening" not in process.output():
            os.sched_yield()
    assert process.stop() in (0, 130, -signal.SIGINT)
    assert "Traceback" not in process.output()


def test_interrupt_while_saving_leaves_whole_files(start_node, make_peer, frames, tmp_path):
    from macvo_ros.srv import SaveTrajectory

    process = start_node("stopped", camera_at_base=True, watchdog=0.3, publish_tf=False)
    node = SupervisedNode(process, make_peer("stopped"), frames[0].camera)
    node.calibrate(*info_messages(frames[0].camera, 0))
    for frame in frames[:3]:
        node.track(frame)
    path = tmp_path / "trajectory.txt"
    client = node.peer.node.create_client(SaveTrajectory, f"{process.name}/save_trajectory")
    node.peer.until(client.service_is_ready, "the service")
    for _ in range(20):
        client.call_async(SaveTrajectory.Request(path=str(path)))
        node.driver.send(frames[3], stamp=node.next_stamp())
    node.peer.until(path.exists, "the first file")
    assert process.stop() == 0
    assert len(read_tum(path)) >= 3
    beside = [tmp_path / f"trajectory_{kind}.txt" for kind in ("covariance", "smoothed")]
    for file in beside:
        assert not file.exists() or len(read_tum(file)) >= 3
    assert {file.name for file in tmp_path.iterdir()} <= {path.name, *(file.name for file in beside)}
    assert "Traceback" not in process.output()
