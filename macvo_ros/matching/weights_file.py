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

"""Files of named tensors: read without ever running code from them, written whole or not at all."""

from __future__ import annotations

import hashlib
import pickle
import re
from collections.abc import Mapping
from pathlib import Path

import safetensors
import safetensors.torch
import torch

from macvo_ros.atomic_write import atomic_write
from macvo_ros.errors import WeightsError


def read_tensors(path: str | Path) -> dict[str, torch.Tensor]:
    """Tensors by name of a .safetensors file or of a PyTorch checkpoint (a flat dict of tensors), on the CPU."""
    path = Path(path)
    if path.is_dir() or not path.exists():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise WeightsError(f"{path} {what}; give the path of a checkpoint (.pth, .pt or .safetensors)")
    return _read_safetensors(path) if path.suffix == ".safetensors" else _read_torch(path)


def read_metadata(path: str | Path) -> dict[str, str]:
    """What a .safetensors file says of itself; empty for other files."""
    if Path(path).suffix != ".safetensors":
        return {}
    with safetensors.safe_open(str(path), framework="pt") as file:
        return dict(file.metadata() or {})


def write_safetensors(path: str | Path, tensors: Mapping[str, torch.Tensor], metadata: dict[str, str]) -> None:
    """Write named tensors atomically."""
    contiguous = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    atomic_write(path, safetensors.torch.save(contiguous, metadata))


def sha256(path: str | Path) -> str:
    """Hexadecimal SHA-256 of a file."""
    digest = hashlib.sha256()
    with Path(path).open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _read_safetensors(path: Path) -> dict[str, torch.Tensor]:
    try:
        return dict(safetensors.torch.load_file(str(path)))
    except (safetensors.SafetensorError, OSError, ValueError) as error:
        raise WeightsError(
            f"{path} is not a safetensors file ({_short(error)}); convert or download it again"
        ) from None


def _read_torch(path: Path) -> dict[str, torch.Tensor]:
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        found = re.search(r"(?:GLOBAL|global) `?([\w.]+)", str(error))
        what = f"it calls {found[1]}" if found else "it is damaged or no checkpoint at all"
        raise WeightsError(
            f"{path} was refused: {what}; only files of plain tensors are read, since others could run code; ask for "
            "the state dict by itself"
        ) from None
    except Exception as error:  # damaged bytes make the reader fail in any way
        raise WeightsError(
            f"{path} is not a PyTorch checkpoint ({type(error).__name__}: {_short(error)}); download it again"
        ) from None
    if not isinstance(content, Mapping):
        raise WeightsError(f"{path}: expected a dict of named tensors, got a {type(content).__name__}")
    odd = [repr(name) for name, value in content.items() if not (isinstance(name, str) and torch.is_tensor(value))]
    if odd:
        raise WeightsError(
            f"{path}: expected named tensors only, but {listed(odd)} is something else; save the network's state dict "
            "by itself"
        )
    return dict(content)


def listed(names: list[str], most: int = 4) -> str:
    """Some names, and how many more there are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _short(error: Exception) -> str:
    return (" ".join(str(error).split()) or type(error).__name__)[:120]
