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

"""Under overload images are taken from the middleware only while somebody wants them: taking one costs, too.

rclpy copies a serialized image twice to take it and lets no other thread of Python run meanwhile; for two images of
1920x1200 at 30 Hz that is half of the time, missing in the tracking of the pair before. While the gate is shut the
executor does not even look at the subscriptions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rclpy.callback_groups import CallbackGroup


class ImageGate(CallbackGroup):  # type: ignore[misc]
    """The callback group of the image subscriptions. Whoever wants an image again wakes the executor."""

    def __init__(self, wanted: Callable[[], bool]) -> None:
        """wanted: whether an image is of use now; asked on the executor's thread."""
        super().__init__()
        self._wanted = wanted
        self.in_use = False
        """Whether it ever shuts."""

    def can_execute(self, entity: Any) -> bool:
        """Events of a subscription wait, too: FastDDS would wake the executor for them as long as an image is there."""
        return not self.in_use or self._wanted()

    def beginning_execution(self, entity: Any) -> bool:
        """The executor looked a moment ago, but another image may have completed a pair since."""
        return self.can_execute(entity)

    def ending_execution(self, entity: Any) -> None:
        """Nothing to do."""
