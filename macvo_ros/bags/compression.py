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

"""Unpack what recorders pack: zstd files, zstd and lz4 chunks."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from macvo_ros.errors import SequenceError


def decompress_chunk(data: bytes, compression: str) -> bytes:
    """The bytes of an mcap chunk: compression is "", "zstd" or "lz4"."""
    if compression == "":
        return data
    if compression == "zstd":
        return bytes(_zstd().decompress(data))
    if compression == "lz4":
        from lz4.frame import decompress  # type: ignore[import-untyped]  # comes with rosbags

        return bytes(decompress(data))
    raise SequenceError(f"mcap chunks compressed by {compression!r} cannot be read; expected zstd, lz4 or none")


def decompress_file(path: Path, folder: Path) -> Path:
    """Unpack `name.db3.zstd` into `folder` and return the path of `name.db3` there."""
    target = folder / path.name.removesuffix(".zstd")
    try:
        with _zstd().open(path, "rb") as packed, target.open("wb") as plain:
            shutil.copyfileobj(packed, plain)
    except Exception as error:
        raise SequenceError(f"{path} cannot be unpacked: {error}; is the file complete?") from error
    return target


def _zstd() -> Any:
    """Whichever zstd module came with this Python or with rosbags."""
    for name in ("compression.zstd", "backports.zstd", "zstandard"):
        try:
            return __import__(name, fromlist=["open"])
        except ImportError:
            continue
    raise SequenceError("this bag is compressed by zstd; install a reader: pip install backports.zstd")
