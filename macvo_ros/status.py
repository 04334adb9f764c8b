"""How much a pose is worth: tracking, degraded or lost."""

from __future__ import annotations

from enum import IntEnum


class Status(IntEnum):
    """State of the odometry after a frame. The numbers are those of `msg/Status.msg`."""

    INITIALIZING = 0
    """First frame: a reference was taken, there is no motion yet."""
    TRACKING = 1
    """The motion was measured and its covariance is the measured one."""
    DEGRADED = 2
    """A motion was measured from little evidence; its covariance says so."""
    LOST = 3
    """No motion was measured; the pose is a prediction with a covariance that covers what may have happened."""
