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

"""What the scheduler did to the threads of a node that receive: the executor's (the first) and the middleware's."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path


def processor_seconds(pid: int) -> float:
    """Processor time they used."""
    ticks = 0
    for task in _receiving(pid):
        ticks += sum(int(number) for number in (task / "stat").read_text().rpartition(")")[2].split()[11:13])
    return ticks / os.sysconf("SC_CLK_TCK")


def longest_wait(pid: int) -> float:
    """Seconds the unluckiest of them was ready to run and was given no processor; 0 where the kernel is silent."""
    waits = [0.0]
    for task in _receiving(pid):
        if (task / "schedstat").exists():
            waits.append(int((task / "schedstat").read_text().split()[1]) * 1e-9)
    return max(waits)


def _receiving(pid: int) -> Iterator[Path]:
    for task in Path(f"/proc/{pid}/task").iterdir():
        if int(task.name) == pid or (task / "comm").read_text().startswith("dds."):
            yield task
