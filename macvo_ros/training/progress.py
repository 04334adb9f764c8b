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

"""Everything a training run needs to go on after it was killed, in one file that is replaced whole."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from macvo_ros.atomic_write import atomic_write
from macvo_ros.errors import ConfigError, WeightsError

FILE = "progress.pt"


def save_progress(
    folder: Path, step: int, module: nn.Module, optimizer: Optimizer, schedule: LRScheduler, run: dict[str, Any]
) -> None:
    """Write the state after `step` steps. run: what must be the same on resuming (numbers, texts)."""
    buffer = io.BytesIO()
    state = {
        "run": run,
        "step": step,
        "module": module.state_dict(),
        "optimizer": optimizer.state_dict(),
        "schedule": schedule.state_dict(),
    }
    torch.save(state, buffer)
    folder.mkdir(parents=True, exist_ok=True)
    atomic_write(folder / FILE, buffer.getvalue())


def load_progress(
    folder: Path,
    module: nn.Module,
    optimizer: Optimizer,
    schedule: LRScheduler,
    run: dict[str, Any],
    device: torch.device,
) -> int:
    """Continue from `folder`: restores everything and returns the number of steps done; 0 where nothing was saved."""
    path = folder / FILE
    if not path.exists():
        return 0
    try:
        state = torch.load(path, map_location=device, weights_only=True)
        before = state["run"]
    except Exception as error:  # damaged bytes make the reader fail in any way
        raise WeightsError(f"{path} is not the progress of a run ({type(error).__name__}); remove it") from None
    for key in sorted({*run, *before}):
        if run.get(key) != before.get(key):
            raise ConfigError(
                f"{path} was made with {key} = {before.get(key)!r}, now it is {run.get(key)!r}; use the same to "
                "resume, or another output folder"
            )
    module.load_state_dict(state["module"])
    optimizer.load_state_dict(state["optimizer"])
    schedule.load_state_dict(state["schedule"])
    return int(state["step"])
