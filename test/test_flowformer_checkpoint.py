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

"""Only a complete FlowFormerCov checkpoint loads; everything else is refused by the name of what differs."""

from __future__ import annotations

import argparse
import pickle
import re
from pathlib import Path

import pytest
import torch
from flowformer_weights import named_state, one_thread
from hypothesis import given, settings
from hypothesis import strategies as st

from macvo_ros.commands import weights as command
from macvo_ros.errors import WeightsError
from macvo_ros.matching.flowformer.checkpoint import (
    COVARIANCE,
    OFFSETS,
    UNUSED,
    clean_state,
    load_backbone,
    load_checkpoint,
)
from macvo_ros.matching.weights_file import read_tensors, write_safetensors

__all__ = ["one_thread"]

# Shapes are all that matters here, so one number stands for each tensor.
EXPECTED = {
    name: tensor if name == OFFSETS else torch.zeros(1).expand(tensor.shape) for name, tensor in named_state().items()
}
NAMES = sorted(EXPECTED)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file as the authors publish it: prefix, unused tensors, no offsets."""
    state = {f"module.{name}": tensor for name, tensor in named_state().items() if name != OFFSETS}
    state |= {f"module.{name}": torch.zeros(3) for name in UNUSED}
    path = tmp_path_factory.mktemp("weights") / "authors.pth"
    torch.save(state, path)
    return path


def test_known_differences_are_accepted(checkpoint: Path) -> None:
    assert len(UNUSED) == 7
    loaded = load_checkpoint(checkpoint).state_dict()
    assert all(torch.equal(loaded[name], tensor) for name, tensor in named_state().items())


def test_every_tensor_is_missed_by_name() -> None:
    for name in NAMES:
        state = {other: tensor for other, tensor in EXPECTED.items() if other != name}
        if name == OFFSETS:
            assert clean_state(state, EXPECTED).keys() == EXPECTED.keys()
            continue
        with pytest.raises(WeightsError, match=re.escape(name) + "( missing)?[;,: ]"):
            clean_state(state, EXPECTED)


def test_every_renamed_tensor_is_named() -> None:
    for name in NAMES:
        state = {(f"{other}_" if other == name else other): tensor for other, tensor in EXPECTED.items()}
        with pytest.raises(WeightsError, match=f"unknown {re.escape(name)}_"):
            clean_state(state, EXPECTED)


def test_every_reshaped_tensor_is_named() -> None:
    for name in NAMES:
        shape = (*EXPECTED[name].shape, 2)
        with pytest.raises(WeightsError, match=f"{re.escape(name)} should have the shape"):
            clean_state({**EXPECTED, name: torch.zeros(1).expand(shape)}, EXPECTED)


@given(name=st.text(min_size=1).filter(lambda text: text not in EXPECTED and text not in UNUSED))
@settings(max_examples=30, deadline=None)
def test_every_extra_tensor_is_named(name: str) -> None:
    with pytest.raises(WeightsError) as caught:
        clean_state({**EXPECTED, name: torch.zeros(1)}, EXPECTED)
    assert name in str(caught.value)


@given(name=st.sampled_from(NAMES), bad=st.sampled_from([float("nan"), float("inf")]))
@settings(max_examples=6, deadline=None)
def test_values_that_are_not_finite_are_refused(name: str, bad: float) -> None:
    with pytest.raises(WeightsError, match=re.escape(name)):
        clean_state({**EXPECTED, name: torch.full(EXPECTED[name].shape, bad)}, EXPECTED)


def test_other_kinds_of_numbers_and_offsets_are_refused() -> None:
    with pytest.raises(WeightsError, match=r"proj.bias should be floating point, it is torch.int64"):
        clean_state({**EXPECTED, "memory_decoder.proj.bias": torch.zeros(256, dtype=torch.int64)}, EXPECTED)
    with pytest.raises(WeightsError, match="look-up offsets"):
        clean_state({**EXPECTED, OFFSETS: torch.zeros(1, 9, 9, 2)}, EXPECTED)
    assert (
        clean_state({**EXPECTED, "memory_decoder.proj.bias": torch.zeros(256).half()}, EXPECTED)[
            "memory_decoder.proj.bias"
        ].dtype
        == torch.float32
    )


def test_a_prefix_on_some_names_only_is_refused() -> None:
    state = dict(EXPECTED)
    state["module.memory_decoder.proj.bias"] = state.pop("memory_decoder.proj.bias")
    with pytest.raises(
        WeightsError, match=r"missing memory_decoder.proj.bias; unknown module.memory_decoder.proj.bias"
    ):
        clean_state(state, EXPECTED)


def test_flowformer_without_covariance_branch(tmp_path: Path) -> None:
    state = {name: tensor for name, tensor in named_state().items() if not name.startswith(COVARIANCE)}
    path = tmp_path / "flowformer.pth"
    torch.save({f"module.{name}": tensor for name, tensor in state.items()}, path)
    with pytest.raises(WeightsError, match="macvo train flowformer"):
        load_checkpoint(path)
    loaded = load_backbone(path).state_dict()
    assert all(torch.equal(loaded[name], tensor) for name, tensor in state.items())


class Evil:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return Path.touch, (Path("ran_code"),)  # type: ignore[return-value]


def test_files_that_are_no_checkpoints_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    cases = {
        "empty.pth": b"",
        "text.pth": b"not a checkpoint at all",
        "pickle.pth": pickle.dumps({"a": 1.5}, protocol=2),
        "text.safetensors": b"not safetensors either, of course",
        "truncated.safetensors": (100).to_bytes(8, "little") + b'{"a":',
    }
    for name, content in cases.items():
        Path(name).write_bytes(content)
        with pytest.raises(WeightsError, match=re.escape(name)):
            load_checkpoint(name)
    torch.save({"a": Evil()}, "evil.pth")
    with pytest.raises(WeightsError, match="could run code"):
        load_checkpoint("evil.pth")
    assert not Path("ran_code").exists()
    for content, message in (
        ([1, 2], "got a list"),
        ({"state_dict": {}}, "'state_dict' is something else"),
        ({}, "missing"),
    ):
        torch.save(content, "odd.pth")
        with pytest.raises(WeightsError, match=message):
            load_checkpoint("odd.pth")
    with pytest.raises(WeightsError, match="does not exist"):
        load_checkpoint("nowhere.pth")
    with pytest.raises(WeightsError, match="is a folder"):
        load_checkpoint(tmp_path)


@given(content=st.binary(max_size=200), suffix=st.sampled_from([".pth", ".safetensors"]))
@settings(max_examples=60, deadline=None)
def test_any_other_bytes_are_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes, suffix: str) -> None:
    path = tmp_path_factory.getbasetemp() / f"bytes{suffix}"
    path.write_bytes(content)
    with pytest.raises(WeightsError):
        load_checkpoint(path)


def test_convert_and_info(checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers())
    output = tmp_path / "flowformer.safetensors"

    def run(*words: str) -> str:
        args = parser.parse_args(["weights", *words])
        assert args.run(args) == 0
        return capsys.readouterr().out

    run("convert", str(checkpoint), str(output))
    converted = read_tensors(output)
    assert converted.keys() == named_state().keys()
    assert all(torch.equal(converted[name], tensor) for name, tensor in named_state().items())
    assert "7 unused tensors" in run("info", str(checkpoint))
    assert "19157555 parameters, complete" in run("info", str(output), "--tensors")
    with pytest.raises(WeightsError, match="ends with"):
        run("convert", str(checkpoint), str(tmp_path / "flowformer.pth"))
    write_safetensors(tmp_path / "other.safetensors", {"a": torch.zeros(2)}, {})
    with pytest.raises(WeightsError, match="missing memory_encoder"):
        run("info", str(tmp_path / "other.safetensors"))
    assert sorted(file.name for file in tmp_path.iterdir()) == ["flowformer.safetensors", "other.safetensors"]
