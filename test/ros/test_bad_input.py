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

"""Whatever comes in, the node lives, counts it, says why, and tracks the next good pair."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from camera_messages import byte_array, compressed_message, image_message, info_messages, stamp_of
from supervised_node import SupervisedNode, supervised

from macvo_ros.odometry.status import Status


@pytest.fixture(scope="module")
def node(start_node, frames):
    process = start_node("bad", camera_at_base=True, watchdog=0.3, publish_tf=False)
    with supervised(process, frames[0].camera) as node:
        yield node


def yuv(message):
    message.encoding = "yuv422_yuy2"


def truncated(message):
    message.data = message.data[: len(message.data) // 2]


def empty(message):
    message.data = byte_array(b"")


def short_step(message):
    message.step //= 2


def huge(message):
    message.height = message.width = 2**31


def zero_size(message):
    message.height = message.width = message.step = 0
    message.data = byte_array(b"")


def taller(message):
    message.height += 16
    message.data.extend(bytes(16 * message.step))


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (yuv, "yuv422_yuy2"),
        (truncated, "truncated"),
        (empty, "truncated"),
        (short_step, "step"),
        (huge, "image"),
        (zero_size, "0x0"),
        (taller, "320x256"),
    ],
)
@pytest.mark.parametrize("side", ["left", "right"])
def test_malformed_image(node, frames, spoil, words, side):
    before = node.refusals("image")[0]
    stamp = node.next_stamp()
    left, right = image_message(frames[1].left, stamp), image_message(frames[1].right, stamp)
    spoil(left if side == "left" else right)
    node.driver.left.publish(left)
    node.driver.right.publish(right)
    node.wait_refusal("image", words, before)
    assert side in node.refusals("image")[1]


def test_tracks_on_after_all_that(node, frames):
    node.track(frames[0])
    assert node.track(frames[1]).state == Status.TRACKING


@pytest.mark.parametrize(
    ("name", "words"),
    [("zero", "fx = 0"), ("nan", "not finite"), ("swapped", "swapped"), ("no baseline", "baseline")],
)
def test_impossible_calibration(node, frames, name, words):
    left, right = info_messages(node.driver.camera, 0)
    if name == "zero":
        left.p, right.p = np.zeros(12), np.zeros(12)
    elif name == "nan":
        right.p = np.full(12, np.nan)
    elif name == "swapped":
        left, right = right, left
    else:
        right = left
    before = node.refusals("calibration")[0]
    node.calibrate(left, right)
    node.driver.send(frames[1], stamp=node.next_stamp())
    node.wait_refusal("calibration", words, before)
    node.calibrate()
    node.track(frames[2])
    assert node.track(frames[3]).state == Status.TRACKING


def test_calibration_and_size_change_at_run_time(node, frames):
    camera = frames[0].camera.cropped(0, 0, 320, 200)
    node.calibrate(*info_messages(camera, 0))
    small = [dataclasses.replace(f, left=f.left[:200], right=f.right[:200], camera=camera) for f in frames[4:6]]
    first = node.track(small[0])
    assert "calibration" in first.reason
    assert node.track(small[1]).state == Status.TRACKING
    before = node.refusals("image")[0]
    node.driver.send(frames[5], stamp=node.next_stamp())  # the images change size before their camera_info does
    node.wait_refusal("image", "320x240", before)
    node.calibrate()
    node.track(frames[5])
    assert node.track(frames[6]).state == Status.TRACKING
    assert "calibration changed" in node.node.output()


def test_one_sides_camera_info_changes_before_the_others(node, frames):
    """The pair waits until both sides agree; one that is replaced meanwhile is refused with a reason, and counted."""
    camera = frames[0].camera.cropped(0, 0, 320, 200)
    small = [dataclasses.replace(f, left=f.left[:200], right=f.right[:200], camera=camera) for f in frames[:4]]
    node.track(frames[6])
    infos = info_messages(camera, node.next_stamp())
    node.calibrate_side(0, infos[0])
    node.refresh()
    received, refused, processed = node.count("received"), node.refusals("camera_info")[0], node.status[-1].processed
    held, replaced = node.next_stamp(), len(node.status)
    node.driver.send(small[0], stamp=held)
    node.driver.send(small[1], stamp=node.next_stamp())
    node.wait_refusal("camera_info", "right/camera_info since", refused)
    assert node.count("received") == received + 1  # the newer of the two waits
    assert len(node.status) == replaced
    node.calibrate_side(1, infos[1])
    node.peer.until(lambda: len(node.status) > replaced, "the pair that waited")
    assert stamp_of(node.status[-1]) == held + 66_000_000
    assert "calibration" in node.status[-1].reason
    assert node.status[-1].processed == processed + 1  # the one tracked, not the one refused
    assert node.track(small[2]).state == Status.TRACKING
    node.calibrate()
    node.track(frames[7])


def test_black_pair_is_silence_and_lost(node, frames):
    lost = node.status[-1].lost
    black = dataclasses.replace(frames[6], left=np.zeros_like(frames[6].left), right=np.zeros_like(frames[6].right))
    status = node.track(black)
    assert status.state == Status.LOST
    assert "black" in status.reason
    assert status.lost == lost + 1
    node.peer.until(lambda: "black" in node.values("tracking")["message"], "diagnostics to tell of the black image")
    assert node.values("tracking")["level"] == b"\x02"  # ERROR
    after = node.track(frames[7])
    assert after.state in (Status.TRACKING, Status.DEGRADED)
    node.newest_odometry()
    assert status.header.stamp not in [message.header.stamp for message in node.odometry]


def test_frozen_pair_is_counted_and_explained(node, frames):
    node.track(frames[8])
    before = node.status[-1]
    status = node.track(frames[8])
    assert status.state != Status.TRACKING
    assert "identical" in status.reason
    assert status.degraded + status.lost == before.degraded + before.lost + 1


def test_duplicate_and_late_pairs_are_refused(node, frames):
    status = node.track(frames[9])
    newest = status.header.stamp.sec * 10**9 + status.header.stamp.nanosec
    before = node.refusals("stamp")[0]
    node.driver.send(frames[9], stamp=newest)
    node.wait_refusal("stamp", "second pair", before)
    node.driver.send(frames[9], stamp=newest - 50_000_000)
    node.wait_refusal("stamp", "50.0 ms older", before + 1)


def test_time_going_back_restarts_from_the_last_pose(node, frames):
    node.track(frames[10])
    last, resets = node.newest_odometry(), node.status[-1].resets
    status = node.track(frames[11], stamp=node.next_stamp() - 3_600_000_000_000)
    assert status.resets == resets + 1
    after = node.newest_odometry()
    assert after.pose.pose.position == last.pose.pose.position
    assert after.pose.covariance[0] > last.pose.covariance[0] + 0.1
    assert "went back" in node.node.output()
    node._stamp -= 3_600_000_000_000
    assert node.track(frames[10]).state == Status.TRACKING


def test_right_stamps_40_ms_off_are_named_with_their_offset(node, frames):
    node.refresh()
    unpaired = node.count("unpaired")
    for _ in range(24):
        stamp = node.next_stamp(0.1)
        node.driver.left.publish(image_message(frames[0].left, stamp, "mono8"))
        node.driver.right.publish(image_message(frames[0].right, stamp + 40_000_000, "mono8"))
        node.peer.drain(0.01)
    node.peer.until(lambda: "40.000 ms after" in node.values()["message"], "an explanation with the offset")
    assert "approximate_sync" in node.values()["message"]
    assert node.count("unpaired") > unpaired
    assert node.node.alive()


def test_everything_is_accounted_for(node, frames):
    node.next_stamp(1.0)
    node.track(frames[0])
    status = node.status[-1]
    assert status.received == status.processed + status.refused + status.dropped + status.waiting
    assert status.dropped == status.waiting == 0
    assert status.processed == len(node.status)  # one for each, and none for a refused pair
    assert status.refused > 0
    kinds = [key for key in node.values() if key.startswith("refused, ")]
    assert sum(node.refusals(kind.removeprefix("refused, "))[0] for kind in kinds) == node.count("refused")
    assert "internal error" not in " ".join(kinds)
    assert "Traceback" not in node.node.output()


def test_corrupt_jpeg(start_node, make_peer, frames):
    from sensor_msgs.msg import CompressedImage

    process = start_node("jpeg", camera_at_base=True, watchdog=0.3, compressed=True)
    node = SupervisedNode(
        process, make_peer("jpeg"), frames[0].camera, kind=CompressedImage, topic="image_rect/compressed"
    )
    for spoil in (slice(0, 500), slice(0, 2), slice(100, None)):
        before = node.refusals("image")[0]
        stamp = node.next_stamp()
        left, right = (compressed_message(image, stamp, "jpeg") for image in (frames[0].left, frames[0].right))
        right.data = right.data[spoil]
        node.driver.left.publish(left)
        node.driver.right.publish(right)
        node.wait_refusal("image", "right compressed image", before)
    for i, kind in enumerate(["jpeg", "png", "jpeg"]):
        stamp = node.next_stamp()
        node.driver.left.publish(compressed_message(frames[i].left, stamp, kind))
        node.driver.right.publish(compressed_message(frames[i].right, stamp, kind))
        node.peer.until(lambda i=i: len(node.status) > i, "the status of a compressed pair")
    assert [status.state for status in node.status] == [Status.INITIALIZING, Status.TRACKING, Status.TRACKING]
    for i in range(3, 6):  # interrupted in the middle of its work, it still ends in order
        stamp = node.next_stamp()
        node.driver.left.publish(compressed_message(frames[i].left, stamp, "jpeg"))
        node.driver.right.publish(compressed_message(frames[i].right, stamp, "jpeg"))
    assert process.stop() == 0
    assert "Traceback" not in process.output()
