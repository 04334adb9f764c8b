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

"""What a training run tells while it goes on: a bar, a table in log.csv and, on request, TensorBoard."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

from tqdm import tqdm

from macvo_ros.atomic_write import atomic_write
from macvo_ros.errors import ConfigError

FILE = "log.csv"
COLUMNS = ("step", "loss", "held_out", "learning_rate", "samples_per_second")


class RunLog:
    """Rows by step. A resumed run goes on in the same files; rows of steps that it makes again are dropped."""

    def __init__(self, folder: Path, done: int, steps: int, *, tensorboard: bool = False) -> None:
        """done: steps that are behind us, of so many `steps`."""
        folder.mkdir(parents=True, exist_ok=True)
        self._file = folder / FILE
        self._rows = [row for row in read_log(folder) if row["step"] <= done]
        self._board = _board(folder / "tensorboard", done) if tensorboard else None
        self._bar = tqdm(total=steps, initial=done, desc="training", unit="step", disable=None)  # only on a terminal

    def step(self) -> None:
        """One step was made."""
        self._bar.update()

    def add(self, step: int, **values: float) -> None:
        """Write a row: some of `COLUMNS`."""
        self._rows.append({"step": step, **values})
        text = io.StringIO()
        writer = csv.DictWriter(text, COLUMNS, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: f"{value:.8g}" for name, value in row.items()} for row in self._rows)
        atomic_write(self._file, text.getvalue())
        if self._board is not None:
            for name, value in values.items():
                self._board.add_scalar(name, value, step)
            self._board.flush()

    def close(self) -> None:
        """End the bar and TensorBoard's file."""
        self._bar.close()
        if self._board is not None:
            self._board.close()


def read_log(folder: Path) -> list[dict[str, float]]:
    """The rows of log.csv, without their empty columns; none where there is no such file."""
    file = folder / FILE
    if not file.exists():
        return []
    try:
        rows = list(csv.DictReader(file.read_text().splitlines()))
        return [{name: float(text) for name, text in row.items() if text} for row in rows]
    except (ValueError, TypeError, UnicodeDecodeError):
        raise ConfigError(f"{file} is not the log of a run; remove it") from None


def _board(folder: Path, done: int) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise ConfigError(
            "--tensorboard: TensorBoard is not installed; pip install tensorboard, or go without: log.csv has the same"
        ) from None
    return SummaryWriter(str(folder), purge_step=done + 1)
