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

"""Read an mcap file from its beginning, record by record, for as long as it makes sense.

A recorder that was killed leaves a file without index and footer, often cut inside a record. Everything before the cut
is whole, and this reader gives it. It looks like a rosbags reader (connections, messages) to the rest of the code.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from macvo_ros.bags.compression import decompress_chunk
from macvo_ros.errors import SequenceError

MAGIC = b"\x89MCAP0\r\n"
SCHEMA, CHANNEL, MESSAGE, CHUNK, DATA_END = 0x03, 0x04, 0x05, 0x06, 0x0F


@dataclass(frozen=True)
class Connection:
    """A channel of the file, named as rosbags names it."""

    id: int
    topic: str
    msgtype: str
    msgcount: int


class McapScan:
    """Sequential reader of one mcap file. damage: where and why reading stopped early, in sentences."""

    def __init__(self, path: Path) -> None:
        """Remember `path`; `open` scans it."""
        self.path = path
        self.connections: list[Connection] = []
        self.damage: list[str] = []

    def open(self) -> None:
        """Scan the file once for its channels and message counts."""
        schemas: dict[int, str] = {}
        channels: dict[int, tuple[str, str]] = {}
        counts: Counter[int] = Counter()
        for kind, record in self._records():
            try:
                if kind == SCHEMA:
                    schemas[struct.unpack_from("<H", record)[0]] = _text(record, 2)
                elif kind == CHANNEL:
                    channel, schema = struct.unpack_from("<HH", record)
                    channels[channel] = (_text(record, 4), schemas.get(schema, ""))
                elif kind == MESSAGE:
                    counts[struct.unpack_from("<H", record)[0]] += 1
            except struct.error:
                self.damage.append(f"{self.path.name}: a record of {len(record)} bytes is too short and was left out")
        if not channels:
            reason = f" ({self.damage[0]})" if self.damage else ""
            raise SequenceError(f"{self.path} holds no messages that can be read{reason}; record it again")
        self.connections = [Connection(key, *channel, counts[key]) for key, channel in sorted(channels.items())]

    def close(self) -> None:
        """Nothing stays open between calls."""

    def messages(
        self, connections: Collection[Connection], start: int | None = None
    ) -> Iterator[tuple[Connection, int, bytes]]:
        """Messages of `connections` in the order of the file, recorded at `start` (nanoseconds) or later."""
        wanted = {connection.id: connection for connection in connections}
        for kind, record in self._records():
            if kind == MESSAGE and len(record) >= 22:
                channel, _, recorded = struct.unpack_from("<HIQ", record)
                if channel in wanted and (start is None or recorded >= start):
                    yield wanted[channel], recorded, record[22:]

    def _records(self) -> Iterator[tuple[int, bytes]]:
        """Kind and content of each whole record, chunks opened; stops at the first one that is not whole."""
        self.damage = []
        with self.path.open("rb") as file:
            if file.read(len(MAGIC)) != MAGIC:
                raise SequenceError(f"{self.path} is not an mcap file: it does not begin as one")
            for kind, record in self._read(file):
                if kind != CHUNK:
                    yield kind, record
                    continue
                try:
                    inside = BytesIO(_chunk(record))
                except Exception as error:
                    self.damage.append(f"{self.path.name}: a chunk of {len(record)} bytes is damaged ({error})")
                    continue
                yield from self._read(inside)

    def _read(self, file: BinaryIO) -> Iterator[tuple[int, bytes]]:
        while True:
            at = file.tell()
            head = file.read(9)
            if not head or head[0] == DATA_END:
                return
            length = int.from_bytes(head[1:], "little")
            record = file.read(length) if len(head) == 9 and length < 1 << 32 else b""
            if len(head) < 9 or len(record) < length:
                self.damage.append(f"{self.path.name} ends inside a record at byte {at}: everything before it was read")
                return
            yield head[0], record


def _text(record: bytes, at: int) -> str:
    length = int(struct.unpack_from("<I", record, at)[0])
    return record[at + 4 : at + 4 + length].decode(errors="replace")


def _chunk(record: bytes) -> bytes:
    """The records inside a chunk: times, size, checksum, compression, then the data."""
    compression = _text(record, 28)
    at = 32 + len(compression)
    (length,) = struct.unpack_from("<Q", record, at)
    return decompress_chunk(record[at + 8 : at + 8 + length], compression)
