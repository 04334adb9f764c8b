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

"""From stereo messages to estimates, on the worker's thread: decode, calibrate, place the camera, track."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from macvo_ros.errors import CalibrationError, ImageError, MacvoError
from macvo_ros.images.camera_info import CameraInfo, StereoInput
from macvo_ros.images.frame import Image, StereoFrame
from macvo_ros.images.mask import RobotMask
from macvo_ros.odometry.estimate import Estimate
from macvo_ros.ros.parameters import NodeConfig
from macvo_ros.ros.stamps import StampOrder
from macvo_ros.ros.stereo_messages import StereoMessages, decode
from macvo_ros.settings.config import Config
from macvo_ros.uncertainty.motion_prior import ConstantVelocity
from macvo_ros.uncertainty.relative_motion import RelativeMotion
from macvo_ros.uncertainty.trajectory import PoseWithCovariance, extend

Float64 = npt.NDArray[np.float64]

GREY_MATCHERS = frozenset({"lite", "classic"})
"""Matchers that make grey of colour before anything else: for them images are decoded to grey at once."""


class Odometry(Protocol):
    """What the node needs of the core (`StereoOdometry`; `PipelinedOdometry` answers one frame late)."""

    config: Config
    base_from_camera: Float64

    def track(self, frame: StereoFrame) -> Estimate | None: ...

    def flush(self) -> Estimate | None: ...

    def reset(self, pose: Float64 | None = None, covariance: Float64 | None = None) -> None: ...


class Refusal(MacvoError):
    """A pair that cannot be used. kind: a word or two to count by; the text says what was wrong and what to do."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind


@dataclass(frozen=True, eq=False)
class Tracked:
    """An estimate with what its publication needs.

    pair: the messages it belongs to. prepared: seconds their decoding took. finished: when the core was done,
    `time.monotonic` seconds.
    camera_in_odom: (4, 4) pose of the rectified left optical frame. camera_in_image: (4, 4) pose of the same in the
    frame that the image's header names (a rotation where we rectified). outdated: a reset was asked for meanwhile.
    new_path: the stamps went back and the path begins anew at the origin. without_colour: the frame was decoded to
    grey, whatever the camera sent.
    """

    estimate: Estimate
    pair: StereoMessages
    camera_in_odom: Float64
    camera_in_image: Float64
    prepared: float
    finished: float
    outdated: bool = False
    new_path: bool = False
    without_colour: bool = False

    def picture(self) -> Image:
        """The left image to look at, in colour where the camera has any: (H, W) or (H, W, 3) RGB.

        Decoded once more where the odometry did without; so ask only while somebody looks.
        """
        return decode(self.pair.left) if self.without_colour else self.estimate.frame.left


class Tracking:
    """Owns the odometry. `track` runs on one thread; the requests may come from another."""

    def __init__(
        self,
        config: NodeConfig,
        odometry: Odometry,
        base_from: Callable[[str], Float64],
        calibration: StereoInput | None = None,
        notice: Callable[[str], None] = lambda text: None,
    ) -> None:
        """base_from: pose (4, 4) of a frame in the base frame, raising Refusal while unknown.

        calibration: from a file, instead of camera_info. notice: told of restarts, a sentence each.
        """
        self.resets = 0
        self._config = config
        self._odometry = odometry
        self._mask = RobotMask(config.mask)  # here already, so that a pair that it does not fit is refused
        self._base_from = base_from
        self._input, self._from_file = calibration, calibration is not None
        self._infos: tuple[CameraInfo, CameraInfo] | None = None
        self._camera_frame = ""
        self._notice = notice
        matcher = getattr(odometry, "matcher", None)  # a pipelined odometry hides its own, which is a network
        self._grey_suffices = matcher is not None and matcher.name in GREY_MATCHERS
        self._order = StampOrder()
        self._new_path = False
        self._last: Estimate | None = None
        self._in_work: dict[int, tuple[StereoMessages, Float64, bool, float]] = {}
        self._finished: list[Tracked] = []
        self._lock = threading.Lock()
        self._requested: PoseWithCovariance | None = None
        self._new_config: NodeConfig | None = None

    def request_reset(self, pose: Float64 | None = None, covariance: Float64 | None = None) -> None:
        """Continue from `pose` (4, 4) with `covariance` (6, 6) at the next pair; the pair in work is outdated."""
        place = PoseWithCovariance(
            np.eye(4) if pose is None else pose, np.zeros((6, 6)) if covariance is None else covariance
        )
        with self._lock:
            self._requested = place

    def request_config(self, config: NodeConfig) -> None:
        """Use the live settings of `config` from the next pair on."""
        with self._lock:
            self._new_config = config

    def close(self) -> None:
        """Let the odometry end threads of its own."""
        close = getattr(self._odometry, "close", None)
        if close is not None:
            close()

    @property
    def in_work(self) -> int:
        """Pairs handed to the odometry whose estimates have not come out (one when pipelined)."""
        return len(self._in_work)

    def finished(self) -> list[Tracked]:
        """The estimates that came out since this was last asked."""
        finished, self._finished = self._finished, []
        return finished

    def abandon(self, pair: StereoMessages | None) -> int:
        """After an error with `pair`: forget what is in work; returns how many pairs that were, this one included."""
        forgotten = len(self._in_work) + int(pair is not None and pair.stamp not in self._in_work)
        self._in_work.clear()
        self._restart_from_last()
        return forgotten

    def track(self, pair: StereoMessages) -> None:
        """Hand a pair to the odometry; raises Refusal for one that cannot be used."""
        started = time.monotonic()
        self._fulfil_requests()
        self._check_stamp(pair.stamp)
        try:
            stereo = self._stereo_input(pair)
            # Not of raw images: rectified grey is not to the bit the grey of rectified colour, which bags are read in.
            grey = self._grey_suffices and stereo.rectifier is None
            left, right = pair.decode_grey() if grey else pair.decode()
            frame = self._mask.applied(stereo.frame(left, right, pair.stamp))
        except ImageError as error:
            raise Refusal("image", str(error)) from error
        except CalibrationError as error:
            raise Refusal("calibration", str(error)) from error
        self._place_camera(pair.frame_id, stereo)
        self._in_work[pair.stamp] = (pair, stereo.raw_from_rectified, grey, time.monotonic() - started)
        self._order.accept(pair.stamp)
        self._take(self._odometry.track(frame))

    def flush(self) -> None:
        """Have the odometry finish what it holds back."""
        if self._in_work:
            self._take(self._odometry.flush())

    def _take(self, estimate: Estimate | None) -> None:
        if estimate is None:
            return
        pair, in_image, grey, prepared = self._in_work.pop(estimate.frame.stamp)
        self._last = estimate
        new_path, self._new_path = self._new_path, False
        with self._lock:
            outdated = self._requested is not None
        in_odom = estimate.pose @ self._odometry.base_from_camera
        done = time.monotonic()
        self._finished.append(Tracked(estimate, pair, in_odom, in_image, prepared, done, outdated, new_path, grey))

    def _fulfil_requests(self) -> None:
        with self._lock:
            place, config = self._requested, self._new_config
            self._new_config = None
        if config is not None:
            self._config = self._odometry.config = config
        if place is not None:
            self.flush()  # outdated, since the request still stands
            with self._lock:
                self._requested = None if self._requested is place else self._requested
            self._reset(place)
            self._order.forget()

    def _check_stamp(self, stamp: int) -> None:
        """Stamps must increase; what does not is late, a duplicate, or the beginning of a new time."""
        trouble = self._order.why_refused(stamp)
        if trouble:
            raise Refusal("stamp", trouble)
        back = self._order.went_back(stamp)
        if back > 0:
            self.flush()
            how = self._config.on_time_jump
            self._notice(
                f"image stamps went back by {back * 1e-9:.3f} s (bag loop or clock reset): tracking restarts from "
                f"{'the last pose' if how == 'continue' else 'the origin'} (parameter on_time_jump)"
            )
            if how == "continue":
                self._restart_from_last()
            else:
                self._reset(PoseWithCovariance(np.eye(4), np.zeros((6, 6))))
                self._new_path = True

    def _stereo_input(self, pair: StereoMessages) -> StereoInput:
        """What makes frames of this pair: from the file, or from camera_info and again whenever that changes."""
        if self._from_file:
            assert self._input is not None
            return self._input
        if pair.left_info is None or pair.right_info is None:
            raise Refusal("camera_info", "no camera_info has arrived for these images")
        known = self._infos
        if known is None or not (
            known[0].same_calibration(pair.left_info) and known[1].same_calibration(pair.right_info)
        ):
            self._infos = None
            self._input = StereoInput.from_camera_info(pair.left_info, pair.right_info, rectify=self._config.rectify)
            self._camera_frame = ""
            camera = self._input.camera
            self._notice(
                f"{'calibration' if known is None else 'the calibration changed; it'} is {camera.width}x{camera.height}"
                f", fx {camera.fx:.2f}, baseline {camera.baseline:.4f} m"
            )
            self._infos = (pair.left_info, pair.right_info)
        assert self._input is not None
        return self._input

    def _place_camera(self, frame_id: str, stereo: StereoInput) -> None:
        if frame_id == self._camera_frame and frame_id:
            return
        base_from_camera = self._base_from(frame_id) @ stereo.raw_from_rectified
        if not np.allclose(base_from_camera, self._odometry.base_from_camera):
            self.flush()
            self._odometry.base_from_camera = base_from_camera
            if self._last is not None:
                self._notice(f"the camera frame changed to {frame_id!r}: tracking restarts from the last pose")
                self._restart_from_last()
        self._camera_frame = frame_id

    def _restart_from_last(self) -> None:
        """Continue from the last pose as if max_gap seconds had passed unseen."""
        if self._last is None:
            self._reset(PoseWithCovariance(np.eye(4), np.zeros((6, 6))))
            return
        unseen = ConstantVelocity(self._config.motion_prior).covariance(self._config.reference.max_gap)
        self._reset(
            extend(PoseWithCovariance(self._last.pose, self._last.covariance), RelativeMotion(np.eye(4), unseen))
        )

    def _reset(self, place: PoseWithCovariance) -> None:
        self._in_work.clear()
        self._odometry.reset(place.pose, place.covariance)
        self.resets += 1
