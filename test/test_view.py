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

"""`macvo view`: what is shown must be what was estimated."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from macvo_ros.cli import main
from macvo_ros.evaluation.metrics import anchored
from macvo_ros.geometry.se3 import rotation_from_quaternion
from macvo_ros.odometry.status import Status
from macvo_ros.odometry.stereo_odometry import StereoOdometry
from macvo_ros.rendering.sequence import RenderedSequence
from macvo_ros.sequences.folder import write_folder
from macvo_ros.sequences.part import PartOfSequence


class Memory:
    """Takes what a recording would, as (frame, entity, archetype)."""

    def __init__(self) -> None:
        self.frame = -1
        self.logged: list[tuple[int, str, Any]] = []

    def set_time(self, name: str, *, sequence: int | None = None, duration: float | None = None) -> None:
        self.frame = sequence if sequence is not None else self.frame

    def log(self, entity: str, what: Any, *, static: bool = False) -> None:
        self.logged.append((-1 if static else self.frame, entity, what))

    def one(self, frame: int, entity: str) -> Any:
        (found,) = [what for when, where, what in self.logged if (when, where) == (frame, entity)]
        return found


def numbers(batch: Any, width: int) -> np.ndarray[Any, Any]:
    array = batch.as_arrow_array()
    return np.array(array.to_pylist(), dtype=np.float64).reshape(-1, width)


def covariances(ellipsoids: Any) -> np.ndarray[Any, Any]:
    """Back from three-sigma half axes and quaternions to covariances."""
    half, turned = numbers(ellipsoids.half_sizes, 3) / 3.0, numbers(ellipsoids.quaternions, 4)
    axes = np.array([rotation_from_quaternion(q) for q in turned])
    return np.einsum("nij,nj,nkj->nik", axes, half**2, axes)


def test_shows_what_was_estimated(room: RenderedSequence) -> None:
    pytest.importorskip("rerun", reason='rerun is not installed: pip install "macvo_ros[view]"')
    from macvo_ros.evaluation.rerun_scene import RerunScene

    memory, odometry = Memory(), StereoOdometry()
    part = PartOfSequence(room, (0, 4))
    scene = RerunScene(memory, part)  # type: ignore[arg-type]
    estimates = []
    for index in range(len(part)):
        estimates.append(odometry.track(part[index]))
        scene.add(estimates[-1])

    last = estimates[-1]
    assert last.status is Status.TRACKING
    assert last.landmarks is not None
    good = last.landmarks.inlier
    rotation, position = last.pose[:3, :3], last.pose[:3, 3]
    ellipsoids = memory.one(3, "odom/keypoints")
    expected = last.landmarks.point[good] @ rotation.T + position
    np.testing.assert_allclose(numbers(ellipsoids.centers, 3), expected, rtol=1e-4, atol=1e-4)
    wanted = rotation @ last.landmarks.covariance[good] @ rotation.T
    error = np.linalg.norm(covariances(ellipsoids) - wanted, axis=(1, 2)) / np.linalg.norm(wanted, axis=(1, 2))
    assert error.max() < 1e-3
    np.testing.assert_allclose(
        covariances(memory.one(3, "odom/here"))[0], last.covariance[:3, :3], rtol=2e-2, atol=1e-9
    )
    path = numbers(memory.one(3, "odom/path/0").strips, 3)
    np.testing.assert_allclose(path, [estimate.pose[:3, 3] for estimate in estimates], atol=1e-5)
    truth = anchored(room.ground_truth[:4], np.eye(4))[:, :3, 3]  # type: ignore[index]
    np.testing.assert_allclose(numbers(memory.one(-1, "odom/truth").strips, 3), truth, atol=1e-5)
    cloud = numbers(memory.one(3, "odom/cloud").positions, 3)
    assert len(cloud) > 2 * good.sum(), "points of earlier frames stay"
    shown = {entity for frame, entity, _ in memory.logged if frame == 3}
    assert {"odom/camera/left", "right", "sigma/disparity", "sigma/flow", "odom/camera/left/keypoints"} <= shown


def test_writes_a_file_that_rerun_reads(
    room: RenderedSequence, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("rerun", reason='rerun is not installed: pip install "macvo_ros[view]"')
    write_folder(tmp_path / "walk", PartOfSequence(room, (0, 3)))
    file = tmp_path / "walk.rrd"
    assert main(["view", str(tmp_path / "walk"), "--save", str(file)]) == 0
    assert "3 frames" in capsys.readouterr().out
    assert [path.name for path in tmp_path.glob("*walk.rrd*")] == ["walk.rrd"], "no unfinished file is left"
    command = [sys.executable, "-m", "rerun", "rrd", "print", str(file)]
    listing = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    for entity in ("/odom/camera/left", "/odom/keypoints", "/odom/tube/0", "/sigma/flow", "/sigma/pose/position_m"):
        assert entity in listing


@pytest.mark.parametrize(
    ("save", "complaint"),
    [("walk.mp4", "ends with .rrd"), ("nowhere/walk.rrd", "does not exist"), (None, "--save run.rrd")],
)
def test_refuses_in_one_line(
    save: str | None,
    complaint: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("rerun", reason='rerun is not installed: pip install "macvo_ros[view]"')
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    options = [] if save is None else ["--save", str(tmp_path / save)]
    assert main(["view", "render:room", *options]) == 2
    assert complaint in capsys.readouterr().err


def test_says_how_to_get_rerun(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("macvo_ros.commands.view.find_spec", lambda name: None)
    assert main(["view", "render:room", "--save", "a.rrd"]) == 2
    assert 'pip install "macvo_ros[view]"' in capsys.readouterr().err
