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

"""Run the odometry over a sequence and keep what an evaluation needs, without keeping images."""

from __future__ import annotations

import contextlib
import queue
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from time import perf_counter
from typing import Protocol

import numpy as np
import numpy.typing as npt

from macvo_ros.errors import SequenceError
from macvo_ros.images.frame import StereoFrame
from macvo_ros.odometry.estimate import Estimate
from macvo_ros.odometry.status import Status
from macvo_ros.sequences.sequence import Sequence
from macvo_ros.uncertainty.learned_calibration import LearnedCalibration
from macvo_ros.uncertainty.path_step import PathStep

Float64 = npt.NDArray[np.float64]
STAGES = ("match", "select", "covariance", "pose")


class Tracker(Protocol):
    """What a run needs of an odometry; `StereoOdometry` and, one frame late, `PipelinedOdometry` are ones."""

    def track(self, frame: StereoFrame) -> Estimate | None: ...

    def flush(self) -> Estimate | None: ...


@dataclass(frozen=True, eq=False)
class Run:
    """One pass over a sequence of N frames; the base frame is the left camera.

    stamps: (N,) nanoseconds. poses: (N, 4, 4) in odom, metres. covariances: (N, 6, 6), axes of odom.
    motions, motion_covariances: (N - 1, 4, 4) and (N - 1, 6, 6), each frame in the one before it; a covariance is NaN
    where the odometry gave no motion from there (the first after lost frames is measured over the whole gap).
    status: (N,) values of `Status`. reasons: (frame index, sentence) wherever the status is not TRACKING.
    seconds: (N,) time of `track`. stages: stage name to (N,) seconds.
    keypoints, inliers: (N,) counts. chi2: (N,), NaN where unknown. depth: (N,) median depth of the keypoints, metres.
    calibration: (N,) what was known of the calibration after each frame, where it is learned.
    steps: (N,) how each pose hangs on an earlier one, where the odometry tells.
    smoothed: (N, 4, 4) the poses with all later corrections of a window (`Estimate.corrections`); None without any.
    snapshots: the estimates of at most two frames, (index, why it was kept, estimate), for pictures.
    """

    name: str
    stamps: npt.NDArray[np.int64]
    poses: Float64
    covariances: Float64
    motions: Float64
    motion_covariances: Float64
    status: npt.NDArray[np.int64]
    reasons: tuple[tuple[int, str], ...]
    seconds: Float64
    stages: dict[str, Float64]
    keypoints: npt.NDArray[np.int64]
    inliers: npt.NDArray[np.int64]
    chi2: Float64
    depth: Float64
    snapshots: tuple[tuple[int, str, Estimate], ...]
    steps: tuple[PathStep | None, ...] = ()
    calibration: tuple[LearnedCalibration | None, ...] = ()
    smoothed: Float64 | None = None

    @property
    def fps(self) -> float:
        """Frames per second of tracking; the first frame, which has nothing to track against, is left out."""
        return float((len(self.seconds) - 1) / max(self.seconds[1:].sum(), 1e-9)) if len(self.seconds) > 1 else 0.0


def run_sequence(sequence: Sequence, odometry: Tracker, *, title: str = "", progress: bool = True) -> Run:
    """Track every frame of `sequence`; a progress bar on stderr appears when it takes longer than 2 s."""
    from tqdm import tqdm

    count = len(sequence)
    if count == 0:
        raise SequenceError(f"{sequence.name}: no frames to run; widen --frames")
    run = _empty_run(sequence)
    reasons: list[tuple[int, str]] = []
    steps: list[PathStep | None] = []
    learned: list[LearnedCalibration | None] = []
    snapshots = _Snapshots(middle=count // 2)
    smoothed, index_of = {}, {int(stamp): index for index, stamp in enumerate(run.stamps)}
    bar = tqdm(
        total=count,
        desc=title or sequence.name,
        unit="frame",
        delay=2.0,
        mininterval=0.1 if sys.stderr.isatty() else 15.0,
        disable=not progress,
        file=sys.stderr,
    )
    with bar, contextlib.closing(read_ahead(sequence)) as frames:
        previous = np.eye(4)
        for index, (estimate, seconds) in enumerate(_estimates(frames, odometry)):
            run.seconds[index] = seconds
            _record(run, index, estimate, previous)
            smoothed.update({index_of[stamp]: pose for stamp, pose in estimate.corrections if stamp in index_of})
            previous = estimate.pose
            if estimate.status not in (Status.TRACKING, Status.INITIALIZING):
                reasons.append((index, estimate.reason))
            steps.append(estimate.step)
            learned.append(estimate.calibration)
            snapshots.offer(index, estimate)
            bar.update()
    corrected = run.poses.copy() if smoothed else None
    if corrected is not None:
        corrected[list(smoothed)] = np.array(list(smoothed.values()))
    kept = {"reasons": tuple(reasons), "snapshots": snapshots.kept(), "steps": tuple(steps), "smoothed": corrected}
    return Run(**{**vars(run), **kept, "calibration": tuple(learned)})


def _estimates(frames: Iterable[StereoFrame], odometry: Tracker) -> Iterator[tuple[Estimate, float]]:
    """The estimate of every frame, in order, and the seconds it took to get."""
    steps: Iterable[Callable[[], Estimate | None]] = (partial(odometry.track, frame) for frame in frames)
    for step in chain(steps, [odometry.flush]):
        start = perf_counter()
        estimate = step()
        if estimate is not None:
            yield estimate, perf_counter() - start


def read_ahead(sequence: Sequence, depth: int = 2) -> Generator[StereoFrame, None, None]:
    """The frames of `sequence` in order, up to `depth` of them read in the background; an error comes in its turn."""
    frames: queue.Queue[StereoFrame | BaseException | None] = queue.Queue(maxsize=depth)
    stop = threading.Event()

    def put(item: StereoFrame | BaseException | None) -> None:
        while not stop.is_set():
            with contextlib.suppress(queue.Full):
                frames.put(item, timeout=0.1)
                break

    def read() -> None:
        try:
            for index in range(len(sequence)):
                if stop.is_set():
                    return
                put(sequence[index])
            put(None)
        except BaseException as error:
            put(error)

    reader = threading.Thread(target=read, name="read_ahead", daemon=True)
    reader.start()
    try:
        while (item := frames.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        stop.set()
        reader.join()


def _empty_run(sequence: Sequence) -> Run:
    count = len(sequence)
    return Run(
        name=sequence.name,
        stamps=np.array(sequence.stamps, dtype=np.int64),
        poses=np.zeros((count, 4, 4)),
        covariances=np.zeros((count, 6, 6)),
        motions=np.zeros((count - 1, 4, 4)),
        motion_covariances=np.full((count - 1, 6, 6), np.nan),
        status=np.zeros(count, dtype=np.int64),
        reasons=(),
        seconds=np.zeros(count),
        stages={stage: np.zeros(count) for stage in STAGES},
        keypoints=np.zeros(count, dtype=np.int64),
        inliers=np.zeros(count, dtype=np.int64),
        chi2=np.full(count, np.nan),
        depth=np.full(count, np.nan),
        snapshots=(),
    )


def _record(run: Run, index: int, estimate: Estimate, previous: Float64) -> None:
    run.poses[index] = estimate.pose
    run.covariances[index] = estimate.covariance
    run.status[index] = int(estimate.status)
    run.chi2[index] = estimate.chi2
    for stage in STAGES:
        run.stages[stage][index] = estimate.timings.get(stage, 0.0)
    if estimate.landmarks is not None and len(estimate.landmarks.point):
        run.keypoints[index] = len(estimate.landmarks.point)
        run.inliers[index] = int(np.count_nonzero(estimate.landmarks.inlier))
        run.depth[index] = float(np.median(estimate.landmarks.point[:, 2]))
    if index > 0:
        since_last = (run.stamps[index] - run.stamps[index - 1]) * 1e-9
        if estimate.relative is not None and abs(estimate.elapsed - since_last) < 1e-6:
            run.motions[index - 1] = estimate.relative.motion
            run.motion_covariances[index - 1] = estimate.relative.covariance
        else:
            run.motions[index - 1] = np.linalg.inv(previous) @ estimate.pose


class _Snapshots:
    """Chooses two frames to draw, holding no more than two estimates at a time."""

    def __init__(self, middle: int) -> None:
        self._middle = middle
        self._typical: tuple[int, Estimate] | None = None
        self._worst: tuple[int, Estimate] | None = None
        self._worst_variance = 0.0

    def offer(self, index: int, estimate: Estimate) -> None:
        """Keep the measured frame nearest before the middle (or the first after it), and the least certain one."""
        if estimate.landmarks is None or estimate.match is None or estimate.relative is None:
            return
        if estimate.status == Status.LOST:
            return
        if index <= self._middle or self._typical is None:
            self._typical = (index, estimate)
        variance = float(np.trace(estimate.relative.covariance[:3, :3]))
        if variance > self._worst_variance:
            self._worst, self._worst_variance = (index, estimate), variance

    def kept(self) -> tuple[tuple[int, str, Estimate], ...]:
        """What was kept, in the order of the sequence's interest: typical first."""
        chosen = []
        if self._typical is not None:
            chosen.append((self._typical[0], "the middle of the run", self._typical[1]))
        if self._worst is not None and (self._typical is None or self._worst[0] != self._typical[0]):
            chosen.append((self._worst[0], "the least certain motion", self._worst[1]))
        return tuple(chosen)
