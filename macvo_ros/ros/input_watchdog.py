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

"""Why no pair arrives: each topic, what was seen on it, and the likely cause. Plain text from plain facts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TopicFacts:
    """One topic as the node and the ROS graph see it.

    types: message types it is published with, one per publisher. age: seconds since its last message.
    alternatives: topics of the right type that are published elsewhere. lost: messages the middleware did not deliver;
    skipped: those that it delivered and that gave way to newer ones while a pair was tracked; overwritten: those that
    did so although the node wanted them. asked: the reliability we ask for (reliable or best effort), offered: that of
    each publisher.
    """

    role: str
    name: str
    wanted_type: str
    types: tuple[str, ...]
    received: int
    lost: int
    incompatible: str
    age: float
    content: str = ""
    size: int = 0
    alternatives: tuple[str, ...] = ()
    skipped: int = 0
    overwritten: int = 0
    asked: str = ""
    offered: tuple[str, ...] = ()


@dataclass(frozen=True)
class PairFacts:
    """How the synchronization stands.

    offset: seconds, right stamps minus left, None when unknown. since: seconds since the last pair.
    """

    approximate: bool
    tolerance: float
    offset: float | None
    since: float
    last_refusal: str


def explain_silence(seconds: float, topics: list[TopicFacts], pairs: PairFacts, loss: str = "") -> str:
    """One line per topic, then the likely cause. loss: what there is to say of lost images."""
    lines = [f"no stereo pair was tracked for {seconds:.0f} s"]
    lines += [f"  {topic.role} {topic.name}: {seen_on(topic)}" for topic in topics]
    lines.append(f"  likely cause: {likely_cause(seconds, topics, pairs, loss)}")
    return "\n".join(lines)


def seen_on(topic: TopicFacts) -> str:
    """What was seen on a topic, in words."""
    if not topic.types:
        return "no publisher"
    parts = [f"{len(topic.types)} publisher{'s' if len(topic.types) > 1 else ''}"]
    if topic.wanted_type not in topic.types:
        parts.append(f"of {topic.types[0]}, not {topic.wanted_type}")
    if topic.asked:
        parts.append(topic.asked)
    if topic.received:
        parts.append(f"{topic.received} messages, the last {topic.age:.1f} s ago")
        if topic.content:
            parts.append(topic.content)
    else:
        parts.append("no message")
    if topic.lost:
        parts.append(f"{topic.lost} lost on the way")
    if topic.skipped:
        parts.append(f"{topic.skipped} skipped while tracking")
    if topic.overwritten:
        parts.append(f"{topic.overwritten} overwritten before they were taken")
    if topic.incompatible:
        parts.append(f"incompatible QoS ({topic.incompatible})")
    return ", ".join(parts)


def likely_cause(seconds: float, topics: list[TopicFacts], pairs: PairFacts, loss: str = "") -> str:
    """The first cause that explains the silence, with what to do. loss: what there is to say of lost images."""
    for topic in topics:
        if topic.types and topic.wanted_type not in topic.types:
            compressed = "CompressedImage" in topic.types[0] or "CompressedImage" in topic.wanted_type
            return f"{topic.name} carries {topic.types[0]}, but {topic.wanted_type} is expected; " + (
                "set the parameter compressed" if compressed else "remap the topic"
            )
        if topic.incompatible and not topic.received:
            return (
                f"the publisher of {topic.name} does not offer the {topic.incompatible} we ask for; "
                "set the parameter reliability to auto, or change the publisher's QoS"
            )
    images = [topic for topic in topics if topic.role.endswith("image")]
    absent = [topic for topic in topics if not topic.types]
    if absent and (topic := absent[0]):
        others = f" (published now: {', '.join(topic.alternatives[:6])})" if topic.alternatives else ""
        names = ", ".join(topic.name for topic in absent)
        return f"nobody publishes {names}; start the camera, or remap to the topics it uses{others}"
    if loss and any(topic.lost > topic.received for topic in images):
        return loss
    quiet = [topic for topic in topics if topic.received == 0]
    if quiet:
        names = ", ".join(topic.name for topic in quiet)
        if all(topic.role.endswith("camera_info") for topic in quiet):
            return f"images arrive but no camera_info on {names}; publish it, remap the topic, or set calibration_file"
        return f"{names} has a publisher that sends nothing; check the camera driver"
    if pairs.since < seconds and pairs.last_refusal:
        return f"pairs arrive but are refused: {pairs.last_refusal}"
    if all(topic.age < seconds for topic in images) and pairs.offset is not None:
        return stamps_cause(pairs)
    stopped = max(topics, key=lambda topic: topic.age)
    return f"{stopped.name} stopped {stopped.age:.1f} s ago; check the camera driver or the bag player"


def stamps_cause(pairs: PairFacts) -> str:
    """Images of both sides arrive but their stamps never pair."""
    assert pairs.offset is not None
    ms = pairs.offset * 1e3
    if abs(ms) < 1e-6:
        return (
            "left and right arrive with equal stamps but never together in the queue; one side is far behind the other"
        )
    need = f"set approximate_sync to true and sync_tolerance above {abs(pairs.offset):.3g} s"
    if pairs.approximate:
        need = f"sync_tolerance is {pairs.tolerance:g} s: raise it above {abs(pairs.offset):.3g} s"
    return (
        f"stamps never pair: right stamps are {abs(ms):.3f} ms {'after' if ms > 0 else 'before'} the left ones; {need}"
        ", or trigger both cameras together (a moving robot needs equal exposure times)"
    )


def overwritten_hint(images: list[TopicFacts]) -> str:
    """What to do about images that came and were not taken in time; empty when there are none."""
    overwritten = sum(topic.overwritten for topic in images)
    if not overwritten:
        return ""
    return (
        f"{overwritten} images came and gave way to newer ones before the node took them: other programs leave it too "
        "little processor; stop some, lower the rate or size of the images, or raise the parameter niceness, which "
        "lets receiving go before tracking"
    )
