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

"""One process or several: what torchrun says in the environment."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed

from macvo_ros.errors import ConfigError
from macvo_ros.matching.device import choose_device

PATIENCE = timedelta(days=1)
"""How long processes wait for each other: one may still be rendering when the others are done."""


@dataclass(frozen=True)
class Worker:
    """This process among those that train together."""

    rank: int
    count: int
    device: torch.device

    @property
    def leads(self) -> bool:
        """The one that writes files and prints."""
        return self.rank == 0

    def wait(self) -> None:
        """Go on when all processes have come here."""
        if self.count > 1:
            torch.distributed.barrier()


@contextmanager
def join_workers(device: str = "auto") -> Iterator[Worker]:
    """Join the processes that torchrun started (gloo on CPUs, nccl on CUDA devices), or be alone."""
    count = _number("WORLD_SIZE", 1)
    if count == 1:
        yield Worker(0, 1, choose_device(device))
        return
    rank, local = _number("RANK", 0), _number("LOCAL_RANK", 0)
    chosen = choose_device(device)
    if chosen.type == "cuda":
        chosen = choose_device(f"cuda:{local}")
        torch.cuda.set_device(chosen)
    backend = "nccl" if chosen.type == "cuda" else "gloo"
    torch.distributed.init_process_group(backend, rank=rank, world_size=count, timeout=PATIENCE)
    try:
        worker = Worker(rank, count, chosen)
        yield worker
        worker.wait()  # the first to leave would tear down what the others still use
    finally:
        gc.collect()  # gloo's threads must not outlive us with tensors of ours: the interpreter aborts when it ends
        torch.distributed.destroy_process_group()


def _number(name: str, default: int) -> int:
    text = os.environ.get(name, str(default))
    if not text.isdecimal():
        raise ConfigError(f"environment variable {name}: expected a whole number, got {text!r}; start with torchrun")
    return int(text)
