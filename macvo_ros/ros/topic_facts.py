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

"""Asks the ROS graph about the topics of the node, for the explanation of a silence."""

from __future__ import annotations

import time

from rclpy.lifecycle import LifecycleNode

from macvo_ros.ros.counters import Counts
from macvo_ros.ros.input_watchdog import PairFacts, TopicFacts
from macvo_ros.ros.inputs import StereoInputs
from macvo_ros.ros.matched_subscription import reliability_name
from macvo_ros.ros.parameters import NodeConfig


def topic_facts(node: LifecycleNode, inputs: StereoInputs | None) -> list[TopicFacts]:
    """What is known of each subscribed topic; none while the node is not active."""
    facts = []
    for record in inputs.topics.values() if inputs is not None else ():
        publishers = node.get_publishers_info_by_topic(record.name)
        types = tuple(sorted(info.topic_type for info in publishers))
        elsewhere = () if types else _published(node, record.type_name)
        facts.append(
            TopicFacts(
                role=record.role,
                name=record.name,
                wanted_type=record.type_name,
                types=types,
                received=record.received,
                lost=record.lost,
                skipped=record.skipped,
                overwritten=record.overwritten,
                incompatible=record.incompatible,
                age=time.monotonic() - record.last if record.received else 0.0,
                content=record.content,
                size=record.size,
                alternatives=elsewhere,
                asked=record.asked,
                offered=tuple(reliability_name(info.qos_profile.reliability) for info in publishers),
            )
        )
    return facts


def pair_facts(config: NodeConfig, inputs: StereoInputs, counts: Counts) -> PairFacts:
    """How the synchronization stands."""
    last = list(counts.refusals.values())[-1].last if counts.refusals else ""
    since = time.monotonic() - inputs.pairing.last_pair
    return PairFacts(config.approximate_sync, config.sync_tolerance, inputs.pairing.offset, since, last)


def _published(node: LifecycleNode, kind: str) -> tuple[str, ...]:
    """Topics of a type that somebody publishes, our own left out."""
    own = node.get_fully_qualified_name() + "/"
    names = (name for name, kinds in node.get_topic_names_and_types() if kind in kinds and not name.startswith(own))
    return tuple(name for name in names if node.count_publishers(name))
