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

"""The training loop on a toy network: what it minimises, resuming, several processes, and the data it reads."""

from __future__ import annotations

import math
import os
import socket
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
import torch.multiprocessing
from tiny_datasets import image, save
from torch import nn

from macvo_ros.errors import ConfigError, MacvoError, SequenceError, WeightsError
from macvo_ros.rendering.sequence import RenderedSequence
from macvo_ros.training.distributed import Worker, join_workers
from macvo_ros.training.flow_pairs import FlowPair, Joined, crop_pair, stereo_truth
from macvo_ros.training.loop import TrainingSettings, train
from macvo_ros.training.nll import nll, paper_loss, sequence_loss
from macvo_ros.training.pair_sources import RenderedPairs, TartanAirPairs, open_pairs
from macvo_ros.training.progress import FILE

CPU = torch.device("cpu")
ALONE = Worker(0, 1, CPU)
SETTINGS = TrainingSettings(steps=8, batch=4, height=16, width=16, learning_rate=1e-2)


class Noise:
    """Pairs of noise, different for each index."""

    def __init__(self, count: int = 10, breaks_at: int | None = None) -> None:
        self.count, self.breaks_at, self.asked = count, breaks_at, 0

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> FlowPair:
        self.asked += 1
        if self.asked == self.breaks_at:
            raise KeyboardInterrupt
        generator = torch.Generator().manual_seed(index)
        images = torch.rand(2, 3, 20, 24, generator=generator)
        return FlowPair(*images, torch.randn(2, 20, 24, generator=generator), torch.ones(20, 24, dtype=torch.bool))


class Toy(nn.Module):
    """Predicts flow and log sigma from the first image by one convolution."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.layer = nn.Conv2d(3, 4, 3, padding=1)

    def forward(
        self, first: torch.Tensor, second: torch.Tensor, truth: torch.Tensor, valid: torch.Tensor
    ) -> torch.Tensor:
        flow, log_sigma = self.layer(first).chunk(2, dim=1)
        return sequence_loss([(flow, log_sigma)], truth, valid, 0.8)


def weights(module: nn.Module) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in module.parameters()])


def quiet(line: str) -> None:
    """A report nobody reads."""


def test_loss_is_the_gaussian_likelihood() -> None:
    generator = torch.Generator().manual_seed(0)
    flow, truth, log_sigma = torch.randn(3, 2, 2, 5, 6, generator=generator)
    valid = torch.rand(2, 5, 6, generator=generator) > 0.3
    expected = -torch.distributions.Normal(flow, log_sigma.exp()).log_prob(truth)
    picked = torch.stack([expected[b, :, valid[b]].mean() for b in range(2)])
    found = paper_loss(flow, log_sigma, truth, valid)
    assert [nll(float(value)) for value in found] == pytest.approx(picked.tolist(), rel=1e-5)


def test_loss_is_least_at_the_true_spread_and_forgets_invalid_pixels() -> None:
    truth = 3 * torch.randn(1, 2, 200, 200, generator=torch.Generator().manual_seed(0))
    valid = torch.ones(1, 200, 200, dtype=torch.bool)
    valid[:, :10] = False
    truth[:, :, :10] = math.nan
    truth[:, :, 10] = 1e5  # longer than any real flow
    losses = [
        float(paper_loss(torch.zeros_like(truth), torch.full_like(truth, s), truth, valid)) for s in (0.8, 1.1, 1.4)
    ]
    assert math.log(3) == pytest.approx(1.1, abs=0.01)
    assert losses[1] < min(losses[0], losses[2])
    assert paper_loss(truth, truth, truth, torch.zeros_like(valid)).tolist() == [0.0]


def test_later_iterations_weigh_more() -> None:
    truth = torch.zeros(1, 2, 4, 4)
    wrong, right = (truth + 1, truth), (truth, truth)
    valid = torch.ones(1, 4, 4, dtype=torch.bool)
    assert float(sequence_loss([wrong, right], truth, valid, 0.8)) == pytest.approx(0.8 * 2)
    assert float(sequence_loss([right, wrong], truth, valid, 0.8)) == pytest.approx(2)


def test_a_killed_run_resumes_without_loss(tmp_path: Path) -> None:
    whole = Toy()
    lines: list[str] = []
    train(whole, Noise(), SETTINGS, tmp_path / "a", ALONE, report=lines.append, report_every=4, validate=lambda: 1.25)
    assert [line.split()[1] for line in lines if "loss" in line] == ["4/8", "8/8"]
    assert "held-out 1.2500" in lines[-1]

    with pytest.raises(KeyboardInterrupt):  # in the middle of step 6; the last progress is that of step 4
        train(Toy(), Noise(breaks_at=23), SETTINGS, tmp_path / "b", ALONE, report=quiet, save_every=2)
    resumed, rest = Toy(), Noise()
    train(resumed, rest, SETTINGS, tmp_path / "b", ALONE, report=quiet)
    assert torch.equal(weights(resumed), weights(whole))
    assert rest.asked == (8 - 4) * SETTINGS.batch
    assert not torch.equal(weights(whole), weights(Toy()))
    again = Noise()
    train(Toy(), again, SETTINGS, tmp_path / "b", ALONE, report=quiet)
    assert again.asked == 0  # nothing is left to do


def test_progress_survives_a_failed_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train(Toy(), Noise(), TrainingSettings(**{**vars(SETTINGS), "steps": 1}), tmp_path, ALONE, report=quiet)
    before = (tmp_path / FILE).read_bytes()

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(MacvoError, match="disk full"):
        train(Toy(), Noise(), SETTINGS, tmp_path / "new", ALONE, report=quiet, save_every=1)
    assert (tmp_path / FILE).read_bytes() == before
    assert list((tmp_path / "new").iterdir()) == []


def test_progress_of_another_run_is_refused(tmp_path: Path) -> None:
    one = TrainingSettings(**{**vars(SETTINGS), "steps": 1})
    train(Toy(), Noise(), one, tmp_path, ALONE, report=quiet, run={"backbone": "abc"})
    with pytest.raises(ConfigError, match="steps = 1, now it is 8"):
        train(Toy(), Noise(), SETTINGS, tmp_path, ALONE, run={"backbone": "abc"})
    with pytest.raises(ConfigError, match="backbone = 'abc', now it is 'def'"):
        train(Toy(), Noise(), one, tmp_path, ALONE, run={"backbone": "def"})
    (tmp_path / FILE).write_bytes(b"rubbish")
    with pytest.raises(WeightsError, match="is not the progress"):
        train(Toy(), Noise(), one, tmp_path, ALONE)


def test_a_loss_that_explodes_stops_the_run(tmp_path: Path) -> None:
    class Broken(Toy):
        def forward(self, *batch: torch.Tensor) -> torch.Tensor:
            return super().forward(*batch) * math.nan

    with pytest.raises(ConfigError, match="loss of step 1 is nan"):
        train(Broken(), Noise(), SETTINGS, tmp_path, ALONE)
    assert not (tmp_path / FILE).exists()


def _work(rank: int, port: int, folder: str) -> None:
    os.environ.update(
        WORLD_SIZE="2", RANK=str(rank), LOCAL_RANK=str(rank), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port)
    )
    torch.set_num_threads(1)
    module = Toy()
    with join_workers("cpu") as worker:
        assert worker.leads == (rank == 0)
        train(module, Noise(), SETTINGS, Path(folder), worker, report=quiet)
    np.save(f"{folder}/{rank}.npy", weights(module).numpy())


def test_two_processes_make_the_steps_of_one(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    (tmp_path / "two").mkdir()
    torch.multiprocessing.spawn(_work, (port, str(tmp_path / "two")), nprocs=2)
    alone = Toy()
    train(alone, Noise(), SETTINGS, tmp_path / "one", ALONE, report=quiet)
    first, second = (np.load(tmp_path / "two" / f"{rank}.npy") for rank in range(2))
    assert np.array_equal(first, second)
    assert first == pytest.approx(weights(alone).numpy(), abs=1e-6)
    assert (tmp_path / "two" / FILE).exists()


def test_a_batch_that_cannot_be_shared_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="4 pairs cannot be shared by 3"):
        train(Toy(), Noise(), SETTINGS, tmp_path, Worker(0, 3, CPU))
    with pytest.raises(SequenceError, match="no pairs"):
        train(Toy(), Noise(0), SETTINGS, tmp_path, ALONE)


@pytest.fixture
def trajectory(tmp_path: Path) -> Path:
    """A TartanAir v2 trajectory of 3 frames of 40x40 with flow and depth."""
    folder = tmp_path / "env" / "P000"
    for i in range(3):
        save(folder / f"image_lcam_front/{i:06d}_lcam_front.png", image(i, 40, 40, colour=True))
        save(folder / f"image_rcam_front/{i:06d}_rcam_front.png", image(9 + i, 40, 40, colour=True))
        depth = np.full((40, 40), 5.0, "<f4")
        (folder / "depth_lcam_front").mkdir(exist_ok=True)
        cv2.imwrite(str(folder / f"depth_lcam_front/{i:06d}_lcam_front_depth.png"), depth[..., None].view(np.uint8))
    (folder / "flow_lcam_front").mkdir()
    for i in range(2):
        flow = np.zeros((40, 40, 3), np.uint16)
        flow[..., 0], flow[..., 1] = 32768 + 64 * (i + 1), 32768 - 32
        flow[:5, :, 2] = 100
        cv2.imwrite(str(folder / f"flow_lcam_front/{i:06d}_{i + 1:06d}_flow.png"), flow)
    return folder


def test_tartanair_pairs(trajectory: Path) -> None:
    pairs = TartanAirPairs(trajectory)
    assert len(pairs) == 2
    pair = pairs[1]
    assert torch.equal(pair.flow[:, 20, 20], torch.tensor([2.0, -0.5]))
    assert not pair.valid[:5].any()
    assert pair.valid[5:].all()
    assert torch.equal(
        (pair.first * 255).round().byte(), torch.from_numpy(image(1, 40, 40, colour=True)).permute(2, 0, 1)
    )
    assert torch.equal((pair.second * 255).round().byte()[0], torch.from_numpy(image(2, 40, 40, colour=True))[..., 0])

    both = open_pairs([str(trajectory.parent)], "both")
    assert len(both) == 5
    stereo = both[3]
    # 320 pixels of focal length at 640 columns are 20 at 40; 20 * 0.25 m / 5 m
    assert torch.allclose(stereo.flow[:, 7, 7], torch.tensor([-1.0, 0.0]))
    assert stereo.valid[:, 1:].all()
    assert not stereo.valid[:, 0].any()
    with pytest.raises(SequenceError, match="no TartanAir trajectory"):
        open_pairs([str(trajectory / "flow_lcam_front")])
    for path in (trajectory / "flow_lcam_front").iterdir():
        path.unlink()
    with pytest.raises(SequenceError, match="no temporal pairs with truth"):
        TartanAirPairs(trajectory)


def test_hidden_points_of_a_stereo_pair() -> None:
    disparity = np.full((2, 30), 2.0, np.float32)
    disparity[:, 15:20] = 8.0  # a near bar, which hides what lies to its left in the right image
    flow, seen = stereo_truth(disparity)
    assert np.array_equal(flow[0], -disparity)
    assert np.flatnonzero(~seen[0]).tolist() == [0, 1, 9, 10, 11, 12, 13]
    disparity[0, 3] = np.nan
    assert not stereo_truth(disparity)[1][0, 3]


def test_rendered_pairs() -> None:
    pairs = open_pairs(["render:room:1:2"], "both")
    assert len(pairs) == 3
    with pytest.raises(SequenceError, match="render:WORLD:SEED:FRAMES"):
        open_pairs(["render:room"])
    sequence = RenderedSequence("room", frames=2, seed=1, texels=128)
    temporal, stereo = (RenderedPairs(sequence, kind)[0] for kind in ("temporal", "stereo"))
    for pair in (temporal, stereo):
        # The second image, read where the flow points to, looks like the first one.
        _, height, width = pair.first.shape
        y, x = np.mgrid[:height, :width].astype(np.float32)
        u, v = pair.flow.numpy()
        warped = cv2.remap(pair.second.permute(1, 2, 0).numpy(), x + u, y + v, cv2.INTER_LINEAR)
        valid = pair.valid.numpy()
        error = np.abs(warped - pair.first.permute(1, 2, 0).numpy())[valid]
        still = (pair.second - pair.first).abs().numpy().transpose(1, 2, 0)[valid]
        assert valid.mean() > 0.5
        assert error.mean() < 0.5 * still.mean()


def test_joined_sets_and_crops() -> None:
    joined = Joined([Noise(2), Noise(3)])
    assert len(joined) == 5
    assert torch.equal(joined[4].flow, Noise()[2].flow)
    with pytest.raises(IndexError):
        joined[5]
    pair = Noise()[0]
    part = crop_pair(pair, 16, 8, np.random.default_rng(0))
    assert part.flow.shape == (2, 16, 8)
    assert any(
        torch.equal(part.flow, pair.flow[:, top : top + 16, left : left + 8]) for top in range(5) for left in range(17)
    )
    with pytest.raises(SequenceError, match="cannot crop 30x16"):
        crop_pair(pair, 16, 30, np.random.default_rng(0))
