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

"""The run over a sequence: order, reading ahead, bounded memory, interruption."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from fake_odometry import NoisyOdometry, NoisyTruth, winding_path

from macvo_ros.errors import SequenceError
from macvo_ros.evaluation.runner import read_ahead, run_sequence
from macvo_ros.images.frame import StereoFrame
from macvo_ros.sequences.part import PartOfSequence


def reader_threads() -> int:
    return sum(thread.name == "read_ahead" for thread in threading.enumerate())


class Broken(NoisyTruth):
    def __getitem__(self, index: int) -> StereoFrame:
        if index == 3:
            raise SequenceError("frame 3 is cut off")
        return super().__getitem__(index)


def test_frames_come_in_order_and_the_reader_stops() -> None:
    sequence = NoisyTruth(winding_path(20))
    assert [frame.stamp for frame in read_ahead(sequence)] == list(sequence.stamps)
    frames = read_ahead(sequence)
    next(frames)
    frames.close()
    assert reader_threads() == 0


def test_error_of_the_reader_comes_after_the_frames_before_it() -> None:
    frames = read_ahead(Broken(winding_path(6)))
    assert [next(frames).stamp for _ in range(3)] == [0, 100_000_000, 200_000_000]
    with pytest.raises(SequenceError, match="frame 3 is cut off"):
        next(frames)
    assert reader_threads() == 0


def test_interrupt_ends_the_reader() -> None:
    truth = winding_path(20)

    class Interrupted(NoisyOdometry):
        def track(self, frame: StereoFrame):
            if frame.stamp == 500_000_000:
                raise KeyboardInterrupt
            return super().track(frame)

    with pytest.raises(KeyboardInterrupt):
        run_sequence(NoisyTruth(truth), Interrupted(truth), progress=False)
    assert reader_threads() == 0


def test_run_keeps_two_frames_whatever_the_length() -> None:
    truth = winding_path(40)
    run = run_sequence(NoisyTruth(truth), NoisyOdometry(truth, lost=(20,), maps=True), progress=False)
    assert len(run.snapshots) == 2
    assert run.snapshots[0][0] == 19, "the middle one is lost, so the one before it"
    assert run.keypoints[1:].tolist() == [30] * 39
    assert (run.inliers[1:] < 31).all()


def test_motions_are_those_of_the_poses() -> None:
    truth = winding_path(10)
    run = run_sequence(NoisyTruth(truth), NoisyOdometry(truth), progress=False)
    for k in range(9):
        np.testing.assert_allclose(run.poses[k] @ run.motions[k], run.poses[k + 1], atol=1e-12)


def test_empty_sequence_is_refused() -> None:
    with pytest.raises(SequenceError, match="no frames"):
        run_sequence(NoisyTruth(None), NoisyOdometry(winding_path(2)), progress=False)


def test_part_of_a_sequence() -> None:
    whole = NoisyTruth(winding_path(20))
    part = PartOfSequence(whole, (4, 12), 3)
    assert len(part) == 3
    assert part[2].stamp == part.stamps[2] == whole.stamps[10]
    assert part.ground_truth is not None
    np.testing.assert_array_equal(part.ground_truth, whole.ground_truth[[4, 7, 10]])
    with pytest.raises(SequenceError, match="none are left"):
        PartOfSequence(whole, (30, 40))
