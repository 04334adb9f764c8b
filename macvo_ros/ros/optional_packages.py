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
