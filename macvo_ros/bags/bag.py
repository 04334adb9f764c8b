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

"""Open any recording: a ROS 1 .bag, a ROS 2 folder, single .db3 or .mcap files, compressed or cut short."""

from __future__ import annotations

import heapq
import re
import shutil
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rosbags.rosbag1 import Reader as Ros1Reader
from rosbags.rosbag2 import Reader as Ros2Reader
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from macvo_ros.bags.compression import decompress_file
from macvo_ros.bags.mcap_scan import McapScan
from macvo_ros.errors import SequenceError

_STORED = re.compile(r"\.(bag|db3|mcap)(\.zstd)?$")
_TRANSFORMS = "geometry_msgs/TransformStamped[] transforms\n"
_ROS1_TYPES = {"tf2_msgs/msg/TFMessage": _TRANSFORMS, "tf/msg/tfMessage": _TRANSFORMS}
"""Definitions that every ROS 1 has and the reader's collection of them lacks."""


@dataclass(frozen=True)
class Topic:
    """One topic of a bag: name, message type ("sensor_msgs/msg/Image"), number of messages."""

    name: str
    type: str
    count: int


@dataclass(frozen=True)
class Message:
    """One message as stored: its topic, when it was recorded (nanoseconds) and its serialised bytes."""

    topic: str
    recorded: int
    raw: bytes


def is_bag(path: Path) -> bool:
    """Whether a path looks like a recording: a bag file, or a folder that holds some."""
    if path.is_dir():
        return (path / "metadata.yaml").is_file() or bool(_stored_files(path))
    return path.is_file() and _STORED.search(path.name) is not None


class Bag:
    """An open recording; use it in a `with`.

    Types come from the definitions every ROS shares, not from those stored in the bag: a bag recorded without them, or
    with other messages nobody can parse, reads as well as any.
    ros1: whether messages are serialised as in ROS 1.
    damage: sentences about parts that could not be read (a recorder that was killed); empty for a sound bag.
    """

    def __init__(self, path: str | Path) -> None:
        """Open `path`; raises SequenceError with a sentence when it is no bag."""
        self.path = Path(path)
        self.damage: list[str] = []
        self._stack = ExitStack()
        try:
            self._readers = [self._open(file) for file in self._files()]
        except BaseException:
            self._stack.close()
            raise
        kinds = {isinstance(reader, Ros1Reader) for reader in self._readers}
        if len(kinds) > 1:
            raise SequenceError(f"{self.path} holds both ROS 1 and ROS 2 bags; name one of the files")
        self.ros1 = kinds == {True}
        self._types = get_typestore(Stores.ROS1_NOETIC if self.ros1 else Stores.ROS2_JAZZY)
        if self.ros1:
            for name, definition in _ROS1_TYPES.items():
                self._types.register(get_types_from_msg(definition, name))

    def __enter__(self) -> Bag:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the files and remove what was unpacked."""
        self._stack.close()

    @property
    def topics(self) -> dict[str, Topic]:
        """The topics by name, sorted; without those whose names damage has made unreadable."""
        counts: Counter[str] = Counter()
        types: dict[str, str] = {}
        for reader in self._readers:
            for connection in reader.connections:
                if not connection.topic.isprintable() or " " in connection.topic:
                    continue
                counts[connection.topic] += connection.msgcount
                types[connection.topic] = connection.msgtype
        return {name: Topic(name, types[name], counts[name]) for name in sorted(types)}

    def messages(self, topics: Collection[str], start: int | None = None) -> Iterator[Message]:
        """Messages of `topics` in the order of recording, from `start` (nanoseconds of recording) on."""
        streams = [self._stream(reader, topics, start) for reader in self._readers]
        return heapq.merge(*streams, key=lambda message: message.recorded) if len(streams) > 1 else streams[0]

    def deserialize(self, raw: bytes, type: str) -> Any:
        """The message of a standard type; raises SequenceError when the bytes are not one."""
        try:
            if self.ros1:
                return self._types.deserialize_ros1(raw, type)
            return self._types.deserialize_cdr(raw, type)
        except Exception as error:  # the generated deserialisers let whatever happens escape
            raise SequenceError(
                f"{self.path}: a {type} message of {len(raw)} bytes is malformed ({short(error)})"
            ) from None

    def stamp(self, raw: bytes) -> int:
        """Nanoseconds in the std_msgs/Header a message begins with, read without deserialising the rest."""
        if len(raw) < 12:
            raise SequenceError(f"{self.path}: a message of {len(raw)} bytes is too short to have a header")
        order: Any = "little" if self.ros1 or raw[1] & 1 else "big"  # CDR says its byte order in its second byte
        return int.from_bytes(raw[4:8], order) * 1_000_000_000 + int.from_bytes(raw[8:12], order)

    def _stream(self, reader: Any, topics: Collection[str], start: int | None) -> Iterator[Message]:
        connections = [connection for connection in reader.connections if connection.topic in topics]
        if not connections:
            return
        try:
            for connection, recorded, raw in reader.messages(connections, start=start):
                yield Message(connection.topic, recorded, raw)
        except SequenceError:
            raise
        except Exception as error:  # rosbags raises many kinds on a damaged file
            raise SequenceError(f"{reader.path} is damaged: {short(error)}; record it again") from error

    def _files(self) -> list[Path]:
        """What to open: the folder itself where it has its metadata, else its files in order of their numbers."""
        if not self.path.exists():
            raise SequenceError(f"{self.path} does not exist; give a .bag, .db3 or .mcap file or a ROS 2 bag folder")
        if self.path.is_dir() and (self.path / "metadata.yaml").is_file():
            return [self.path]
        files = _stored_files(self.path) if self.path.is_dir() else [self.path]
        if not files or not all(_STORED.search(file.name) for file in files):
            raise SequenceError(f"{self.path} is not a bag: expected .bag, .db3 or .mcap files or a ROS 2 bag folder")
        return files

    def _open(self, path: Path) -> Any:
        if path.name.endswith(".zstd"):
            path = decompress_file(path, self._scratch())
        if path.suffix == ".db3":
            path = self._with_journal(path)
        try:
            reader: Any = Ros1Reader(path) if path.suffix == ".bag" else Ros2Reader(path)
            reader.open()
        except Exception as error:
            if path.is_dir() and list(path.glob("*.mcap")):
                self.damage.append(f"{path.name}: metadata.yaml is unusable ({short(error)})")
                reader = McapScan(sorted(path.glob("*.mcap"), key=_natural)[0])
            elif path.suffix == ".mcap":
                reader = McapScan(path)
            else:
                hint = "; try `rosbag reindex`" if path.suffix == ".bag" else ""
                raise SequenceError(f"{path} cannot be opened: {short(error)}{hint}") from error
            reader.open()
            self.damage += reader.damage
        self._stack.callback(reader.close)
        return reader

    def _with_journal(self, path: Path) -> Path:
        """A killed recorder leaves its last messages in a journal beside the database: fold it in, on a copy."""
        journal = path.with_name(path.name + "-wal")
        if not journal.is_file() or not journal.stat().st_size:
            return path
        scratch = self._scratch()
        for file in (path, journal):
            shutil.copy(file, scratch / file.name)
        connection = sqlite3.connect(scratch / path.name)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("PRAGMA journal_mode=DELETE")
        connection.close()
        self.damage.append(f"{path.name} was not closed by its recorder; its journal was read too")
        return scratch / path.name

    def _scratch(self) -> Path:
        return Path(self._stack.enter_context(TemporaryDirectory(prefix="macvo_bag_")))


def short(error: BaseException) -> str:
    """The text of an error in one line; its class name when it has none of its own."""
    return (" ".join(str(error).split()) or type(error).__name__)[:300]


def _stored_files(folder: Path) -> list[Path]:
    return sorted((file for file in folder.iterdir() if _STORED.search(file.name)), key=_natural)


def _natural(path: Path) -> list[tuple[int, str]]:
    """Sort key in which bag_2 comes before bag_10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", path.name)]
