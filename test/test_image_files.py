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

"""Image files: which belong together, and which cannot be used."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
import tiny_datasets

from macvo_ros.cli import main
from macvo_ros.errors import SequenceError
from macvo_ros.sequences import open_sequence
from macvo_ros.sequences.image_files import read_image


@pytest.mark.parametrize("layout", list(tiny_datasets.WRITERS))
def test_a_missing_image_is_named(tmp_path: Path, layout: str) -> None:
    tiny_datasets.WRITERS[layout](tmp_path, count=4)
    images = sorted(file for file in tmp_path.rglob("*.png") if "poses" not in file.parts)
    images[-1].unlink()
    with pytest.raises(SequenceError, match=images[-1].stem.split("_")[0]):
        open_sequence(tmp_path, strict=True)


@pytest.mark.parametrize("how", ["missing", "cut short", "empty"])
@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("frame", [0, 2])
@pytest.mark.parametrize("layout", list(tiny_datasets.WRITERS))
def test_a_pair_without_both_images_is_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, layout: str, frame: int, side: int, how: str
) -> None:
    """The others keep their images, times and truth; it is counted and named; strict refuses it."""
    tiny_datasets.WRITERS[layout](tmp_path, count=5)
    whole = open_sequence(tmp_path)
    rest = [index for index in range(5) if index != frame]
    expected = [whole[index].left for index in rest]
    damaged = (whole.left, whole.right)[side][frame]
    content = damaged.read_bytes()
    damaged.unlink()
    if how != "missing":
        damaged.write_bytes(content[: len(content) // 2] if how == "cut short" else b"")
    caplog.clear()
    sequence = open_sequence(tmp_path)
    np.testing.assert_array_equal(sequence.stamps, whole.stamps[rest])
    np.testing.assert_allclose(sequence.ground_truth, whole.ground_truth[rest], atol=1e-12)
    for index, image in enumerate(expected):
        np.testing.assert_array_equal(sequence[index].left, image)
    (record,) = caplog.records
    assert "left out: 1 pair, 4 remain" in record.getMessage()
    assert damaged.name.split("_")[0] in record.getMessage()
    with pytest.raises(SequenceError, match=damaged.name.split("_")[0]):
        open_sequence(tmp_path, strict=True)


@pytest.mark.parametrize("layout", ["kitti", "tartanair", "folder"])
def test_a_frame_without_any_image_leaves_a_gap(tmp_path: Path, caplog: pytest.LogCaptureFixture, layout: str) -> None:
    tiny_datasets.WRITERS[layout](tmp_path, count=6)
    whole = open_sequence(tmp_path)
    for files in (whole.left, whole.right):
        files[1].unlink()
    whole.left[3].unlink()
    sequence = open_sequence(tmp_path)
    if layout == "tartanair":
        assert sequence.left[1].name.startswith("000002")
    np.testing.assert_array_equal(sequence.stamps, whole.stamps[[0, 2, 4, 5]])
    np.testing.assert_allclose(sequence.ground_truth, whole.ground_truth[[0, 2, 4, 5]], atol=1e-12)
    assert "left out: 2 pairs, 4 remain" in caplog.text
    with pytest.raises(SequenceError):
        open_sequence(tmp_path, strict=True)


def test_a_sequence_of_damaged_images_is_refused(tmp_path: Path) -> None:
    tiny_datasets.kitti(tmp_path, count=3)
    for file in (tmp_path / "sequences/00/image_1").iterdir():
        file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(SequenceError, match=r"000000\.png: the image is cut short"):
        open_sequence(tmp_path)


def test_strict_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tiny_datasets.kitti(tmp_path / "data", count=4)
    (tmp_path / "data/sequences/00/image_1/000002.png").unlink()
    words = ["bag", "--convert", str(tmp_path / "data"), str(tmp_path / "new")]
    assert main([*words, "--strict"]) == 2
    assert "000002.png has no partner" in capsys.readouterr().err
    assert main(words) == 0
    assert "3 frames written" in capsys.readouterr().out


@pytest.mark.parametrize("layout", list(tiny_datasets.WRITERS))
def test_an_image_of_another_size_is_named(tmp_path: Path, layout: str) -> None:
    tiny_datasets.WRITERS[layout](tmp_path, count=4)
    last = sorted(tmp_path.rglob("*.png"))[-1]
    tiny_datasets.save(last, tiny_datasets.image(0, 17, 19))
    with pytest.raises(SequenceError, match=f"{last.name} is 17x19"):
        open_sequence(tmp_path)[3]


@pytest.mark.parametrize("suffix", [".png", ".jpg"])
def test_cut_and_broken_images_are_refused(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"image{suffix}"
    tiny_datasets.save(file, tiny_datasets.image(0, 40, 30, colour=True))
    whole = file.read_bytes()
    assert read_image(file).shape == (30, 40, 3)
    file.write_bytes(whole + b"appended by some phone" * 10)
    assert read_image(file).shape == (30, 40, 3)
    for content in (b"", b"text", *(whole[:length] for length in range(0, len(whole), 97)), whole[:-2]):
        file.write_bytes(content)
        with pytest.raises(SequenceError, match=file.name):
            read_image(file)


def test_sixteen_bit_and_transparent_images_become_eight_bit(tmp_path: Path) -> None:
    grey = tiny_datasets.image(0, 20, 10)
    cv2.imwrite(str(tmp_path / "deep.png"), grey.astype(np.uint16) * 256 + 7)
    np.testing.assert_array_equal(read_image(tmp_path / "deep.png"), grey)
    bgra = np.dstack([tiny_datasets.image(1, 20, 10, colour=True), grey])
    cv2.imwrite(str(tmp_path / "clear.png"), bgra)
    np.testing.assert_array_equal(read_image(tmp_path / "clear.png"), bgra[..., 2::-1])


def test_one_grey_and_one_coloured_eye_become_grey(tmp_path: Path) -> None:
    tiny_datasets.kitti(tmp_path, count=1)
    tiny_datasets.save(tmp_path / "sequences/00/image_1/000000.png", tiny_datasets.image(1, 40, 24, colour=True))
    frame = open_sequence(tmp_path)[0]
    assert frame.left.shape == frame.right.shape == (24, 40)


def test_times_that_go_back_are_refused(tmp_path: Path) -> None:
    tiny_datasets.kitti(tmp_path)
    (tmp_path / "sequences/00/times.txt").write_text("0\n1\n1\n2\n")
    with pytest.raises(SequenceError, match=r"frame 2 .* does not come after frame 1"):
        open_sequence(tmp_path)


def test_two_files_of_one_number_are_refused(tmp_path: Path) -> None:
    tiny_datasets.folder(tmp_path)
    tiny_datasets.save(tmp_path / "left/00.png", tiny_datasets.image(0, 32, 24))
    with pytest.raises(SequenceError, match="same number"):
        open_sequence(tmp_path)
