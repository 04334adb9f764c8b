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

"""Bags of every kind read as the same stereo sequence; damaged ones as far as they go."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import shutil
import sqlite3
from types import SimpleNamespace

import numpy as np
import pytest
from bag_making import CAMERA, PERIOD, START, TOPICS, picture, write_ros1, write_ros2
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer

from macvo_ros.bags.bag import Bag, is_bag
from macvo_ros.errors import MacvoError, SequenceError
from macvo_ros.sequences.bag import BagOptions, BagSequence


def assert_whole(sequence: BagSequence, count: int = 6) -> None:
    """Every frame is there, in order, to the bit and the nanosecond."""
    assert len(sequence) == count
    assert sequence.camera == CAMERA
    np.testing.assert_array_equal(sequence.stamps, START + PERIOD * np.arange(count))
    for index in range(count):
        frame = sequence[index]
        assert frame.stamp == START + PERIOD * index
        np.testing.assert_array_equal(frame.left, picture(index, "left"))
        np.testing.assert_array_equal(frame.right, picture(index, "right"))


def repacked(source, target, storage, mode):
    """A copy of a bag with zstd by file or by message, as `ros2 bag record --compression-mode` leaves it."""
    with Bag(source) as bag:
        writer = Writer(target, version=8, storage_plugin=storage)
        writer.set_compression(mode, CompressionFormat.ZSTD)
        with writer:
            connections = {
                name: writer.add_connection(name, topic.type, typestore=bag._types)
                for name, topic in bag.topics.items()
            }
            for message in bag.messages(list(connections)):
                writer.write(connections[message.topic], message.recorded, message.raw)
    return target


@pytest.mark.parametrize("storage", ["mcap", "sqlite3"])
def test_ros2_folder_and_single_file(tmp_path, storage):
    folder = write_ros2(tmp_path / "rec", storage=storage)
    (file,) = [path for path in folder.iterdir() if path.suffix in (".mcap", ".db3")]
    for path in (folder, file):
        assert is_bag(path)
        with BagSequence(path) as sequence:
            assert_whole(sequence)
            assert sequence.notes == []
            assert sequence.frame_id == "left_optical"


@pytest.mark.parametrize(
    ("storage", "mode"),
    [
        *itertools.product(StoragePlugin, (CompressionMode.FILE, CompressionMode.MESSAGE)),
        (StoragePlugin.MCAP, CompressionMode.STORAGE),  # sqlite3 has no compression of its own
    ],
)
def test_ros2_compressed_by_zstd(tmp_path, storage, mode):
    folder = repacked(write_ros2(tmp_path / "plain"), tmp_path / "packed", storage, mode)
    with BagSequence(folder) as sequence:
        assert_whole(sequence)
    if mode is CompressionMode.FILE:
        (folder / "metadata.yaml").unlink()
        with BagSequence(folder) as sequence:
            assert_whole(sequence)


@pytest.mark.parametrize("compression", [None, "BZ2", "LZ4"])
def test_ros1(tmp_path, compression):
    with BagSequence(write_ros1(tmp_path / "rec.bag", compression=compression)) as sequence:
        assert_whole(sequence)


@pytest.mark.parametrize("storage", ["mcap", "sqlite3"])
def test_folder_without_metadata(tmp_path, storage):
    folder = write_ros2(tmp_path / "rec", storage=storage)
    (folder / "metadata.yaml").unlink()
    assert is_bag(folder)
    with BagSequence(folder) as sequence:
        assert_whole(sequence)


def test_split_folder_without_metadata_is_read_in_order_of_the_numbers(tmp_path):
    """Eleven files of one frame each: _10 comes after _9."""
    folder = tmp_path / "rec"
    folder.mkdir()
    for index in range(11):
        part = write_ros2(tmp_path / f"part_{index}", count=index + 1)
        with Bag(part) as bag:
            writer = Writer(tmp_path / f"rec_{index}", version=8, storage_plugin=StoragePlugin.MCAP)
            with writer:
                connections = {n: writer.add_connection(n, t.type, typestore=bag._types) for n, t in bag.topics.items()}
                for message in bag.messages(list(connections), start=START + index * PERIOD):
                    writer.write(connections[message.topic], message.recorded, message.raw)
        shutil.move(tmp_path / f"rec_{index}" / f"rec_{index}.mcap", folder)
    with BagSequence(folder) as sequence:
        assert_whole(sequence, 11)


def test_cut_mcap_gives_everything_before_the_cut(tmp_path):
    """A killed recorder: no index, no footer, the last record incomplete; metadata.yaml was never written."""
    folder = write_ros2(tmp_path / "rec", count=1500)
    file = folder / "rec.mcap"
    content = file.read_bytes()
    file.write_bytes(content[: len(content) * 3 // 4])
    (folder / "metadata.yaml").unlink()
    for path in (folder, file):
        with BagSequence(path) as sequence:
            assert 700 < len(sequence) < 1200
            assert any("ends inside a record" in note for note in sequence.notes)
            last = len(sequence) - 1
            for index in (0, last, 3):
                np.testing.assert_array_equal(sequence[index].left, picture(index, "left"))


def test_database_whose_recorder_was_killed(tmp_path):
    """The last messages are still in the journal beside the database."""
    folder = write_ros2(tmp_path / "rec", storage="sqlite3")
    live = sqlite3.connect(folder / "rec.db3")
    live.execute("PRAGMA journal_mode=WAL")
    live.execute("PRAGMA wal_autocheckpoint=0")
    live.execute("UPDATE messages SET data = data")  # rewrites all, into the journal
    live.execute("DELETE FROM messages WHERE timestamp > ?", (START + 4 * PERIOD + 2000,))
    live.commit()
    copy = tmp_path / "killed"
    copy.mkdir()
    for name in ("rec.db3", "rec.db3-wal"):
        shutil.copy(folder / name, copy)
    live.close()
    with BagSequence(copy) as sequence:
        assert_whole(sequence, 5)
        assert any("journal" in note for note in sequence.notes)


def test_frames_in_any_order_and_slices(tmp_path):
    with BagSequence(write_ros2(tmp_path / "rec", count=70)) as sequence:
        for index in (0, 1, 2, 69, 5, 5, 4, -1, 30):
            np.testing.assert_array_equal(sequence[index].left, picture(index % 70, "left"))
        every_third = sequence.sliced((3, 20), 3)
        assert list(every_third.stamps) == list(sequence.stamps[3:20:3])
        for index in range(len(every_third)):
            np.testing.assert_array_equal(every_third[index].right, picture(3 + 3 * index, "right"))
        with pytest.raises(SequenceError, match="none of them in 80:90"):
            sequence.sliced((80, 90))
        with pytest.raises(IndexError):
            sequence[70]


@pytest.mark.parametrize("kind", ["png"])
def test_compressed_images(tmp_path, kind):
    topics = {side: f"{TOPICS[side]}/compressed" for side in ("left", "right")}
    with BagSequence(write_ros2(tmp_path / "rec", topics=topics, compressed=kind)) as sequence:
        assert_whole(sequence)


def test_images_without_a_partner_are_counted(tmp_path):
    with BagSequence(write_ros2(tmp_path / "rec", skip_right=(1, 4))) as sequence:
        assert len(sequence) == 4
        assert sequence.notes == ["2 left images have no partner and were left out"]
        np.testing.assert_array_equal(sequence[1].right, picture(2, "right"))


def test_stamps_that_never_pair_name_the_gap_and_the_cure(tmp_path):
    path = write_ros2(tmp_path / "rec", right_delay=4_000_000)
    with pytest.raises(SequenceError, match=r"4\.000 ms apart.*--approximate-sync 6"):
        BagSequence(path)
    with BagSequence(path, BagOptions(tolerance=6_000_000)) as sequence:
        assert_whole(sequence)


def test_unusable_images_are_left_out_and_counted(tmp_path):
    def damage(index, side, message):
        if index == 2:
            message.encoding = "yuv422"
        if index == 3 and side == "right":
            message.data = message.data[:-5]
        if index == 4:
            message.height, message.data = 12, message.data[: 12 * 32]

    with BagSequence(write_ros2(tmp_path / "rec", change=damage)) as sequence:
        assert list(sequence.stamps) == [START + PERIOD * index for index in (0, 1, 5)]
        text = " ".join(sequence.notes)
        assert "2 images were left out: image encoding 'yuv422'" in text
        assert "1 images were left out: image data is truncated" in text
        assert "32x12 but the calibration is for 32x24" in text


def test_repeated_stamps_are_counted(tmp_path):
    def repeat(index, side, message):
        if index == 3:
            message.header.stamp.nanosec = (START + 2 * PERIOD) % 10**9

    with BagSequence(write_ros2(tmp_path / "rec", change=repeat)) as sequence:
        assert len(sequence) == 5
        assert "2 images repeat the stamp of another and were left out" in sequence.notes
        np.testing.assert_array_equal(sequence[2].left, picture(2, "left"))


def test_a_second_run_in_the_bag_is_refused(tmp_path):
    def earlier(index, side, message):
        if index == 5:
            message.header.stamp.sec -= 100

    with pytest.raises(SequenceError, match=r"go back by 100\.\d s"):
        BagSequence(write_ros2(tmp_path / "rec", change=earlier))


def test_no_camera_info_asks_for_a_calibration(tmp_path):
    path = write_ros2(tmp_path / "rec", info=False)
    with pytest.raises(SequenceError, match=r"no camera_info for /stereo/left/image_rect.*--calibration"):
        BagSequence(path)
    calibration = tmp_path / "calib.yaml"
    fields = {k: v for k, v in dataclasses.asdict(CAMERA).items() if v is not None}
    calibration.write_text("\n".join(f"{key}: {value}" for key, value in fields.items()))
    with BagSequence(path, BagOptions(calibration=calibration)) as sequence:
        assert_whole(sequence)
    with pytest.raises(SequenceError, match="describes rectified images"):
        BagSequence(path, BagOptions(calibration=calibration, rectify=True))


def test_raw_topics_are_rectified_by_their_camera_info(tmp_path):
    """Undistorted images through an identity rectification stay what they are, and the user is told."""
    topics = {side: f"/stereo/{side}/image_raw" for side in ("left", "right")}
    path = write_ros2(tmp_path / "rec", topics=topics)
    with BagSequence(path) as sequence:
        assert sequence.input.rectifier is not None
        assert "looks unrectified" in sequence.notes[0]
        assert_whole(sequence)
    with BagSequence(path, BagOptions(rectify=False)) as sequence:
        assert sequence.input.rectifier is None
        assert_whole(sequence)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("nothing.bag", None, "does not exist"),
        ("note.txt", b"hello", "is not a bag"),
        ("broken.bag", b"#ROSBAG V2.0\nrubbish", "cannot be opened"),
        ("empty.db3", b"", "cannot be opened"),
        ("broken.mcap", b"rubbish", "does not begin as one"),
        ("broken.db3.zstd", b"rubbish", "cannot be unpacked"),
    ],
)
def test_what_is_no_bag_is_refused_by_a_sentence(tmp_path, name, content, words):
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SequenceError, match=words):
        BagSequence(path)


@pytest.mark.parametrize("storage", ["mcap", "sqlite3"])
def test_random_damage_gives_frames_or_a_sentence(tmp_path, storage):
    """Whatever bytes are flipped, the answer is frames or a MacvoError, nothing else."""
    folder = write_ros2(tmp_path / "rec", storage=storage)
    (file,) = [path for path in folder.iterdir() if path.suffix in (".mcap", ".db3")]
    content = file.read_bytes()
    rng = np.random.default_rng(5)
    for _ in range(25):
        damaged = np.frombuffer(content, np.uint8).copy()
        damaged[rng.integers(0, len(damaged), 12)] ^= 0xFF
        file.write_bytes(damaged.tobytes())
        with contextlib.suppress(MacvoError), BagSequence(file) as sequence:
            assert len([sequence[index] for index in range(len(sequence))]) <= 6


def test_topics_with_unreadable_names_are_left_out(tmp_path):
    with Bag(write_ros2(tmp_path / "rec")) as bag:
        names = set(bag.topics)
        broken = [
            SimpleNamespace(topic=name, msgcount=1, msgtype="sensor_msgs/msg/Image") for name in ("/a\nb", "/\0", "/ ")
        ]
        bag._readers.append(SimpleNamespace(connections=broken))
        assert set(bag.topics) == names
