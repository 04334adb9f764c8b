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

"""Mailbox, counters and stamps: every pair is accounted for, whatever the threads do."""

from __future__ import annotations

import dataclasses
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.images.camera_info import CameraInfo, StereoInput
from macvo_ros.odometry.estimate import Estimate
from macvo_ros.odometry.status import Status
from macvo_ros.ros.counters import Counters
from macvo_ros.ros.mailbox import Mailbox
from macvo_ros.ros.parameters import NodeConfig
from macvo_ros.ros.stamps import StampOrder
from macvo_ros.ros.stereo_messages import StereoMessages
from macvo_ros.ros.tracking import Refusal, Tracking
from macvo_ros.ros.worker import Worker
from macvo_ros.settings.config import Config, MaskConfig

CAMERA = StereoCamera(20.0, 20.0, 7.5, 5.5, 0.1, 16, 12)


class StandIn:
    """A core whose pose is the number of frames it saw, along x."""

    def __init__(self) -> None:
        self.config, self.base_from_camera = Config(), np.eye(4)
        self.seen: list[int] = []
        self.start, self.gate = np.eye(4), threading.Event()
        self.gate.set()
        self.fails = False

    def track(self, frame):
        self.gate.wait()
        if self.fails:
            raise RuntimeError("the GPU is on fire")
        self.seen.append(frame.stamp)
        pose = self.start.copy()
        pose[0, 3] += len(self.seen)
        return Estimate(frame, Status.TRACKING, pose, np.eye(6))

    def flush(self):
        return None

    def reset(self, pose=None, covariance=None):
        self.start = np.eye(4) if pose is None else pose
        self.seen.clear()


def image(stamp: int, **fields):
    sec, nanosec = divmod(stamp, 10**9)
    header = SimpleNamespace(stamp=SimpleNamespace(sec=sec, nanosec=nanosec), frame_id="camera")
    values = {"height": 12, "width": 16, "step": 16, "encoding": "mono8", "is_bigendian": 0, "data": bytes(192)}
    return SimpleNamespace(header=header, **(values | fields))


def pair(stamp: int, camera: StereoCamera = CAMERA, **fields) -> StereoMessages:
    left, right = (
        CameraInfo(
            camera.width, camera.height, "plumb_bob", np.zeros(5), P[:, :3].ravel(), np.eye(3).ravel(), P.ravel()
        )
        for P in (camera.P_left, camera.P_right)
    )
    return StereoMessages(image(stamp, **fields), image(stamp), left, right, 0.0)


@pytest.fixture
def core() -> StandIn:
    return StandIn()


def tracking(core: StandIn, **config) -> Tracking:
    return Tracking(NodeConfig(**config), core, lambda frame: np.eye(4))


def track(tracker: Tracking, stereo: StereoMessages):
    tracker.track(stereo)
    (tracked,) = tracker.finished()
    return tracked


@pytest.mark.parametrize(("matcher", "dimensions"), [("lite", 2), ("classic", 2), ("flowformer", 3)])
def test_colour_is_decoded_for_who_matches_by_it_and_who_looks(core, matcher, dimensions):
    core.matcher = SimpleNamespace(name=matcher)
    colours = np.random.default_rng(0).integers(0, 256, (12, 16, 3), dtype=np.uint8)
    stereo = pair(1, step=48, encoding="rgb8", data=colours.tobytes())
    stereo = dataclasses.replace(stereo, right=stereo.left)
    tracked = track(tracking(core), stereo)
    assert tracked.estimate.frame.left.ndim == tracked.estimate.frame.right.ndim == dimensions
    np.testing.assert_array_equal(tracked.picture(), colours)


def test_newest_wins_and_every_item_is_seen_or_dropped():
    dropped: list[int] = []
    box: Mailbox[int] = Mailbox(dropped.append)
    for item in range(5):
        box.put(item)
    assert box.take() == 4
    assert dropped == [0, 1, 2, 3]
    box.put(5)
    box.close()
    assert box.take() is None
    assert dropped[-1] == 5


def test_received_is_processed_plus_dropped_under_fire(core):
    counters, published, refused = Counters(), [], []
    worker = Worker(
        tracking(core),
        counters,
        lambda tracked: published.append(tracked.pair.stamp),
        lambda kind, reason: refused.append(kind),
    )
    worker.start()
    for i in range(1, 2001):
        worker.put(pair(i * 1000, step=4 if i % 7 == 0 else 16))
        counts = counters.snapshot()
        assert counts.received == counts.processed + counts.refused + counts.dropped + counts.waiting
        assert 0 <= counts.waiting <= 2
    assert worker.stop()
    counts = counters.snapshot()
    assert counts.received == 2000 == counts.processed + counts.refused + counts.dropped
    assert counts.processed == len(published)
    assert counts.refused == len(refused) == counts.refusals.get("image", SimpleNamespace(count=0)).count
    assert published == sorted(published)


def test_slow_core_gets_the_newest_pair(core):
    core.gate.clear()
    counters, done = Counters(), threading.Event()
    worker = Worker(tracking(core), counters, lambda t: done.set() if t.pair.stamp == 50 else None, lambda k, r: None)
    worker.start()
    for stamp in range(1, 51):
        worker.put(pair(stamp))
    core.gate.set()
    assert done.wait(20)
    worker.stop()
    assert len(core.seen) <= 2
    assert core.seen[-1] == 50


def test_a_core_that_raises_does_not_end_the_worker(core):
    counters, reasons, done = Counters(), [], threading.Event()
    worker = Worker(tracking(core), counters, lambda t: done.set(), lambda kind, reason: reasons.append((kind, reason)))
    core.fails = True
    worker.start()
    worker.put(pair(1))
    while not reasons:
        pass
    core.fails = False
    worker.put(pair(2))
    assert done.wait(20)
    worker.stop()
    assert reasons[0][0] == "internal error"
    assert "the GPU is on fire" in reasons[0][1]
    assert counters.snapshot().resets == 1


def test_a_reset_outdates_the_pair_in_work(core):
    tracker = tracking(core)
    assert not track(tracker, pair(1)).outdated
    core.gate.clear()
    results = []
    thread = threading.Thread(target=lambda: results.append(track(tracker, pair(2))))
    thread.start()
    pose = np.eye(4)
    pose[1, 3] = 7.0
    tracker.request_reset(pose, np.eye(6))
    core.gate.set()
    thread.join()
    tracker_first = results[0]
    after = track(tracker, pair(3))
    # Whether the request came before or during that pair, no pose of the old path is published after it.
    assert tracker_first.outdated or tracker_first.estimate.pose[1, 3] == 7.0
    assert after.estimate.pose[1, 3] == 7.0


def test_calibration_change_is_noticed_once(core):
    notices: list[str] = []
    tracker = Tracking(NodeConfig(), core, lambda frame: np.eye(4), notice=notices.append)
    for stamp in (1, 2):
        tracker.track(pair(stamp))
    other = StereoCamera(25.0, 25.0, 7.5, 5.5, 0.1, 16, 12)
    for stamp in (3, 4):
        tracker.track(pair(stamp, other))
    assert [note.split(" is ")[0] for note in notices] == ["calibration", "the calibration changed; it"]


def test_missing_transform_is_a_refusal(core):
    def unknown(frame: str) -> np.ndarray:
        raise Refusal("transform", f"nobody knows {frame}")

    tracker = Tracking(NodeConfig(), core, unknown)
    with pytest.raises(Refusal, match="nobody knows camera") as refusal:
        tracker.track(pair(1))
    assert refusal.value.kind == "transform"
    assert not core.seen


def test_rectifying_rotation_joins_the_cameras_place(core):
    stereo = StereoInput(CAMERA)
    place = np.eye(4)
    place[:3, 3] = 1, 2, 3
    tracker = Tracking(NodeConfig(), core, lambda frame: place, calibration=stereo)
    tracked = track(tracker, pair(1))
    np.testing.assert_array_equal(core.base_from_camera, place)
    np.testing.assert_array_equal(tracked.camera_in_odom, tracked.estimate.pose @ place)


def test_stamps_late_doubled_and_of_a_new_time():
    order = StampOrder()
    second = 10**9
    order.accept(100 * second)
    assert "second pair" in order.why_refused(100 * second)
    assert "500.0 ms older" in order.why_refused(100 * second - second // 2)
    assert order.why_refused(50 * second) == ""
    assert order.went_back(50 * second) == 50 * second
    assert order.went_back(101 * second) == 0
    order.forget()
    assert order.why_refused(1) == ""


def test_a_short_loop_is_a_new_time_at_its_third_pair():
    order = StampOrder()
    order.accept(10**9)
    refused = [bool(order.why_refused(stamp)) for stamp in (10**8, 2 * 10**8, 3 * 10**8)]
    assert refused == [True, True, False]


@settings(deadline=None)
@given(st.lists(st.integers(0, 5 * 10**9), max_size=40))
def test_accepted_stamps_never_repeat(stamps):
    order, newest = StampOrder(), None
    for stamp in stamps:
        if not order.why_refused(stamp):
            assert stamp != newest
            order.accept(stamp)
            newest = stamp


class OneLate(StandIn):
    """A pipelined core: each call answers for the frame before."""

    def __init__(self) -> None:
        super().__init__()
        self.held = None

    def track(self, frame):
        before, self.held = self.held, frame
        return None if before is None else super().track(before)

    def flush(self):
        before, self.held = self.held, None
        return None if before is None else super().track(before)

    def reset(self, pose=None, covariance=None):
        self.held = None
        super().reset(pose, covariance)


def test_a_pipelined_core_publishes_each_pair_once_under_its_own_stamp():
    counters, published, last = Counters(), [], threading.Event()

    def publish(tracked):
        assert tracked.pair.stamp == tracked.estimate.frame.stamp
        published.append(tracked.pair.stamp)
        if tracked.pair.stamp == 300:
            last.set()

    worker = Worker(tracking(OneLate()), counters, publish, lambda kind, reason: None)
    worker.start()
    for stamp in range(1, 301):
        worker.put(pair(stamp))
    assert last.wait(20)  # though no further pair pushes it out
    worker.stop()
    counts = counters.snapshot()
    assert counts.received == 300 == counts.processed + counts.dropped
    assert counts.processed == len(published) == len(set(published))


def test_a_pipelined_core_finishes_what_it_holds_before_a_restart():
    tracker = tracking(OneLate())
    tracker.track(pair(10 * 10**9))
    assert tracker.finished() == []
    tracker.track(pair(5 * 10**9))  # the clock went back
    assert [tracked.pair.stamp for tracked in tracker.finished()] == [10 * 10**9]
    tracker.request_reset()
    tracker.track(pair(6 * 10**9))
    (outdated,) = tracker.finished()
    assert (outdated.pair.stamp, outdated.outdated) == (5 * 10**9, True)
    assert tracker.in_work == 1


def test_a_mask_of_another_size_refuses_pairs_with_a_sentence(core):
    tracker = tracking(core, mask=MaskConfig(polygons="100,100 200,100 200,200"))
    with pytest.raises(Refusal, match="the mask hides nothing of the 16x12 images") as refusal:
        tracker.track(pair(1000))
    assert refusal.value.kind == "image"
    assert tracker.in_work == 0
    assert core.seen == []


def test_the_core_gets_the_masked_frame(core):
    tracked = track(tracking(core, mask=MaskConfig(polygons="14,10 15,10 15,11")), pair(1000))
    assert tracked.estimate.frame.masked is not None
    assert tracked.estimate.frame.masked[11, 15]
    assert not tracked.estimate.frame.masked[0, 0]
