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

"""What a run says of itself without ground truth."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bag_making import write_ros2
from fake_odometry import NoisyOdometry, NoisyTruth, winding_path

from macvo_ros.cli import main
from macvo_ros.evaluation.metrics import path_length
from macvo_ros.evaluation.runner import Run, run_sequence
from macvo_ros.evaluation.status_summary import describe, summarise
from macvo_ros.odometry.status import Status

TRUTH = winding_path(30)


@pytest.fixture
def run() -> Run:
    return run_sequence(NoisyTruth(TRUTH), NoisyOdometry(TRUTH), progress=False)


def with_reasons(run: Run, reasons: dict[int, tuple[Status, str]]) -> Run:
    status = run.status.copy()
    for index, (state, _) in reasons.items():
        status[index] = state
    return replace(run, status=status, reasons=tuple((index, reason) for index, (_, reason) in reasons.items()))


def test_path_and_final_sigma_are_those_of_the_run(run: Run) -> None:
    summary = summarise(run)
    assert summary.path_length == pytest.approx(path_length(TRUTH), rel=0.01)
    axis = np.linalg.eigh(run.covariances[-1][:3, :3])[1][:, -1]
    assert summary.position_sigma**2 == pytest.approx(axis @ run.covariances[-1][:3, :3] @ axis)
    turn = np.linalg.eigvalsh(run.covariances[-1][3:, 3:])[-1]
    assert np.radians(summary.rotation_sigma) ** 2 == pytest.approx(turn)


def test_reasons_that_differ_in_their_figures_are_one(run: Run) -> None:
    bus = {i: (Status.DEGRADED, f"{i}% of the image contradicts the motion (usually 2.5%)") for i in (4, 5, 6, 9)}
    dark = dict.fromkeys((7, 20), (Status.LOST, "the left image is black"))
    again = {21: (Status.LOST, "3% of the image contradicts the motion (usually 2.5%)")}
    summary = summarise(with_reasons(run, {**bus, **dark, **again}))
    assert (summary.tracking, summary.degraded, summary.lost) == (22, 4, 3)
    assert [(cause.status, cause.frames) for cause in summary.causes] == [
        (Status.DEGRADED, (4, 5, 6, 9)),
        (Status.LOST, (7, 20)),
        (Status.LOST, (21,)),
    ]
    text = describe(summary)
    assert "  4 DEGRADED: 4% of the image contradicts the motion (usually 2.5%) (frames 4-6, 9)" in text
    assert "  2 LOST: the left image is black (frames 7, 20)" in text


def test_many_reasons_are_cut(run: Run) -> None:
    reasons = {index: (Status.DEGRADED, f"reason {'x' * index}") for index in range(1, 9)}
    reasons |= dict.fromkeys(range(9, 29, 2), (Status.DEGRADED, "often"))
    text = describe(summarise(with_reasons(run, reasons)))
    assert "10 DEGRADED: often (frames 9, 11, 13, 15 and 6 more)" in text
    assert "4 for other reasons" in text


@pytest.mark.parametrize("command", ["run", "bag", "eval"])
def test_a_run_that_tracked_nothing_is_exit_code_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """A bag of noise, by each command that takes one: the same table, sentence and exit code."""
    monkeypatch.chdir(tmp_path)
    bag = write_ros2(tmp_path / "rec", count=4)
    assert main([command, str(bag), "--matcher", "classic"]) == 1
    printed = capsys.readouterr().out
    assert printed.splitlines()[0].endswith("4 frames")
    assert "0 frames TRACKING, 0 DEGRADED, 3 LOST" in printed
    assert "Not one frame was tracked" in printed
    assert "(no ground truth: the errors are unknown)" in printed
