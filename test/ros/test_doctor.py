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

"""`macvo doctor` in a process of its own before a real camera driver, sound and broken in several ways at once."""

from __future__ import annotations

import dataclasses
import itertools
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from camera_messages import image_message, info_messages, set_stamp
from harness import DEADLINE, ROOT

from macvo_ros.bags.convert import BODY_FROM_OPTICAL
from macvo_ros.ros.transforms import write_transform

PERIOD = 0.3
"""Seconds between two pairs: long enough for `classic` on a busy machine."""
SIDES = ("left", "right")
ATTEMPTS = 4


class Driver:
    """Publishes a rendered camera at /NAME/{left,right}/{image_rect,camera_info} and its place on /tf_static."""

    def __init__(self, peer: Any, frames: list[Any]) -> None:
        from rclpy.qos import DurabilityPolicy, QoSProfile
        from sensor_msgs.msg import CameraInfo, Image
        from tf2_msgs.msg import TFMessage

        self.peer = peer
        self.frame_id = f"{peer.namespace}_optical"
        self.sides: tuple[str, ...] = SIDES
        self.change: Callable[[str, Any], Any] = lambda side, image: image
        self.change_info: Callable[[str, Any], Any] = lambda side, info: info
        self.right_delay, self.age = 0, 0
        self.skip: Callable[[int], bool] = lambda index: False
        self._frames = itertools.cycle([*frames, *frames[-2:0:-1]])  # there and back: never a jump
        topics = ((Image, "image_rect"), (CameraInfo, "camera_info"))
        self.names = [f"/{peer.namespace}/{side}/{topic}" for _, topic in topics for side in SIDES]
        self._publishers = {
            (side, topic): peer.publisher(kind, f"/{peer.namespace}/{side}/{topic}", wait=False)
            for kind, topic in topics
            for side in SIDES
        }
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self._transforms = peer.publisher(TFMessage, "/tf_static", latched, wait=False)

    def place(self, pose: np.ndarray) -> None:
        from geometry_msgs.msg import TransformStamped
        from tf2_msgs.msg import TFMessage

        message = TransformStamped(child_frame_id=self.frame_id)
        message.header.frame_id = "base_link"
        write_transform(message.transform, pose)
        self._transforms.publish(TFMessage(transforms=[message]))

    def examined(self, *words: str) -> tuple[int, str]:
        """Publish until the doctor has had its say; exit code and what it printed."""
        command = [sys.executable, "-m", "macvo_ros.cli", "doctor", "--matcher", "classic", "--seconds", "4", *words]
        doctor = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=ROOT, text=True)
        began, wall = time.monotonic(), time.time_ns()
        try:
            for index in itertools.count():
                due = began + index * PERIOD
                while (left := due - time.monotonic()) > 0:
                    self.peer.drain(left)
                if doctor.poll() is not None or time.monotonic() > began + DEADLINE:
                    break
                self._send(index, wall + round(index * PERIOD * 1e9) - self.age)
            text, _ = doctor.communicate(timeout=1)
        finally:
            doctor.kill()
            doctor.wait()
        return doctor.returncode, text

    def found_sound(self, *words: str) -> str:
        """What the doctor prints of a camera that it finds nothing wrong with.

        Where other programs starve driver or doctor for a second it rightly complains; then it is asked again.
        """
        for _ in range(ATTEMPTS):
            code, text = self.examined(*words)
            if code == 0:
                return text
        raise AssertionError(text)

    def _send(self, index: int, stamp: int) -> None:
        frame = next(self._frames)
        if self.skip(index):
            return
        for side, info in zip(SIDES, info_messages(frame.camera, stamp), strict=True):
            if side not in self.sides:
                continue
            at = stamp + (self.right_delay if side == "right" else 0)
            image = image_message(self.change(side, getattr(frame, side)), at, "rgb8")
            self._publishers[side, "image_rect"].publish(set_stamp(image, at, self.frame_id))
            self._publishers[side, "camera_info"].publish(set_stamp(self.change_info(side, info), stamp, self.frame_id))


@pytest.fixture
def driver(make_peer: Callable[[str], Any], frames: list[Any], request: pytest.FixtureRequest) -> Driver:
    return Driver(make_peer(f"doctor_{request.node.name}"), frames)


def test_a_sound_camera_is_found_sound(driver: Driver) -> None:
    driver.place(BODY_FROM_OPTICAL)
    text = driver.found_sound("--topics", *driver.names)
    assert "nothing is wrong" in text
    assert "WRONG" not in text
    for words in (
        "every 300.0 ms by its stamps, reliable, 320x240 rgb8 (0.2 MB)",
        "left and right stamps are equal",
        "320x240, fx 220.0, baseline 0.1200 m",
        f"'{driver.frame_id}' is at 0.00, 0.00, 0.00 m in 'base_link' and looks along 1.00, 0.00, 0.00",
        ": rectified",
        "classic takes",
        "TRACKING",
    ):
        assert words in text


def test_topics_are_found_by_their_names(driver: Driver) -> None:
    """Without --topics; and what a driver on other topics would be told."""
    driver.place(BODY_FROM_OPTICAL)
    assert driver.names[0] in driver.found_sound()
    code, text = driver.examined("--topics", "/nobody/left/image_rect", "/nobody/right/image_rect")
    assert code == 1
    assert "no stereo pair is published" in text
    assert driver.names[0] in text
    assert "--topics LEFT RIGHT" in text


def test_bad_calibration_stamps_and_transform(driver: Driver) -> None:
    """The right image three rows lower and 7 ms later, and nobody who says where the camera is."""
    driver.change = lambda side, image: np.roll(image, 3, axis=0) if side == "right" else image
    driver.right_delay = 7_000_000
    code, text = driver.examined("--topics", *driver.names)
    assert code == 1
    assert "left and right stamps are 7 ms apart" in text
    assert "set approximate_sync to true and sync_tolerance to 0.01" in text
    assert f"TF does not connect '{driver.frame_id}' to 'base_link'" in text
    assert "the right image is 3.0 rows too low" in text
    assert "the pair is not rectified" in text
    assert "things are wrong" in text


def test_swapped_images_of_last_year_in_a_body_frame(driver: Driver) -> None:
    driver.place(np.eye(4))
    driver.age = 400 * 24 * 3600 * 10**9
    driver._frames = itertools.cycle(
        [dataclasses.replace(f, left=f.right, right=f.left) for f in itertools.islice(driver._frames, 12)]
    )
    code, text = driver.examined("--topics", *driver.names)
    assert code == 1
    assert "image stamps are years behind this machine's clock" in text
    assert "left and right are swapped: exchange the topics" in text
    assert "a frame whose z points up is the camera's body" in text
    assert "things are wrong" in text


def test_a_covered_lens_lost_images_and_two_drivers(driver: Driver) -> None:
    from sensor_msgs.msg import Image

    driver.place(BODY_FROM_OPTICAL)
    driver.change = lambda side, image: np.zeros_like(image) if side == "left" else image
    driver.skip = lambda index: index % 4 == 3
    second = driver.peer.publisher(Image, driver.names[0], wait=False)
    code, text = driver.examined("--topics", *driver.names)
    assert code == 1
    assert f"left image {driver.names[0]} has 2 publishers" in text
    assert second is not None
    assert "of the images are missing" in text
    assert "the left image is black" in text
    assert "take off the cap" in text


def test_half_a_camera_with_a_calibration_of_another_size(driver: Driver) -> None:
    def doubled(side: str, info: Any) -> Any:
        info.width, info.height = 640, 480
        return info

    driver.change_info = doubled
    code, text = driver.examined("--topics", *driver.names)
    assert code == 1
    assert "left images are 320x240, their camera_info says 640x480" in text
    driver.sides = ("left",)
    code, text = driver.examined("--topics", *driver.names)
    assert code == 1
    assert f"right image {driver.names[1]}: no message in 4 s" in text
    assert "the driver runs but sends nothing" in text


def test_wrong_use_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    from macvo_ros.cli import main

    for words, expected in (
        (["--topics", "/only/one"], "expected 2 names (left right) or 4"),
        (["--seconds", "0"], "expected 0.5 to 600"),
    ):
        assert main(["doctor", *words]) == 2
        assert expected in capsys.readouterr().err


def test_settings_of_the_machine(tmp_path: Path) -> None:
    from macvo_ros.ros.doctor.machine import look_at_dds

    (tmp_path / "plain.xml").write_text("<profiles/>")
    profile = str(ROOT / "config" / "fastdds.xml")
    for environment, wrong in (
        ({}, ""),
        ({"FASTRTPS_DEFAULT_PROFILES_FILE": profile}, ""),
        ({"FASTRTPS_DEFAULT_PROFILES_FILE": "/no/such/file.xml"}, "that file does not exist"),
        ({"FASTDDS_DEFAULT_PROFILES_FILE": str(tmp_path / "plain.xml")}, "sets no segment_size"),
        ({"ROS_AUTOMATIC_DISCOVERY_RANGE": "OFF"}, "nothing can be discovered"),
    ):
        cures = [finding.cure for finding in look_at_dds(environment, "rmw_fastrtps_cpp") if finding.wrong]
        assert (wrong in cures[0]) if wrong else not cures, environment
