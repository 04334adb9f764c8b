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

"""/diagnostics: how tracking and input stand, once a second."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue

from macvo_ros.odometry.estimate import Estimate
from macvo_ros.odometry.message_fields import status_fields
from macvo_ros.odometry.status import Status
from macvo_ros.ros.counters import Counts
from macvo_ros.ros.input_watchdog import TopicFacts, seen_on
from macvo_ros.ros.overload import overload_hint

LEVELS = {
    Status.INITIALIZING: DiagnosticStatus.OK,
    Status.TRACKING: DiagnosticStatus.OK,
    Status.DEGRADED: DiagnosticStatus.WARN,
    Status.LOST: DiagnosticStatus.ERROR,
}


@dataclass(frozen=True, eq=False)
class Report:
    """What the diagnostics are made of.

    before: the counts of the report before this one, `seconds` ago, for what is new. clock: what is wrong with time.
    """

    estimate: Estimate | None
    latency: float
    counts: Counts
    before: Counts
    seconds: float
    topics: list[TopicFacts]
    silence: str
    loss: str
    clock: str
    paused: bool


def diagnostic_array(name: str, report: Report, header: Any) -> DiagnosticArray:
    """diagnostic_msgs/DiagnosticArray of the node called `name`."""
    parts = tracking_status(name, report), input_status(name, report), calibration_status(name, report)
    return DiagnosticArray(header=header, status=list(parts))


def tracking_status(name: str, report: Report) -> DiagnosticStatus:
    """State of the odometry."""
    estimate = report.estimate
    message = DiagnosticStatus(name=f"{name}: tracking", hardware_id=name)
    if report.paused:
        message.level, message.message = DiagnosticStatus.WARN, "paused: call ~/resume"
    elif report.silence:
        message.level, message.message = DiagnosticStatus.STALE, "no images to track; see the input status"
    elif estimate is None:
        message.level, message.message = DiagnosticStatus.OK, "waiting for the first stereo pair"
    else:
        reason = f": {estimate.reason}" if estimate.reason else ""
        message.level, message.message = LEVELS[estimate.status], f"{estimate.status.name}{reason}"
    if estimate is not None:
        fields = status_fields(estimate)
        message.values = [
            *(_value(key, fields[key]) for key in ("keypoints", "inliers", "chi2", "median_match_sigma")),
            _value("position_sigma, m", fields["position_sigma"]),
            _value("rotation_sigma, rad", fields["rotation_sigma"]),
            _value("core time, s", fields["core_time"]),
            _value("latency, s", report.latency),
        ]
    message.values += [_value(key, getattr(report.counts, key)) for key in ("lost", "degraded", "resets")]
    return message


def calibration_status(name: str, report: Report) -> DiagnosticStatus:
    """What was learned of the calibration."""
    message = DiagnosticStatus(name=f"{name}: calibration", hardware_id=name, level=DiagnosticStatus.OK)
    learned = None if report.estimate is None else report.estimate.calibration
    if learned is None:
        message.message = "nothing is learned yet"
        return message
    findings = learned.findings()
    if learned.knocks:
        findings.insert(0, f"a camera was knocked {learned.knocks} times since the start; it is learned anew")
    if findings:
        message.level, message.message = DiagnosticStatus.WARN, "; ".join(findings)
    else:
        message.message = "as told, as far as can be seen"
    message.values = [_value(figure.name, str(figure)) for figure in learned.figures()]
    return message


def input_status(name: str, report: Report) -> DiagnosticStatus:
    """State of the images: what comes, what is dropped and refused, and why."""
    counts, before = report.counts, report.before
    message = DiagnosticStatus(
        name=f"{name}: input", hardware_id=name, level=DiagnosticStatus.OK, message="images arrive"
    )
    troubles = [report.clock] if report.clock else []
    if overload := overload_hint(counts, before, report.seconds):
        troubles.append(overload)
    if counts.unpaired > before.unpaired:
        troubles.append(f"{counts.unpaired - before.unpaired} images without a partner")
    if report.loss:
        troubles.append(report.loss)
    if counts.refused > before.refused:
        kind, last = next(
            (kind, item.last)
            for kind, item in reversed(counts.refusals.items())
            if kind not in before.refusals or before.refusals[kind].count < item.count
        )
        troubles.append(f"{counts.refused - before.refused} pairs refused ({kind}): {last}")
    if troubles:
        message.level, message.message = DiagnosticStatus.WARN, "; ".join(troubles)
    if report.silence:
        message.level, message.message = DiagnosticStatus.ERROR, "\n".join([report.silence, *troubles])
    message.values = [
        _value(key, getattr(counts, key))
        for key in ("received", "processed", "dropped", "waiting", "refused", "unpaired")
    ]
    message.values += [
        _value(f"refused, {kind}", f"{item.count}, last: {item.last}") for kind, item in counts.refusals.items()
    ]
    message.values += [_value(f"{topic.role} {topic.name}", seen_on(topic)) for topic in report.topics]
    return message


def _value(key: str, value: Any) -> KeyValue:
    return KeyValue(key=key, value=f"{value:.6g}" if isinstance(value, float) else str(value))
