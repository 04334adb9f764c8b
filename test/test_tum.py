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

"""Trajectories as text, and poses between samples."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tiny_datasets
from evo.tools import file_interface
from hypothesis import given, settings
from hypothesis import strategies as st

from macvo_ros.errors import MacvoError, SequenceError
from macvo_ros.geometry.se3 import exp_so3, quaternion
from macvo_ros.sequences.poses import interpolate_poses, longest_run, poses_from_quaternions, slerp
from macvo_ros.sequences.tum import (
    read_kitti_poses,
    read_times,
    read_tum,
    seconds_to_ns,
    write_kitti_poses,
    write_times,
    write_tum,
)

STAMPS = np.array([-5, 0, 1, 1_403_636_584_763_555_584], dtype=np.int64)


def covariances(count: int) -> np.ndarray:
    A = np.random.default_rng(1).normal(size=(count, 6, 6)) * 1e-3
    return A @ A.transpose(0, 2, 1)


@pytest.mark.parametrize("covariance", [None, covariances(4)])
def test_tum_round_trip_keeps_nanoseconds_poses_and_covariance(tmp_path: Path, covariance: np.ndarray | None) -> None:
    poses = tiny_datasets.trajectory(4)
    write_tum(tmp_path / "a.txt", STAMPS, poses, covariance)
    read = read_tum(tmp_path / "a.txt")
    np.testing.assert_array_equal(read.stamps, STAMPS)
    np.testing.assert_allclose(read.poses, poses, atol=1e-8)
    if covariance is None:
        assert read.covariance is None
    else:
        np.testing.assert_allclose(read.covariance, covariance, rtol=1e-8)
        assert "covariance" in (tmp_path / "a.txt").read_text().splitlines()[0]
    assert [file.name for file in tmp_path.iterdir()] == ["a.txt"]


def test_tum_is_what_evo_reads(tmp_path: Path) -> None:
    poses = tiny_datasets.trajectory(4)
    write_tum(tmp_path / "a.txt", STAMPS, poses)
    read = file_interface.read_tum_trajectory_file(str(tmp_path / "a.txt"))
    np.testing.assert_allclose(np.array(read.poses_se3), poses, atol=1e-8)
    write_kitti_poses(tmp_path / "k.txt", poses)
    np.testing.assert_allclose(
        np.array(file_interface.read_kitti_poses_file(str(tmp_path / "k.txt")).poses_se3), poses, atol=1e-8
    )


def test_kitti_round_trip(tmp_path: Path) -> None:
    poses = tiny_datasets.trajectory(7)
    write_kitti_poses(tmp_path / "k.txt", poses)
    np.testing.assert_allclose(read_kitti_poses(tmp_path / "k.txt"), poses, atol=1e-8)


def test_times_round_trip(tmp_path: Path) -> None:
    write_times(tmp_path / "t.txt", STAMPS)
    np.testing.assert_array_equal(read_times(tmp_path / "t.txt"), STAMPS)


@settings(deadline=None, derandomize=True)
@given(st.integers(-(10**18), 2 * 10**18))
def test_seconds_are_exact_to_the_nanosecond(ns: int) -> None:
    sign = "-" if ns < 0 else ""
    assert seconds_to_ns(f"{sign}{abs(ns) // 10**9}.{abs(ns) % 10**9:09d}", "here") == ns


@pytest.mark.parametrize("text", ["nan", "inf", "-Infinity", "1e999999999999", "1e400", "1403636584763555584", "x", ""])
def test_times_that_are_no_seconds_are_refused(text: str) -> None:
    with pytest.raises(SequenceError, match=r"line 3.*seconds"):
        seconds_to_ns(text, "file, line 3")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("# header\n1 0 0 0 0 0 0 1\n2 0 0 0 0 0 0\n", "line 3: expected 8 columns"),
        ("1 0 0 0 0 0 0 1\n2 0 0 0 0 0 0 0\n", "line 2: expected a unit quaternion"),
        ("1 0 0 nan 0 0 0 1\n", "line 1: expected finite"),
        ("1 0 0 one 0 0 0 1\n", "line 1: expected finite"),
        ("now 0 0 0 0 0 0 1\n", "line 1: expected a time"),
        ("1 0 0 0 0 0 0 1\n2 0 0 0 0 0 0 1" + " 0" * 21, "line 2"),
    ],
)
def test_broken_tum_files_are_refused_with_the_line(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "a.txt").write_text(text)
    with pytest.raises(SequenceError, match=sentence):
        read_tum(tmp_path / "a.txt")


def test_broken_kitti_poses_are_refused_with_the_line(tmp_path: Path) -> None:
    (tmp_path / "k.txt").write_text("1 0 0 0 0 1 0 0 0 0 1 0\n1 0 0 0 0 2 0 0 0 0 1 0\n")
    with pytest.raises(SequenceError, match="line 2: the numbers are not a pose"):
        read_kitti_poses(tmp_path / "k.txt")


def test_writing_fails_with_a_sentence_and_leaves_the_old_file(tmp_path: Path) -> None:
    with pytest.raises(MacvoError, match="cannot write"):
        write_times(tmp_path / "nowhere/t.txt", STAMPS)
    (tmp_path / "folder").mkdir()
    with pytest.raises(MacvoError, match="cannot write"):
        write_times(tmp_path / "folder", STAMPS)
    assert [file.name for file in tmp_path.iterdir()] == ["folder"]


def test_slerp_turns_at_constant_rate() -> None:
    axis = np.array([0.3, -0.5, 0.8])
    ends = [quaternion(exp_so3(angle * axis)) for angle in (0.2, 2.4)]
    fraction = np.linspace(0, 1, 12)
    # The same rotation with the other sign must not take the long way.
    mixed = slerp(np.tile(ends[0], (12, 1)), np.tile(-ends[1], (12, 1)), fraction)
    expected = [exp_so3((0.2 + f * 2.2) * axis) for f in fraction]
    np.testing.assert_allclose(poses_from_quaternions(np.zeros((12, 3)), mixed)[:, :3, :3], expected, atol=1e-12)


def test_interpolation_knows_what_it_does_not_know() -> None:
    ms = 1_000_000
    times = np.array([0, 10, 20, 500, 510], dtype=np.int64) * ms
    positions = np.column_stack([times / 1e9, np.zeros((5, 2))])
    quaternions = np.tile([0, 0, 0, 1.0], (5, 1))
    stamps = np.array([-50, 0, 5, 20, 21, 250, 499.5, 505, 510.5, 600]) * ms
    poses, known = interpolate_poses(times, positions, quaternions, stamps.astype(np.int64), max_gap=50 * ms)
    assert known.tolist() == [False, True, True, True, True, False, True, True, True, False]
    np.testing.assert_allclose(poses[known, 0, 3], [0, 0.005, 0.020, 0.020, 0.5, 0.505, 0.51])
    assert longest_run(known) == (1, 4)
    assert longest_run(np.zeros(3, dtype=np.bool_)) == (0, -1)


def test_interpolation_of_a_single_sample() -> None:
    poses, known = interpolate_poses(
        np.array([7]), np.ones((1, 3)), np.array([[0, 0, 0, 2.0]]), np.array([7, 10**9]), max_gap=10
    )
    assert known.tolist() == [True, False]
    np.testing.assert_allclose(poses[0, :3, 3], 1)
