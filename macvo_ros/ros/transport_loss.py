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

"""Images lost between the camera driver and the node: how many lately, why, and what to do about it."""

from __future__ import annotations

import contextlib
import os
import re
from collections import deque
from pathlib import Path

from macvo_ros.ros.input_watchdog import TopicFacts

USUAL_SHARE = 0.01
"""Share of images lost that is told of. `python -m bench.transport`: none with room in shared memory, most without; of
960 on a busy machine with room 2 were lost (docs/reliability.md)."""

WINDOW = 30
"""Reports looked back on, one a second."""


class RecentLoss:
    """Counts of lost and received images over the last reports."""

    def __init__(self) -> None:
        self._totals: deque[tuple[int, int]] = deque([(0, 0)], maxlen=WINDOW)

    def update(self, images: list[TopicFacts]) -> tuple[int, int]:
        """How many images were lost and how many sent since the oldest report kept; totals: of all image topics."""
        now = sum(topic.lost for topic in images), sum(_arrived(topic) for topic in images)
        before = self._totals[0]
        if now[0] < before[0] or now[1] < before[1]:  # a node that was activated again counts anew
            self._totals.clear()
            before = (0, 0)
        self._totals.append(now)
        lost, received = now[0] - before[0], now[1] - before[1]
        return lost, lost + received


def _arrived(topic: TopicFacts) -> int:
    return topic.received + topic.skipped + topic.overwritten


def loss_hint(images: list[TopicFacts], lost: int, sent: int, segments: list[int]) -> str:
    """What to do about images lost in transport; empty when hardly any were.

    segments: bytes of each sender's shared memory (`senders_segments`).
    """
    if lost <= USUAL_SHARE * max(sent, 1 / USUAL_SHARE):  # one single image is never told of
        return ""
    cures = [_reliability_cure(images)]
    size = max(topic.size for topic in images)
    if any(segment < size for segment in segments) or (segments and not size):
        cures.append(
            "start the camera driver (the sender owns the memory) with FASTRTPS_DEFAULT_PROFILES_FILE set to this "
            "package's config/fastdds.xml: without it there is too little shared memory for "
            + (f"images of {size / 1e6:.1f} MB" if size else "them")
        )
    else:
        cures.append("publish smaller or fewer images, or compressed ones where a network is between")
    return f"{lost} of {sent} images were lost in transport ({lost / sent:.0%}): {'; or '.join(filter(None, cures))}"


def _reliability_cure(images: list[TopicFacts]) -> str:
    if all(topic.asked == "reliable" for topic in images):
        return "delivery is reliable already, so raise the queue depth (history) of the publisher"
    if all(topic.offered and set(topic.offered) == {"reliable"} for topic in images):
        return "set the parameter reliability to auto or reliable, which the publishers offer"
    return "let the camera driver publish with reliable QoS, which reliability: auto then follows"


def senders_segments() -> list[int]:
    """Bytes of the shared memory of each FastDDS sender this process hears; none with another way of transport.

    A process maps the segment of everybody who sent it something; of its own ones it holds the lock (`_el`).
    """
    try:
        lines = Path("/proc/self/maps").read_text().splitlines()
        files = os.listdir("/proc/self/fd")
    except OSError:  # not Linux
        return []
    held = set()
    for number in files:
        with contextlib.suppress(OSError):  # closed meanwhile by another thread
            held.add(os.readlink(f"/proc/self/fd/{number}"))
    sizes = []
    for name in {name for line in lines if _SEGMENT.fullmatch(name := line.rpartition(" ")[2])}:
        with contextlib.suppress(OSError):  # its sender has just gone
            if f"{name}_el" not in held:
                sizes.append(Path(name).stat().st_size)
    return sizes


_SEGMENT = re.compile(r"/dev/shm/fastrtps_(?!port)\w+")
