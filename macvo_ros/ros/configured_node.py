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

"""Everything a configured node has: images in, worker, topics and services out, and their supervision."""

from __future__ import annotations

import time

import numpy as np
import numpy.typing as npt
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.clock import Clock, ClockType
from rclpy.lifecycle import LifecycleNode

from macvo_ros.images.camera_info import StereoInput
from macvo_ros.odometry.estimate import Estimate
from macvo_ros.ros.camera_placement import CameraPlacement
from macvo_ros.ros.counters import Counters
from macvo_ros.ros.diagnostics import Report, diagnostic_array
from macvo_ros.ros.input_watchdog import TopicFacts, explain_silence, overwritten_hint
from macvo_ros.ros.inputs import StereoInputs
from macvo_ros.ros.messages import header
from macvo_ros.ros.outputs import Outputs
from macvo_ros.ros.overload import OverloadLog
from macvo_ros.ros.parameters import NodeConfig
from macvo_ros.ros.repeated_log import RepeatedLog
from macvo_ros.ros.services import Services
from macvo_ros.ros.topic_facts import pair_facts, topic_facts
from macvo_ros.ros.tracking import Odometry, Tracked, Tracking
from macvo_ros.ros.trajectory_log import TrajectoryLog
from macvo_ros.ros.transport_loss import RecentLoss, loss_hint, senders_segments
from macvo_ros.ros.worker import Worker
from macvo_ros.uncertainty.learned_calibration import LearnedCalibration

Float64 = npt.NDArray[np.float64]

DIAGNOSTICS_PERIOD = 1.0


class ConfiguredNode:
    """Lives from configure to cleanup; works from `start` (activate) to `stop` (deactivate)."""

    def __init__(
        self, node: LifecycleNode, config: NodeConfig, odometry: Odometry, calibration: StereoInput | None
    ) -> None:
        """calibration: of `calibration_file`; None: from camera_info."""
        logger = node.get_logger()
        self.trajectory = TrajectoryLog(config.trajectory_poses)
        self._node, self._config = node, config
        self._counters = Counters()
        self._reported = self._counters.snapshot()
        self._refusals = RepeatedLog(lambda text: logger.warning(text))
        self._losses = RepeatedLog(lambda text: logger.warning(text), period=30.0)
        self._recent_loss = RecentLoss()
        self._overwritten = 0
        self._silences = RepeatedLog(lambda text: logger.error(text), period=30.0, counting=False)
        self._overload = OverloadLog(lambda text: logger.warning(text))
        self._clocks = RepeatedLog(lambda text: logger.warning(text), period=30.0, counting=False)
        self._configured_at = self._reported_at = time.monotonic()
        self._placement = CameraPlacement(node, config)
        self._tracking = Tracking(config, odometry, self._placement.base_from, calibration, notice=logger.info)
        self._outputs = Outputs(node, config)
        self._services = Services(node, config, self)
        self._diagnostics = node.create_publisher(DiagnosticArray, "/diagnostics", 10)
        # A clock of its own: with simulated time that stands still, the watchdog must still speak.
        self._steady = Clock(clock_type=ClockType.STEADY_TIME)
        period = min(DIAGNOSTICS_PERIOD, config.watchdog)
        self._timer = node.create_timer(period, self._publish_diagnostics, clock=self._steady)
        self._worker: Worker | None = None
        self._inputs: StereoInputs | None = None
        self._estimate: Estimate | None = None
        self._latency = 0.0
        self._paused = False

    @property
    def learned(self) -> LearnedCalibration | None:
        """What the last tracked frame knew of the calibration."""
        return None if self._estimate is None else self._estimate.calibration

    def start(self) -> None:
        """Subscribe and begin to track."""
        self._counters.last_tracked = time.monotonic()
        worker = self._worker = Worker(
            self._tracking,
            self._counters,
            self._publish,
            self._refusals.say,
            self._config.niceness,
            self._wake_executor,
        )
        worker.start()
        self._inputs = StereoInputs(
            self._node, self._config, self._counters, worker.put, self._refuse, lambda: worker.wants
        )
        self._inputs.paused = self._paused

    def stop(self) -> None:
        """Unsubscribe and let the worker finish the pair it has."""
        if self._inputs is not None:
            self._inputs.close()
            self._inputs = None
        if self._worker is not None:
            if not self._worker.stop():
                self._node.get_logger().error("the tracking thread did not end within 30 s; it is left behind")
            self._worker = None

    def close(self) -> None:
        """Stop, and take everything off the graph."""
        self._placement.close()
        self.stop()
        self._tracking.close()
        self._node.destroy_timer(self._timer)
        self._node.destroy_publisher(self._diagnostics)
        self._services.destroy()
        self._outputs.destroy()

    def change(self, config: NodeConfig) -> None:
        """Use the live settings of `config` from now on."""
        self._config = config
        self._outputs.change(config)
        self._tracking.request_config(config)

    def reset(self, pose: Float64 | None, covariance: Float64 | None) -> None:
        """Continue from `pose` (4, 4) with `covariance` (6, 6) at the next pair; None: the origin, exactly known."""
        self._tracking.request_reset(pose, covariance)
        self._outputs.clear()
        where = "the origin" if pose is None else f"{np.round(pose[:3, 3], 3).tolist()}"
        self._node.get_logger().info(f"reset: tracking continues from {where} with the next pair")

    def set_paused(self, paused: bool) -> str:
        """Stop or go on taking images in; returns a sentence for the answer."""
        if paused == self._paused:
            return "already paused" if paused else "was not paused"
        self._paused = paused
        if self._inputs is not None:
            self._inputs.paused = paused
        self._counters.last_tracked = time.monotonic()
        return "paused: images are ignored until ~/resume" if paused else "resumed from the last pose"

    def _publish(self, tracked: Tracked) -> None:
        """On the worker's thread; the pose goes first."""
        estimate = tracked.estimate
        self._estimate = estimate
        if tracked.outdated:
            return
        self._outputs.publish_pose(tracked)
        now = time.monotonic()
        self._latency = now - tracked.pair.arrived
        overhead = tracked.prepared + now - tracked.finished
        self._outputs.publish_status(estimate, self._counters.snapshot(), self._latency, overhead)
        self.trajectory.append(estimate)
        self._outputs.publish_scene(tracked)

    def _wake_executor(self) -> None:
        """On the worker's thread: images that were left alone while a pair was in work are wanted now."""
        inputs, executor = self._inputs, self._node.executor
        if inputs is not None and inputs.gated and executor is not None:
            executor.wake()

    def _refuse(self, kind: str, reason: str) -> None:
        self._counters.refuse(kind, reason)
        self._refusals.say(kind, reason)

    def _publish_diagnostics(self) -> None:
        self._outputs.greet()
        now = header(self._node.get_clock().now().nanoseconds, "")  # what is reported is at least as new
        counts, before, seconds = self._counters.snapshot(), self._reported, time.monotonic() - self._reported_at
        self._overload.update(counts)
        topics = topic_facts(self._node, self._inputs)
        hint = self._loss(topics)
        silence = self._silence(topics, counts.waiting, hint)
        clock = self._clock_trouble()
        report = Report(
            self._estimate, self._latency, counts, before, seconds, topics, silence, hint, clock, self._paused
        )
        self._reported, self._reported_at = counts, time.monotonic()
        self._diagnostics.publish(diagnostic_array(self._node.get_fully_qualified_name().strip("/"), report, now))

    def _loss(self, topics: list[TopicFacts]) -> str:
        """What to do about images that never reached the node lately; empty when hardly any were lost."""
        images = [topic for topic in topics if topic.role.endswith("image")]
        lost, sent = self._recent_loss.update(images)
        overwritten, self._overwritten = self._overwritten, sum(topic.overwritten for topic in images)
        hints = [loss_hint(images, lost, sent, senders_segments()) if lost else ""]
        if self._overwritten > overwritten:
            hints.append(overwritten_hint(images))
        for hint in filter(None, hints):
            self._losses.say("images lost", hint)
        return "; ".join(filter(None, hints))

    def _silence(self, topics: list[TopicFacts], waiting: int, loss: str) -> str:
        """Why nothing is tracked, once that has lasted for `watchdog` seconds; empty before."""
        quiet = time.monotonic() - self._counters.last_tracked
        if self._inputs is None or self._paused or waiting or quiet < self._config.watchdog:
            return ""
        pairs = pair_facts(self._config, self._inputs, self._counters.snapshot())
        text = explain_silence(quiet, topics, pairs, loss)
        self._silences.say("silence", text, key=f"since {self._counters.last_tracked}")  # one line for each silence
        return text

    def _clock_trouble(self) -> str:
        """What there is to say of simulated time that does not begin; empty while there is nothing."""
        clock = self._node.get_clock()
        waited = time.monotonic() - self._configured_at
        if not clock.ros_time_is_active or clock.now().nanoseconds or waited < self._config.watchdog:
            return ""
        text = (
            "use_sim_time is true but nothing has come on /clock: play the bag with --clock, start the simulator, or "
            "set use_sim_time to false; until then the age of images is unknown"
        )
        self._clocks.say("simulated time", text)
        return text
