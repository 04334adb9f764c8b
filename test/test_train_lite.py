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

"""`macvo train lite`: from TartanAir folders to weights and figures, by a file of options, killed, on two processes."""

from __future__ import annotations

import argparse
import csv
import os
import shutil
import subprocess
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest
import safetensors.torch
import torch
from scipy.spatial.transform import Rotation

from macvo_ros.commands import train as command
from macvo_ros.commands._train_lite import find_photographs, prepare
from macvo_ros.errors import ConfigError, SequenceError
from macvo_ros.matching.lite.network import load_network
from macvo_ros.rendering.sequence import RenderedSequence
from macvo_ros.rendering.worlds import WORLDS, build
from macvo_ros.sequences.poses import NED_FROM_OPTICAL
from macvo_ros.sequences.tartanair import LAYOUTS, open_tartanair
from macvo_ros.sequences.tartanair_truth import TartanAirTruth
from macvo_ros.training import lite_scenes
from macvo_ros.training.distributed import Worker
from macvo_ros.training.lite import LiteTraining
from macvo_ros.training.lite_clips import Clip, sequence_of
from macvo_ros.training.lite_report import ALL, Errors, calibrations
from macvo_ros.training.lite_scenes import render_clip
from macvo_ros.training.lite_tartanair import static_flow, tartanair_clip, tartanair_clips
from macvo_ros.training.run_log import read_log

ROOT = Path(__file__).resolve().parents[1]
CAMERA = LAYOUTS[0].camera.resized(160, 120)


def write_tartanair(folder: Path, sequence: RenderedSequence) -> None:
    """A rendered sequence as a trajectory of TartanAir, version 1, without flow files."""
    for name in ("image_left", "image_right", "depth_left"):
        (folder / name).mkdir(parents=True)
    assert sequence.ground_truth is not None
    rows = []
    for index in range(len(sequence)):
        frame = sequence[index]
        for side, image in (("left", frame.left), ("right", frame.right)):
            cv2.imwrite(str(folder / f"image_{side}" / f"{index:06d}_{side}.png"), image[..., ::-1])
        np.save(folder / "depth_left" / f"{index:06d}_left_depth.npy", sequence.truth(index).depth)
        pose = sequence.ground_truth[index] @ np.linalg.inv(NED_FROM_OPTICAL)
        rows.append([*pose[:3, 3], *Rotation.from_matrix(pose[:3, :3]).as_quat()])
    np.savetxt(folder / "pose_left.txt", rows)


@pytest.fixture(scope="module")
def sequence() -> RenderedSequence:
    return RenderedSequence("dynamic", frames=6, seed=3, camera=CAMERA, texels=128)


@pytest.fixture(scope="module")
def data(sequence: RenderedSequence, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two trajectories, one of them to hold out."""
    folder = tmp_path_factory.mktemp("tartanair")
    write_tartanair(folder / "town" / "Easy" / "P000", sequence)
    other = RenderedSequence("room", frames=5, seed=3, camera=CAMERA, texels=128)
    write_tartanair(folder / "room" / "Easy" / "P000", other)
    return folder


def test_clips_of_tartanair_hold_what_the_renderer_knows(sequence: RenderedSequence, data: Path) -> None:
    folder = data / "town/Easy/P000"
    found = tartanair_clip(open_tartanair(folder), TartanAirTruth(folder), 1)
    expected = render_clip(sequence, 1, 0)
    assert found.keys() == expected.keys()
    assert np.array_equal(found["grey"], expected["grey"])
    assert np.allclose(found["camera"], expected["camera"])
    # the pixels at which truth was sampled differ; compare where both took the same one
    truth = sequence.truth(1)
    assert truth.moving.sum() > 50
    camera = sequence.camera
    motion = np.linalg.solve(*np.asarray(found["poses"])[1:3])
    flow = static_flow(camera, truth.depth, motion)
    known = np.isfinite(flow).all(axis=0)
    assert known[np.isfinite(truth.depth)].mean() > 0.99
    assert np.abs(flow - truth.static_flow)[:, known].max() < 0.01
    moved = np.abs(truth.flow - truth.static_flow).max(axis=0)[truth.moving & known]
    assert np.median(moved) > 0.1  # the real flow would have been another one
    place = np.asarray(found["place"][0], dtype=int)
    v, u = np.mgrid[: place.shape[0], : place.shape[1]] * 4
    at = (v + place // 4, u + place % 4)
    assert np.allclose(np.asarray(found["disparity"][0]), truth.disparity[at], atol=0.01)


def test_rendered_clips_are_made_once_and_with_the_photographs_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lite_scenes, "_CLIPS", 1)
    monkeypatch.setattr(lite_scenes, "build", lambda name, seed, texels, files: build(name, seed, 128, files))
    noise = np.random.default_rng(0).integers(0, 255, (300, 400, 3), np.uint8)
    cv2.imwrite(str(tmp_path / "noise.PNG"), noise)
    plain, painted = tmp_path / "plain", tmp_path / "painted"
    lite_scenes.render_clips(plain, 1)
    lite_scenes.render_clips(painted, 1, find_photographs(tmp_path))
    (file,) = lite_scenes.find_clips(plain, 1)
    (other,) = lite_scenes.find_clips(painted, 1)
    one, two = Clip(file), Clip(other)
    assert np.array_equal(one.arrays["poses"], two.arrays["poses"])
    assert np.array_equal(one.truth("disparity", 0), two.truth("disparity", 0))
    assert not np.array_equal(one.grey(0)[0], two.grey(0)[0])
    before = file.stat().st_mtime_ns
    lite_scenes.render_clips(plain, 1)
    assert file.stat().st_mtime_ns == before
    assert [lite_scenes.is_held_out(Path(f"{seed}_0.npz")) for seed in range(10_000, 10_004)] == [False] * 3 + [True]


def test_near_and_fast_worlds_have_their_share_of_the_training() -> None:
    shares = lite_scenes.world_shares()
    assert sum(shares.values()) == pytest.approx(1)
    assert set(shares) == set(WORLDS)
    assert (shares["near"], shares["landing"], shares["motorway"]) == (0.12, 0.12, 0.06)
    assert shares["mixture"] == pytest.approx(0.75 * 0.7)


def test_static_flow_of_points_behind_the_camera_is_unknown() -> None:
    motion = np.eye(4)
    motion[2, 3] = 2.0
    depth = np.full((CAMERA.height, CAMERA.width), 4.0, np.float32)
    depth[:10] = 1.5
    flow = static_flow(CAMERA, depth, motion)
    assert np.isnan(flow[:, :10]).all()
    # twice as near: everything flies twice as far from the centre
    assert np.allclose(flow[0, 60], np.arange(CAMERA.width) - CAMERA.cx, atol=1e-3)


def test_what_is_missing_in_a_trajectory_is_named(data: Path, tmp_path: Path) -> None:
    folder = tmp_path / "P001"
    folder.mkdir()
    for name in ("image_left", "image_right"):
        (folder / name).symlink_to(data / "town/Easy/P000" / name)
    with pytest.raises(SequenceError, match="no file of poses"):
        tartanair_clips(tmp_path / "clips", [str(folder)])
    (folder / "pose_left.txt").symlink_to(data / "town/Easy/P000/pose_left.txt")
    with pytest.raises(SequenceError, match="depth folder"):
        tartanair_clips(tmp_path / "clips", [str(folder)])


def words(data: Path, out: Path) -> list[str]:
    options = f"--data {data / 'town'} --held-out {data / 'room'} --out {out} --save-every 2 --report-every 2"
    return f"train lite --worlds 0 --crop 64x64 --steps 6 --batch 2 --device cpu {options}".split()


def run(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers())
    args = parser.parse_args(words)
    assert args.run(args) == 0
    return args


def same_weights(one: Path, two: Path) -> bool:
    first, second = (safetensors.torch.load_file(folder / "lite.safetensors") for folder in (one, two))
    return all(torch.equal(first[name], second[name]) for name in {*first, *second})


@pytest.fixture(scope="module")
def trained(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("run")
    run(words(data, out))
    return out


def test_from_folders_to_weights_and_figures(trained: Path) -> None:
    network = load_network(trained / "lite.safetensors")
    assert sum(tensor.numel() for tensor in network.state_dict().values()) > 50_000
    log = read_log(trained)
    assert [row["step"] for row in log] == [2, 4, 6]
    assert all(np.isfinite([row["loss"], row["held_out"]]).all() for row in log)
    with (trained / "held_out.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {(row["match"], row["stage"]) for row in rows if row["sequence"] == ALL} == {
        ("disparity", "dense"), ("disparity", "refined"), ("flow", "dense"), ("flow", "refined"),
    }  # fmt: skip
    assert all(float(row["z_deviation"]) > 0 for row in rows)
    assert cv2.imread(str(trained / "training.png")).shape[1] > 1000


def test_a_killed_run_ends_with_the_same_weights_and_log(
    data: Path, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, calls = tmp_path / "killed", []
    forward = LiteTraining.forward

    def dies(self: LiteTraining, *tensors: torch.Tensor) -> torch.Tensor:
        calls.append(self.training)
        if len(calls) == 8:  # in step 4: two steps, four held-out samples, two steps
            raise KeyboardInterrupt
        return forward(self, *tensors)

    monkeypatch.setattr(LiteTraining, "forward", dies)
    with pytest.raises(KeyboardInterrupt):
        run(words(data, out))
    assert [row["step"] for row in read_log(out)] == [2]
    monkeypatch.undo()
    run(words(data, out))
    assert same_weights(out, trained)
    columns = ("step", "loss", "held_out", "learning_rate")
    assert [[row[c] for c in columns] for row in read_log(out)] == [
        [row[c] for c in columns] for row in read_log(trained)
    ]


def test_what_is_held_out_is_not_trained_on(data: Path, tmp_path: Path) -> None:
    args = argparse.Namespace(out=tmp_path, worlds=0, data=[str(data)], held_out=[str(data / "room")])
    clips, kept_apart = prepare(args, [], Worker(0, 1, torch.device("cpu")))
    assert [sequence_of(clip).split("-")[1] for clip in clips] == ["town"]
    assert [sequence_of(clip).split("-")[1] for clip in kept_apart] == ["room"]


def test_options_from_a_file(trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The options a run wrote down make the same run again; what is on the command line wins."""
    out = tmp_path / "again"
    args = run(["train", "lite", "--out", str(out), "--config", str(trained / "options.yaml")])
    assert (args.steps, args.crop, args.worlds, args.out) == (6, (64, 64), 0, out)
    assert same_weights(out, trained)
    before = (out / "options.yaml").read_text()
    with pytest.raises(ConfigError, match="steps = 6, now it is 7"):
        run(["train", "lite", "--out", str(out), "--config", str(trained / "options.yaml"), "--steps", "7"])
    assert (out / "options.yaml").read_text() == before
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers())
    file = tmp_path / "options.yaml"
    file.write_text("out: run\nstep: 10\n")
    with pytest.raises(ConfigError, match="no option 'step'; did you mean steps"):
        parser.parse_args(["train", "lite", "--config", str(file)])
    file.write_text("out: run\nno_amp: 3\n")
    with pytest.raises(ConfigError, match="no_amp: expected true or false, got 3"):
        parser.parse_args(["train", "lite", "--config", str(file)])
    file.write_text("out: run\nsteps: many\n")
    with pytest.raises(SystemExit):
        parser.parse_args(["train", "lite", "--config", str(file)])
    assert "invalid int value: 'many'" in capsys.readouterr().err
    file.write_text("out: run\nno_amp: true\ndata: [a, b]\n")
    args = parser.parse_args(["train", "lite", "--data", "c", "--config", str(file)])
    assert (args.no_amp, args.data, args.out) == (True, ["c"], Path("run"))


def test_the_file_that_comes_with_us_holds_the_defaults() -> None:
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers())
    given = parser.parse_args(["train", "lite", "--out", "run", "--config", str(ROOT / "config/train_lite.yaml")])
    default = parser.parse_args(["train", "lite", "--out", "run"])
    assert vars(given) | {"config": None} == vars(default)


def test_two_processes_under_torchrun_make_the_steps_of_one(data: Path, trained: Path, tmp_path: Path) -> None:
    out = tmp_path / "two"
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    for _ in range(2):
        done = subprocess.run(
            [*torchrun, "-m", "macvo_ros.cli", *words(data, out)], env=environment, cwd=tmp_path, capture_output=True,
            text=True, timeout=300,
        )  # fmt: skip
        if "SIGABRT" not in done.stderr:  # PyTorch's gloo can abort when an interpreter ends: pytorch/pytorch#179291
            break
        shutil.rmtree(out, ignore_errors=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("lite.safetensors") == 1  # only one of them speaks
    one, two = read_log(trained), read_log(out)
    assert [row["step"] for row in two] == [2, 4, 6]
    # Each process weighs the known points of its own samples, so the steps are alike and not the same.
    assert [row["held_out"] for row in two] == pytest.approx([row["held_out"] for row in one], rel=0.005)


def test_nothing_to_train_on_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nothing to train on"):
        run(["train", "lite", "--out", str(tmp_path), "--worlds", "0"])
    with pytest.raises(SequenceError, match=r"no \.jpg or \.png files"):
        run(["train", "lite", "--out", str(tmp_path), "--photographs", str(tmp_path)])


def test_calibration_tells_honest_from_proud() -> None:
    rng = np.random.default_rng(0)
    sigma = np.exp(rng.uniform(-3, 1, 20_000))
    error = sigma * rng.standard_normal(20_000)
    honest = Errors("a", "flow", "dense", error, sigma)
    proud = Errors("b", "flow", "dense", error, sigma / 3)
    blind = Errors("c", "flow", "dense", error, np.full_like(sigma, np.sqrt(np.mean(error**2))))
    a, b, c, every = calibrations([honest, proud, blind])
    assert (a.z_deviation, a.within_1_sigma) == (pytest.approx(1, abs=0.02), pytest.approx(0.683, abs=0.01))
    assert a.correlation > 0.6
    assert b.z_deviation == pytest.approx(3, rel=0.02)
    assert b.beyond_4_sigma > 0.15
    assert np.isnan(c.correlation)
    assert (every.sequence, every.matches) == (ALL, 60_000)
