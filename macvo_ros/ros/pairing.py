"""Which images never found a partner, and by how much the stamps of the two cameras differ."""

from __future__ import annotations

from collections import deque
from statistics import median

SIDES = ("left", "right")


class PairingRecord:
    """Mirrors the synchronizer's queues, whoever implements it. Stamps in nanoseconds."""

    def __init__(self, queue_size: int) -> None:
        self._queue_size = queue_size
        self._waiting: dict[str, set[int]] = {side: set() for side in SIDES}
        self._recent: dict[str, deque[int]] = {side: deque(maxlen=20) for side in SIDES}
        self._offsets: deque[int] = deque(maxlen=20)

    def saw(self, side: str, stamp: int) -> int:
        """An image came; returns how many images left the queue for good without a partner."""
        self._recent[side].append(stamp)
        other = self._recent[SIDES[side == "left"]]
        if other:
            nearest = min(other, key=lambda s: abs(s - stamp))
            self._offsets.append(stamp - nearest if side == "right" else nearest - stamp)
        waiting = self._waiting[side]
        waiting.add(stamp)
        gone = 0
        while len(waiting) > self._queue_size:
            waiting.remove(min(waiting))
            gone += 1
        return gone

    def paired(self, left: int, right: int) -> None:
        """Two images became a pair."""
        self._waiting["left"].discard(left)
        self._waiting["right"].discard(right)

    def went_back(self, side: str, stamp: int) -> bool:
        """Whether a stamp lies before everything recent on its side: the queues belong to another time."""
        recent = self._recent[side]
        return bool(recent) and stamp < min(recent)

    def forget(self) -> int:
        """Empty the queues; returns how many images were waiting."""
        gone = sum(len(waiting) for waiting in self._waiting.values())
        for side in SIDES:
            self._waiting[side].clear()
            self._recent[side].clear()
        self._offsets.clear()
        return gone

    @property
    def offset(self) -> float | None:
        """Median of right stamp minus nearest left stamp, seconds; None before both sides were seen."""
        return median(self._offsets) * 1e-9 if self._offsets else None
