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

"""What the core logs (which matcher was chosen and why, for instance) goes to the node's log."""

from __future__ import annotations

import logging
from typing import Any


class CoreLog(logging.Handler):
    """Hands records of Python's logging to a ROS logger."""

    def __init__(self, logger: Any) -> None:
        super().__init__(logging.INFO)
        # A function each: rclpy allows every line of code one severity only.
        self._write = {
            logging.INFO: lambda text: logger.info(text),
            logging.WARNING: lambda text: logger.warning(text),
            logging.ERROR: lambda text: logger.error(text),
        }

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        level = max((known for known in self._write if known <= record.levelno), default=logging.INFO)
        self._write[level](self.format(record))


def forward_core_log(logger: Any) -> None:
    """From now on, everything from INFO up that `macvo_ros` modules log appears in `logger`."""
    ours = logging.getLogger("macvo_ros")
    ours.setLevel(logging.INFO)
    ours.propagate = False
    ours.handlers = [CoreLog(logger)]
