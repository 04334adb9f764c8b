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

"""How long pairs waited, told from their status messages: independent of how fast or busy the machine is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt


def waits_and_work(statuses: Sequence[Any]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Seconds each pair waited before the worker took it, and seconds of work on it."""
    work = np.array([status.core_time + status.overhead for status in statuses])
    return np.array([status.latency for status in statuses]) - work, work


def waited_too_long(statuses: Sequence[Any]) -> str:
    """A sentence when pairs waited for more than the one before them; empty when latency is bounded by one frame.

    A pair in the one slot is replaced by the next, so one that is tracked came while the one before was in work:
    it waited for that at most. Beyond it, a pair in twenty may meet a thread that was not scheduled at once.
    """
    waits, work = waits_and_work(statuses)
    if len(waits) < 2:
        return ""
    beyond = waits[1:] - work[:-1]
    usual, worst = np.percentile(beyond, 95), beyond.max()
    if usual <= 0.3 * np.median(work) and worst <= 2 * work.max():
        return ""
    return (
        f"pairs waited for more than one frame: beyond the work on the one before, {1e3 * usual:.0f} ms (95 %), "
        f"{1e3 * worst:.0f} ms (worst); a pair takes {1e3 * np.median(work):.0f} ms"
    )
