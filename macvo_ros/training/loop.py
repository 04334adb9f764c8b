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

"""The training loop of any matching network: AdamW, one-cycle schedule, resume, several processes.

The pairs of a step and their crops follow from the seed and the number of the step alone, so a run that was killed and
resumed makes the same steps as one that was not.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset
from tqdm import tqdm

from macvo_ros.errors import ConfigError, SequenceError
from macvo_ros.training.distributed import Worker
from macvo_ros.training.flow_pairs import FlowPair, FlowPairs, crop_pair
from macvo_ros.training.progress import load_progress, save_progress
from macvo_ros.training.run_log import RunLog


@dataclass(frozen=True)
class TrainingSettings:
    """The authors' schedule (facts from their code): AdamW, one cycle with 5 % of linear warm-up."""

    steps: int = 120_000
    batch: int = 6
    height: int = 480
    width: int = 640
    learning_rate: float = 12.5e-5
    weight_decay: float = 1e-5
    warm_up: float = 0.05
    gradient_norm: float = 1.0
    seed: int = 0


class _Steps(Dataset[FlowPair]):
    """The pairs this worker sees, from step `first` on, in order."""

    def __init__(self, pairs: FlowPairs, settings: TrainingSettings, worker: Worker, first: int) -> None:
        self._pairs, self._settings = pairs, settings
        self._share = settings.batch // worker.count
        self._first, self._rank = first, worker.rank

    def __len__(self) -> int:
        return (self._settings.steps - self._first) * self._share

    def __getitem__(self, index: int) -> FlowPair:
        settings = self._settings
        step, place = divmod(index, self._share)
        number = (self._first + step) * settings.batch + self._rank * self._share + place
        epoch, position = divmod(number, len(self._pairs))
        order = np.random.default_rng([settings.seed, epoch]).permutation(len(self._pairs))
        random = np.random.default_rng([settings.seed, 1, number])
        return crop_pair(self._pairs[int(order[position])], settings.height, settings.width, random)


def train(
    module: nn.Module,
    pairs: FlowPairs,
    settings: TrainingSettings,
    folder: Path,
    worker: Worker,
    *,
    run: dict[str, Any] | None = None,
    readers: int = 0,
    save_every: int = 1000,
    report_every: int = 100,
    report: Callable[[str], None] = tqdm.write,
    validate: Callable[[], float] | None = None,
    amp: bool = False,
    tensorboard: bool = False,
) -> None:
    """Train the parameters of `module` that require gradients; `module(first, second, flow, valid)` is the loss.

    Progress goes to `folder` every `save_every` steps and is taken up from there; beside it the log (see `RunLog`).
    run: further facts that must be the same on resuming. validate: held-out loss, measured when progress is saved.
    amp: let the device choose bfloat16 where it has it (see `autocast_type`).
    """
    if settings.batch % worker.count:
        raise ConfigError(f"batch: {settings.batch} pairs cannot be shared by {worker.count} processes evenly")
    if len(pairs) == 0:
        raise SequenceError("there is nothing to train on: no pairs")
    module.to(worker.device)
    trained = [parameter for parameter in module.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, settings.learning_rate, weight_decay=settings.weight_decay)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, settings.learning_rate, settings.steps + 1, pct_start=settings.warm_up, anneal_strategy="linear",
        cycle_momentum=False,
    )  # fmt: skip
    half = autocast_type(worker.device) if amp else None
    facts = {**asdict(settings), **(run or {}), **({} if half is None else {"autocast": str(half)})}
    done = load_progress(folder, module, optimizer, schedule, facts, worker.device)
    step_module: nn.Module = DistributedDataParallel(module) if worker.count > 1 else module
    loader = DataLoader(
        _Steps(pairs, settings, worker, done), settings.batch // worker.count, num_workers=readers, pin_memory=False
    )
    log = RunLog(folder, done, settings.steps, tensorboard=tensorboard) if worker.leads else None
    since, losses = time.monotonic(), list[float]()
    with closing(log) if log else nullcontext():
        for step, batch in enumerate(loader, start=done + 1):
            with torch.autocast(worker.device.type, half, enabled=half is not None):
                loss = step_module(*(tensor.to(worker.device, non_blocking=True) for tensor in batch))
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(trained, settings.gradient_norm)
            optimizer.step()
            rate = float(schedule.get_last_lr()[0])
            schedule.step()
            losses.append(float(loss.detach()))
            if not np.isfinite(losses[-1]):
                raise ConfigError(f"the loss of step {step} is {losses[-1]}; lower the learning rate and resume")
            if log is None:
                continue
            log.step()
            saves = step == settings.steps or step % save_every == 0
            if saves or step % report_every == 0:
                speed = len(losses) * settings.batch / max(time.monotonic() - since, 1e-9)
                row = {"loss": float(np.mean(losses)), "learning_rate": rate, "samples_per_second": speed}
                report(f"step {step}/{settings.steps}  loss {row['loss']:.4f}  {speed:.1f} samples/s")
                if saves and validate is not None:
                    row["held_out"] = validate()
                    report(f"step {step}/{settings.steps}  held-out {row['held_out']:.4f}")
                log.add(step, **row)  # before progress is saved: rows beyond it are dropped on resuming, never missing
                since, losses = time.monotonic(), []
            if saves:
                save_progress(folder, step, module, optimizer, schedule, facts)


def autocast_type(device: torch.device) -> torch.dtype | None:
    """bfloat16 on CUDA devices that compute in it; it has the range of float32, so gradients need no scaling."""
    return torch.bfloat16 if device.type == "cuda" and torch.cuda.is_bf16_supported() else None
