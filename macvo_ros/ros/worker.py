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

"""The thread that tracks: takes the newest pair, publishes what comes of it, survives whatever happens."""

from __future__ import annotations

import os
import threading
import traceback
from collections.abc import Callable

from macvo_ros.ros.counters import Counters
from macvo_ros.ros.mailbox import Mailbox
from macvo_ros.ros.stamps import LATE
from macvo_ros.ros.stereo_messages import StereoMessages
from macvo_ros.ros.tracking import Refusal, Tracked, Tracking

FLUSH_AFTER = 0.1
"""Seconds without a new pair after which a pipelined odometry is asked for the frame it holds back."""


class Worker:
    """Runs `Tracking` on pairs put into its mailbox."""

    def __init__(
        self,
        tracking: Tracking,
        counters: Counters,
        publish: Callable[[Tracked], None],
        refused: Callable[[str, str], None],
        niceness: int = 0,
        wanting: Callable[[], None] = lambda: None,
    ) -> None:
        """publish: called with every tracked pair. refused: called with kind and reason of every refused one.

        niceness: added to that of the process, for this thread and those it starts (OpenCV's and torch's).
        wanting: called by the thread when it has nothing to do and begins to wait for a pair.
        """
        self._niceness = niceness
        self._tracking, self._counters = tracking, counters
        self._publish, self._refused = publish, refused
        self._mailbox: Mailbox[StereoMessages] = Mailbox(
            lambda pair: counters.add(dropped=1),
            late=lambda waiting, new: 0 < waiting.stamp - new.stamp <= LATE,
            wanting=wanting,
        )
        self._thread = threading.Thread(target=self._run, name="macvo tracking", daemon=True)

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    @property
    def wants(self) -> bool:
        """Whether it waits for a pair, and none is there for it."""
        return self._mailbox.wanted

    def put(self, pair: StereoMessages) -> None:
        """Hand over a pair; never waits."""
        self._counters.add(received=1)
        self._mailbox.put(pair)

    def stop(self, timeout: float = 30.0) -> bool:
        """Finish the pair in work and end; False when it did not end in time."""
        self._mailbox.close()
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        lower_priority(self._niceness)
        while not self._mailbox.closed:
            pair = self._mailbox.take(FLUSH_AFTER if self._tracking.in_work else None)
            self._guarded(pair)
        self._guarded(None)

    def _guarded(self, pair: StereoMessages | None) -> None:
        try:
            self._work(pair)
        except Exception:  # reporting itself failed; the worker goes on all the same
            traceback.print_exc()

    def _work(self, pair: StereoMessages | None) -> None:
        """Track a pair, or have the odometry finish what it holds; publish whatever comes out."""
        resets = self._tracking.resets
        try:
            if pair is None:
                self._tracking.flush()
            else:
                self._tracking.track(pair)
        except Refusal as refusal:
            self._refuse(refusal.kind, str(refusal))
        except Exception as error:
            reason = f"{type(error).__name__}: {error}; please report this. Tracking restarts from the last pose."
            for _ in range(self._tracking.abandon(pair)):
                self._refuse("internal error", f"{reason}\n{traceback.format_exc()}")
        finally:
            self._counters.add(resets=self._tracking.resets - resets)
            self._publish_finished()

    def _publish_finished(self) -> None:
        for tracked in self._tracking.finished():
            self._counters.tracked(tracked.estimate.status)
            try:
                self._publish(tracked)
            except Exception as error:
                self._refused("publishing failed", f"{type(error).__name__}: {error}\n{traceback.format_exc()}")

    def _refuse(self, kind: str, reason: str) -> None:
        self._counters.refuse(kind, reason.splitlines()[0])
        self._refused(kind, reason)


def lower_priority(niceness: int) -> None:
    """Let the other threads of this process go first when the processor is short (Linux: niceness is per thread)."""
    try:
        thread = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, thread, os.getpriority(os.PRIO_PROCESS, thread) + niceness)
    except (AttributeError, OSError):
        pass  # another system; it only matters under overload
