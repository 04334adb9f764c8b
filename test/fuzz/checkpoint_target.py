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

"""Files of weights, damaged and hostile: reading them must never run code from them."""

from __future__ import annotations

import io
import pickle
import random
import zipfile
from functools import cache
from pathlib import Path

import safetensors.torch
import torch
from damage import mutated, scratch, written

from macvo_ros.matching.flowformer.checkpoint import clean_state
from macvo_ros.matching.weights_file import read_metadata, read_tensors

_TENSORS = {"a.weight": torch.ones(2, 3), "b": torch.zeros(1)}


class Bomb:
    """Unpickling this would write a file."""

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return (Path.touch, (executed(),))


def executed() -> Path:
    """The file that exists once code from a checkpoint or bag has run."""
    return scratch() / "executed"


@cache
def _checkpoints() -> tuple[tuple[str, bytes], ...]:
    tensors = _TENSORS
    made = []
    for content in (tensors, tensors | {"c": Bomb()}, Bomb()):
        buffer = io.BytesIO()
        torch.save(content, buffer)
        made.append((".pth", buffer.getvalue()))
    old = io.BytesIO()
    torch.save(tensors, old, _use_new_zipfile_serialization=False)
    made += [(".pth", old.getvalue()), (".pt", pickle.dumps(Bomb())), (".safetensors", safetensors.torch.save(tensors))]
    made.append((".safetensors", safetensors.torch.save(tensors, {"name": "x"})))
    return tuple(made)


def _rezipped(rng: random.Random, content: bytes) -> bytes:
    """Damage inside the archive, its checksums made right again."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as before, zipfile.ZipFile(out, "w") as after:
        names = before.namelist()
        hit = rng.choice(names)
        for name in names:
            data = before.read(name)
            after.writestr(name, mutated(rng, data) if name == hit else data)
    return out.getvalue()


def checkpoint(rng: random.Random) -> None:
    """Damaged and hostile files of weights."""
    suffix, content = rng.choice(_checkpoints())
    if content.startswith(b"PK") and rng.random() < 0.7:
        content = _rezipped(rng, content)
    elif rng.random() < 0.95:
        content = mutated(rng, content)
    path = written(f"weights{suffix}", content)
    try:
        tensors = read_tensors(path)
        read_metadata(path)
        clean_state(tensors, {**_TENSORS, "memory_decoder.delta": torch.zeros(1)})
    finally:
        assert not executed().exists(), "loading weights ran code from the file"
