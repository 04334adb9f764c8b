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

"""Pairs messages by stamp where message_filters is not installed: same names, same behaviour."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from macvo_ros.odometry.message_fields import join_stamp


class SimpleFilter:
    """Passes each message it is given to whoever registered."""

    def __init__(self) -> None:
        self._callbacks: list[tuple[Callable[..., None], tuple[Any, ...]]] = []

    def registerCallback(self, callback: Callable[..., None], *arguments: Any) -> int:
        """Have `callback(*messages, *arguments)` called for each output; returns the number of the registration."""
        self._callbacks.append((callback, arguments))
        return len(self._callbacks) - 1

    def signalMessage(self, *messages: Any) -> None:
        """Put messages out."""
        for callback, arguments in self._callbacks:
            callback(*messages, *arguments)


class TimeSynchronizer(SimpleFilter):
    """Puts out a set of messages, one of each filter, once all carry the same stamp.

    Each filter's messages wait in a queue of `queue_size`; the one with the smallest stamp leaves it when it is full.
    """

    def __init__(self, filters: Sequence[SimpleFilter], queue_size: int) -> None:
        super().__init__()
        self.queue_size = queue_size
        self.queues: list[dict[int, Any]] = [{} for _ in filters]
        for index, source in enumerate(filters):
            source.registerCallback(self._take, index)

    def _take(self, message: Any, index: int) -> None:
        stamp = join_stamp(message.header.stamp.sec, message.header.stamp.nanosec)
        queue = self.queues[index]
        queue[stamp] = message
        while len(queue) > self.queue_size:
            del queue[min(queue)]
        if stamp in queue:
            self._match(stamp, index)

    def _match(self, stamp: int, index: int) -> None:
        if all(stamp in queue for queue in self.queues):
            self._put_out([stamp] * len(self.queues))

    def _put_out(self, stamps: Sequence[int]) -> None:
        # Taken from the queues first: a callback that raises must not leave a set that comes again.
        self.signalMessage(*[queue.pop(stamp) for queue, stamp in zip(self.queues, stamps, strict=True)])


class ApproximateTimeSynchronizer(TimeSynchronizer):
    """Puts out a set of messages once their stamps lie less than `slop` seconds apart, nearest first."""

    def __init__(self, filters: Sequence[SimpleFilter], queue_size: int, slop: float) -> None:
        super().__init__(filters, queue_size)
        self._slop = round(slop * 1e9)

    def _match(self, stamp: int, index: int) -> None:
        stamps = []
        for i, queue in enumerate(self.queues):
            if i == index:
                stamps.append(stamp)
                continue
            nearest = min(queue, key=lambda other: abs(other - stamp), default=None)
            if nearest is None:
                return
            stamps.append(nearest)
        if max(stamps) - min(stamps) < self._slop:
            self._put_out(stamps)
