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

"""Text files of columns, read with errors that name the line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from macvo_ros.errors import SequenceError

Row = tuple[int, list[str]]


def text_rows(path: str | Path) -> list[Row]:
    """Line number and columns of every line that is not empty or a # comment; commas count as blanks."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise SequenceError(f"{path}: cannot read the file ({error})") from None
    lines = ((number, line.replace(",", " ").split()) for number, line in enumerate(text.splitlines(), 1))
    return [(number, columns) for number, columns in lines if columns and not columns[0].startswith("#")]


def number_rows(path: str | Path, rows: list[Row], columns: int) -> npt.NDArray[np.float64]:
    """(N, columns) finite numbers of `rows`; `path` is for the error."""
    values = np.empty((len(rows), columns))
    for i, (line, row) in enumerate(rows):
        if len(row) != columns:
            raise SequenceError(f"{path}, line {line}: expected {columns} numbers, got {len(row)}")
        try:
            values[i] = [float(text) for text in row]
        except ValueError:
            values[i] = np.nan
        if not (np.abs(values[i]) < 1e15).all():  # nan, inf and what no trajectory holds
            raise SequenceError(f"{path}, line {line}: expected finite numbers, got {' '.join(row)[:80]!r}")
    return values


def check_quaternions(path: str | Path, rows: list[Row], quaternions: npt.NDArray[np.float64]) -> None:
    """Refuse (N, 4) quaternions of `rows` whose length is not 1 up to rounding."""
    wrong = np.flatnonzero(np.abs(np.linalg.norm(quaternions, axis=1) - 1) > 0.01)
    if wrong.size:
        line, values = rows[int(wrong[0])][0], quaternions[wrong[0]].tolist()
        raise SequenceError(f"{path}, line {line}: expected a unit quaternion, got {values}; check the columns")
