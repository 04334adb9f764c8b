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

"""How much a pose is worth: tracking, degraded or lost."""

from __future__ import annotations

from enum import IntEnum


class Status(IntEnum):
    """State of the odometry after a frame: a contract. The numbers are those of `msg/Status.msg`."""

    INITIALIZING = 0
    """First frame: a reference was taken, there is no motion yet."""
    TRACKING = 1
    """The motion was measured, and its covariance is as measured."""
    DEGRADED = 2
    """The motion was measured, but a check is unusual or the evidence is thin: its covariance covers that too."""
    LOST = 3
    """Nothing was measured: blind, too few points, or a fault is more likely than not. The pose is a prediction."""
