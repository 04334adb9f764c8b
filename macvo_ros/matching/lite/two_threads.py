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

"""How `lite` shares two cores: stereo is matched in one thread, flow in the other."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from threading import Lock

import torch

from macvo_ros.matching.epipolar_error import RowCheck

_TURN = 2e-4
"""Seconds after which a waiting thread gets the interpreter while two of them match."""


class LaterCheck:
    """A check of the rows that waits until it is begun, or asked for: what a motion needs first goes first."""

    def __init__(self, begin: Callable[[], Future[RowCheck]]) -> None:
        self._begin = begin
        self._begun: Future[RowCheck] | None = None
        self._lock = Lock()

    def begin(self) -> Future[RowCheck]:
        """Start it in the thread that matches stereo, unless it was."""
        with self._lock:
            if self._begun is None:
                self._begun = self._begin()
            return self._begun

    def __call__(self) -> RowCheck:
        return self.begin().result()


def one_torch_thread() -> None:
    """Let torch use no more than the thread that this is called in, for good: see `side_by_side`."""
    torch.get_num_threads()  # the first call in a thread sets the number that others have; only then is ours kept
    torch.set_num_threads(1)


@contextmanager
def side_by_side() -> Iterator[None]:
    """Let torch use no more than the thread that calls it, and take turns with the thread that matches stereo.

    The two searches keep two cores busy, and on a busy machine the layers' threads wait for each other: forty times the
    time was seen. A thread that waits for the interpreter should not wait the 5 ms that Python lets it.
    """
    count, interval = torch.get_num_threads(), sys.getswitchinterval()
    torch.set_num_threads(1)
    sys.setswitchinterval(_TURN)
    try:
        yield
    finally:
        torch.set_num_threads(count)
        sys.setswitchinterval(interval)
