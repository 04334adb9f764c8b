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

"""The contract of the command: exit codes, one line on stderr, JSON keys, nothing half-written."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from fake_odometry import NoisyOdometry, NoisyTruth, winding_path

from macvo_ros import cli
from macvo_ros.images.frame import StereoFrame
from macvo_ros.settings.config import Config

KEYS = {
    "frames", "t_rel", "r_rel", "ate_rmse", "nees_relative_mean", "nees_pose_mean", "within_3sigma", "fps", "degraded",
    "lost",
}  # fmt: skip


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Any path is the fake sequence, tracked by the fake odometry; `opened` is what the command asked for."""
    state = SimpleNamespace(opened=None, configs=[], truth=winding_path(20), odometry=NoisyOdometry, known=True)

    def open_sequence(path: str, **options: object) -> NoisyTruth:
        state.opened = (path, options)
        return NoisyTruth(state.truth if state.known else None, "fake", 20)

    def odometry(config: Config) -> NoisyOdometry:
        state.configs.append(config)
        return state.odometry(state.truth)

    monkeypatch.setattr("macvo_ros.sequences.open_sequence", open_sequence)
    monkeypatch.setattr("macvo_ros.odometry.pipelined_odometry.make_odometry", odometry)
    return state


def test_help_is_quick_to_import() -> None:
    code = (
        "import sys; from macvo_ros import cli\n"
        "try: cli.main(['--help'])\n"
        "except SystemExit as stop: assert stop.code == 0\n"
        "heavy = {'torch', 'cv2', 'matplotlib', 'evo', 'rclpy', 'scipy'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for name in ("run", "eval", "compare", "demo"):
        assert f"    {name} " in done.stdout


def test_every_command_explains_itself() -> None:
    for name in cli.command_names():
        with pytest.raises(SystemExit) as stop:
            cli.main([name, "--help"])
        assert stop.value.code == 0, name


@pytest.mark.parametrize(
    "arguments",
    [
        ["eval"],
        ["nonsense"],
        ["eval", "x", "--frames", "5"],
        ["eval", "x", "--step", "0"],
        ["eval", "x", "--unknown"],
    ],
)
def test_usage_errors_are_one_line_and_two(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.main(arguments)
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith("macvo: ")
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["eval", "no/such/folder"], "no/such/folder"),
        (["eval", "x", "--set", "keypoints.cuont=3"], "keypoints.count"),
        (["eval", "x", "--set", "keypoints.count=ten"], "whole number"),
        (["eval", "x", "--set", "nothing"], "key=value"),
        (["eval", "x", "--matcher", "magic"], "matcher"),
        (["eval", "x", "--config", "none.yaml"], "none.yaml"),
        (["eval", "render:room", "--layout", "kitti"], "rendered"),
        (["eval", "render:moon"], "moon"),
        (["compare", "none.json"], "none.json"),
    ],
)
def test_input_errors_are_one_line_and_two(
    arguments: list[str],
    words: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("macvo: ")
    assert words in error
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_eval_honours_its_contract(fakes: SimpleNamespace, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "new" / "eval.json"
    arguments = ["eval", "data", "--layout", "kitti", "--sequence", "00", "--frames", "2:", "--step", "3", "--strict"]
    arguments += ["--matcher", "classic", "--set", "keypoints.count=300", "--set", "covariance.model=diagonal"]
    assert cli.main([*arguments, "--json", str(target)]) == 0
    asked = {"layout": "kitti", "sequence": "00", "frames": (2, None), "step": 3, "strict": True}
    assert fakes.opened == ("data", asked)
    assert fakes.configs[0].keypoints.count == 300
    assert fakes.configs[0].covariance.model == "diagonal"
    document = json.loads(target.read_text(), parse_constant=pytest.fail)
    assert document.keys() >= KEYS
    assert document["frames"] == 20
    assert "t_rel" in capsys.readouterr().out


def test_without_truth_what_needs_none_is_said(
    fakes: SimpleNamespace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fakes.known = False
    assert cli.main(["eval", "data", "--ablation"]) == 2
    assert "no ground truth" in capsys.readouterr().err
    assert cli.main(["eval", "data"]) == 0
    printed = capsys.readouterr().out
    assert "(no ground truth: the errors are unknown)" in printed
    assert "19 frames TRACKING, 0 DEGRADED, 0 LOST" in printed
    assert cli.main(["run", "data", "--out", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out" / "report.html").stat().st_size > 10_000
    assert not (tmp_path / "out" / "groundtruth.txt").exists()
    assert json.loads((tmp_path / "out" / "result.json").read_text())["frames"] == 20


def test_ablation_runs_the_six_variants_and_the_windows(
    fakes: SimpleNamespace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["eval", "data", "--ablation", "--json", str(tmp_path / "a.json")]) == 0
    assert {(c.keypoints.selector, c.covariance.model) for c in fakes.configs} == {
        ("random", "identity"),
        ("uncertainty", "identity"),
        ("random", "full"),
        ("uncertainty", "diagonal"),
        ("uncertainty", "scale_agnostic"),
        ("uncertainty", "full"),
    }
    assert [c.window.frames for c in fakes.configs[-4:]] == [2, 4, 8, 16]
    assert len(fakes.configs) == 10
    rows = json.loads((tmp_path / "a.json").read_text())["ablation"]
    assert [row["window.frames"] for row in rows] == [2, 2, 2, 2, 2, 2, 4, 8, 16, 6]
    assert "Scale Agnostic" in capsys.readouterr().out


def test_interrupt_leaves_nothing(fakes: SimpleNamespace, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class Interrupted(NoisyOdometry):
        def track(self, frame: StereoFrame):
            if frame.stamp == 900_000_000:
                raise KeyboardInterrupt
            return super().track(frame)

    fakes.odometry = Interrupted
    assert cli.main(["eval", "data", "--json", str(tmp_path / "a.json"), "--out", str(tmp_path / "out")]) == 130
    assert list(tmp_path.iterdir()) == []
    assert capsys.readouterr().err == "macvo: interrupted\n"


def test_unwritable_output_is_an_input_error(
    fakes: SimpleNamespace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert cli.main(["eval", "data", "--out", str(tmp_path / "file" / "out")]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_compare_prints_and_writes(fakes: SimpleNamespace, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a", "b"):
        assert cli.main(["eval", "data", "--out", str(tmp_path / name)]) == 0
    capsys.readouterr()
    assert cli.main(["compare", str(tmp_path / "a"), str(tmp_path / "b"), "--out", str(tmp_path / "c.html")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[2:4]] == ["a", "b"]
    assert (tmp_path / "c.html").read_text().startswith("<!DOCTYPE html>")


def test_rendered_sequences_run_for_real(tmp_path: Path) -> None:
    assert cli.main(["eval", "render:room", "--frames", "1:4", "--json", str(tmp_path / "a.json")]) == 0
    document = json.loads((tmp_path / "a.json").read_text())
    assert document["frames"] == 3
    assert document["lost"] == 0
    assert document["t_rel"] < 0.02
    assert np.isfinite(document["nees_relative_mean"])
