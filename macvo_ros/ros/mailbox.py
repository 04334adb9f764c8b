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

"""A mailbox of one slot between the executor and the worker: the newest wins, and every pair is accounted for."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Mailbox(Generic[T]):
    """Holds at most one item. `put` never waits."""

    def __init__(
        self,
        dropped: Callable[[T], None],
        late: Callable[[T, T], bool] = lambda waiting, new: False,
        wanting: Callable[[], None] = lambda: None,
    ) -> None:
        """dropped: called with an item that nobody will take. late: whether a new item is older than the waiting.

        wanting: called by whoever begins to wait for an item.
        """
        self._dropped, self._late, self._wanting = dropped, late, wanting
        self._wanted = False
        self._item: T | None = None
        self._closed = False
        self._changed = threading.Condition()

    def put(self, item: T) -> None:
        """Leave an item for the worker, replacing one it has not taken; a late one gives way to that instead."""
        with self._changed:
            self._wanted = False
            replaced, self._item = self._item, item
            if replaced is not None and self._late(replaced, item):
                replaced, self._item = item, replaced
            self._changed.notify()
        if replaced is not None:
            self._dropped(replaced)

    @property
    def closed(self) -> bool:
        """Whether nothing will come any more."""
        return self._closed

    @property
    def wanted(self) -> bool:
        """Whether somebody waits for an item and none is there."""
        return self._wanted

    def take(self, timeout: float | None = None) -> T | None:
        """Wait for an item; None when `timeout` seconds have passed or the mailbox is closed."""
        with self._changed:
            self._wanted = self._item is None and not self._closed
        if self._wanted:
            self._wanting()
        with self._changed:
            self._changed.wait_for(lambda: self._item is not None or self._closed, timeout)
            self._wanted = False
            item, self._item = self._item, None
            return item

    def close(self) -> None:
        """Wake the worker for good; an item nobody took counts as dropped."""
        with self._changed:
            self._closed = True
            replaced, self._item = self._item, None
            self._changed.notify_all()
        if replaced is not None:
            self._dropped(replaced)
