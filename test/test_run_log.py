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

"""The log of a training run: rows, resuming, TensorBoard, and half precision that is not mixed with full."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
from test_training import ALONE, SETTINGS, Noise, Toy, quiet, weights

from macvo_ros.errors import ConfigError
from macvo_ros.training import loop
from macvo_ros.training.run_log import FILE, RunLog, read_log


def test_rows_beyond_the_progress_are_dropped(tmp_path: Path) -> None:
    log = RunLog(tmp_path, 0, 10)
    for step in (2, 4, 6):
        log.add(step, loss=1 / step)
    log.close()
    resumed = RunLog(tmp_path, 4, 10)
    resumed.add(6, loss=0.5, held_out=2.0)
    resumed.close()
    rows = read_log(tmp_path)
    assert [(row["step"], row["loss"]) for row in rows] == [(2, 0.5), (4, 0.25), (6, 0.5)]
    assert rows[2]["held_out"] == 2.0
    assert (tmp_path / FILE).read_text().splitlines()[1] == "2,0.5,,,"
    (tmp_path / FILE).write_text("step,loss\n1,abc\n")
    with pytest.raises(ConfigError, match="is not the log of a run"):
        RunLog(tmp_path, 0, 10)


def test_tensorboard_has_the_rows_too(tmp_path: Path) -> None:
    accumulator = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator", reason="pip install tensorboard to run this"
    )
    loop.train(Toy(), Noise(), SETTINGS, tmp_path, ALONE, report=quiet, report_every=4, tensorboard=True)
    events = accumulator.EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    assert [event.step for event in events.Scalars("loss")] == [4, 8]
    assert [event.value for event in events.Scalars("loss")] == pytest.approx([r["loss"] for r in read_log(tmp_path)])


def test_without_tensorboard_the_way_out_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(ConfigError, match="pip install tensorboard"):
        RunLog(tmp_path, 0, 10, tensorboard=True)


def test_half_precision_trains_and_is_not_mixed_with_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a GPU; here its part is played by the CPU, which has bfloat16 as well."""
    full = Toy()
    loop.train(full, Noise(), SETTINGS, tmp_path / "full", ALONE, report=quiet, amp=True)
    assert "autocast" not in torch.load(tmp_path / "full" / "progress.pt", weights_only=True)["run"]
    monkeypatch.setattr(loop, "autocast_type", lambda device: torch.bfloat16)
    half = Toy()
    loop.train(half, Noise(), SETTINGS, tmp_path / "half", ALONE, report=quiet, amp=True)
    assert not torch.equal(weights(half), weights(full))
    assert torch.allclose(weights(half), weights(full), atol=5e-3)
    with pytest.raises(ConfigError, match=r"autocast = 'torch\.bfloat16', now it is None"):
        loop.train(Toy(), Noise(), SETTINGS, tmp_path / "half", ALONE, report=quiet)
