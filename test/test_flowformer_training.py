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

"""Training the covariance branch: it learns, only it learns, and the matcher takes the result."""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from flowformer_weights import named_network, named_state, one_thread, waves

from macvo_ros.commands import train as command
from macvo_ros.matching.flowformer.checkpoint import COVARIANCE, load_checkpoint
from macvo_ros.matching.weights_file import write_safetensors
from macvo_ros.training.distributed import Worker
from macvo_ros.training.flow_pairs import FlowPair
from macvo_ros.training.flowformer import CovarianceTraining, held_out_nll, write_network
from macvo_ros.training.loop import TrainingSettings, train

__all__ = ["one_thread"]
CPU = torch.device("cpu")


class Shifted:
    """Waves that move sideways by a few pixels."""

    def __init__(self, count: int, seed: int) -> None:
        self.count, self.seed = count, seed

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> FlowPair:
        random = np.random.default_rng([self.seed, index])
        start, shift = random.uniform(0, 100), random.uniform(-5, 5)
        flow = torch.tensor([shift, 0.0])[:, None, None].expand(2, 32, 40).contiguous()
        return FlowPair(
            waves(32, 40, start)[0], waves(32, 40, start + shift)[0], flow, torch.ones(32, 40, dtype=torch.bool)
        )


@torch.no_grad()
def constant_nll(training: CovarianceTraining, pairs: Shifted) -> float:
    """The least NLL that one sigma per axis for all pixels can have: what there is to gain without seeing anything."""
    every = [pairs[index] for index in range(len(pairs))]
    errors = [training.predictions(pair.first[None], pair.second[None])[-1][0][0] - pair.flow for pair in every]
    variance = torch.stack(errors).square().mean((0, 2, 3))
    return float((variance.log() + 1 + math.log(2 * math.pi)).mean() / 2)


def test_covariance_branch_learns_and_nothing_else(tmp_path: Path) -> None:
    training = CovarianceTraining(named_network(iterations=1))
    seen, unseen = Shifted(4, seed=0), Shifted(4, seed=1)
    before = held_out_nll(training, seen, CPU), held_out_nll(training, unseen, CPU)
    settings = TrainingSettings(steps=24, batch=2, height=32, width=40, learning_rate=1e-3)
    train(training, seen, settings, tmp_path, Worker(0, 1, CPU), report=lambda line: None)
    after = held_out_nll(training, seen, CPU), held_out_nll(training, unseen, CPU)
    assert after[0] < constant_nll(training, seen)
    assert after[1] < before[1] - 0.5

    write_network(training, tmp_path / "trained.safetensors")
    trained = load_checkpoint(tmp_path / "trained.safetensors").state_dict()
    for name, tensor in named_state().items():
        assert torch.equal(trained[name], tensor) == (not name.startswith(COVARIANCE)), name


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_safetensors(tmp_path / "backbone.safetensors", named_state(), {})
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers())
    words = ["train", "flowformer", "--backbone", str(tmp_path / "backbone.safetensors"), "--data", "render:room:1:2"]
    words += ["--out", str(tmp_path / "out"), "--steps", "1", "--batch", "1", "--crop", "64x48", "--iterations", "1"]
    args = parser.parse_args([*words, "--readers", "0", "--device", "cpu"])
    assert args.run(args) == 0
    assert "step 1/1" in capsys.readouterr().out
    trained = load_checkpoint(tmp_path / "out" / "flowformer.safetensors").state_dict()
    changed = {name for name, tensor in named_state().items() if not torch.equal(trained[name], tensor)}
    assert changed
    assert all(name.startswith(COVARIANCE) for name in changed)
