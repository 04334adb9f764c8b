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

"""The three ROS packages that a pip-only ROS 2 lacks: the real ones where installed, ours elsewhere.

Everything else imports these names from here. Ours cover only what the node needs, and behave alike (tested).
"""

from __future__ import annotations

try:
    from cv_bridge import CvBridge
except Exception:  # one built for numpy 1 fails under numpy 2, with more than ImportError
    CvBridge = None  # our own decoding covers the encodings of cameras, cv_bridge only the rarer ones

try:
    from message_filters import ApproximateTimeSynchronizer, SimpleFilter, TimeSynchronizer
except ImportError:
    from macvo_ros.ros.synchronization import (
        ApproximateTimeSynchronizer,
        SimpleFilter,
        TimeSynchronizer,
    )

try:
    from tf2_ros import Buffer, TransformBroadcaster, TransformException, TransformListener
except ImportError:
    from macvo_ros.ros.transforms import (
        Buffer,
        TransformBroadcaster,
        TransformException,
        TransformListener,
    )

__all__ = [
    "ApproximateTimeSynchronizer",
    "Buffer",
    "CvBridge",
    "SimpleFilter",
    "TimeSynchronizer",
    "TransformBroadcaster",
    "TransformException",
    "TransformListener",
]
