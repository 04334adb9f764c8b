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

"""How inputs are damaged, and where damaged files lie."""

from __future__ import annotations

import math
import random
import tempfile
from functools import cache
from pathlib import Path

WORDS = [
    b"", b"\n", b"nan", b"inf", b"-inf", b"1e309", b"-1", b"0", b",,,", b"0 " * 12, b"\xff\xfe", b"\x00" * 30, b"#",
    b"9" * 400, b"&a [*a]", b"&a {x: *a}", b"!!python/object/apply:os.system [id]", b"2001-99-99", b"{", b"]", b"? [1]",
    b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x80\x00\x00\x00", b"!!binary x", b"0x7fffffffffffffff", b"~", b"<<: 3",
]  # fmt: skip
NUMBERS = [0.0, -0.0, 1.0, -1.0, 0.12, 320.0, 1e-300, 1e-12, 1e12, 1e300, -1e300, math.nan, math.inf, -math.inf]


def mutated(rng: random.Random, content: bytes) -> bytes:
    """One to four edits: bits, bytes, cuts, doublings, words that mean something to some parser."""
    data = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        at = rng.randint(0, len(data))
        kind = rng.randrange(6)
        if kind == 0 and data:
            data[at % len(data)] ^= 1 << rng.randrange(8)
        elif kind == 1 and data:
            data[at % len(data)] = rng.randrange(256)
        elif kind == 2:
            del data[at : at + rng.randint(1, 40)]
        elif kind == 3:
            data[at:at] = data[at : at + rng.randint(1, 60)]
        elif kind == 4:
            word = rng.choice(WORDS)
            data[at : at + rng.choice([0, len(word), 4])] = word
        else:
            del data[at:]
    return bytes(data)


def number(rng: random.Random) -> float:
    return rng.choice(NUMBERS) if rng.random() < 0.5 else rng.gauss(0, 10.0 ** rng.randint(-3, 6))


@cache
def scratch() -> Path:
    """A folder for the files of this process; removed at its end."""
    folder = tempfile.TemporaryDirectory(prefix="macvo_fuzz_")
    _KEPT.append(folder)
    return Path(folder.name)


_KEPT: list[object] = []


def written(name: str, content: bytes) -> Path:
    path = scratch() / name
    path.write_bytes(content)
    return path
