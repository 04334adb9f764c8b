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

"""Whatever happens to one file of a dataset, reading it ends in frames or in one of our own errors."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

import numpy as np
import pytest
import tiny_datasets
from hypothesis import given, settings
from hypothesis import strategies as st

from macvo_ros.errors import MacvoError
from macvo_ros.sequences import open_sequence

GARBAGE = st.binary(max_size=40) | st.sampled_from(
    [b"", b"\n", b"nan", b"1e309", b"-1", b",,,", b"0 " * 12, b"\xff\xfe", b"\x00" * 30, b"#", b"1.5e18", b"9" * 400]
)


@pytest.mark.parametrize("layout", list(tiny_datasets.WRITERS))
def test_one_broken_file(tmp_path_factory: pytest.TempPathFactory, layout: str) -> None:
    whole = tmp_path_factory.mktemp("whole")
    tiny_datasets.WRITERS[layout](whole, count=3)
    files = sorted(file.relative_to(whole) for file in whole.rglob("*") if file.is_file())
    broken = tmp_path_factory.mktemp("broken")

    @settings(max_examples=60, deadline=None, derandomize=True)
    @given(st.sampled_from(files), st.data())
    def run(file: Path, data: st.DataObject) -> None:
        shutil.rmtree(broken)
        shutil.copytree(whole, broken)
        content = (broken / file).read_bytes()
        start = data.draw(st.integers(0, len(content)))
        end = data.draw(st.integers(start, min(len(content), start + 30)) | st.just(len(content)))
        (broken / file).write_bytes(content[:start] + data.draw(GARBAGE) + content[end:])
        try:
            sequence = open_sequence(broken)
            frames = [sequence[index] for index in range(len(sequence))]
        except MacvoError as error:
            message = str(error)
        else:
            message = ""
        assert "\n" not in message  # it is printed as one line
        if message:
            return
        assert frames
        assert np.isfinite(sequence.camera.K).all()
        if sequence.ground_truth is not None:
            assert np.isfinite(sequence.ground_truth).all()

    run()


@pytest.mark.parametrize("layout", list(tiny_datasets.WRITERS))
def test_a_file_where_a_folder_should_be_and_the_reverse(tmp_path: Path, layout: str) -> None:
    tiny_datasets.WRITERS[layout](tmp_path / "whole", count=2)
    entries = sorted(entry.relative_to(tmp_path / "whole") for entry in (tmp_path / "whole").rglob("*"))
    for entry in entries:
        broken = tmp_path / "broken"
        shutil.copytree(tmp_path / "whole", broken)
        if (broken / entry).is_dir():
            shutil.rmtree(broken / entry)
            (broken / entry).write_text("")
        else:
            (broken / entry).unlink()
            (broken / entry).mkdir()
        with contextlib.suppress(MacvoError):  # anything else fails the test
            sequence = open_sequence(broken)
            for index in range(len(sequence)):
                sequence[index]
        shutil.rmtree(broken)
