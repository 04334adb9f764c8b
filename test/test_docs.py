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

"""The pages of docs/: current where they are generated, complete where they promise it, and no dead link."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import yaml

from macvo_ros import __version__
from macvo_ros.cli import command_names
from macvo_ros.odometry.stereo_odometry import StereoOdometry
from macvo_ros.rendering.sequence import RenderedSequence

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])


def test_parameters_page_is_current() -> None:
    script = ROOT / "tools" / "write_parameters.py"
    check = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True, check=False)
    assert check.returncode == 0, check.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        address, _, anchor = target.partition("#")
        if re.match(r"[a-z]+:", address):
            continue
        file = (page.parent / address).resolve() if address else page
        assert file.exists(), f"{page.name} links to {target}"
        if anchor:
            assert anchor in anchors(file), f"{page.name} links to {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_named_in_the_text_exist(page: Path) -> None:
    """`path/of/a/file.ext` in backticks is a file of this tree, of the package, or of the matchers in it."""
    folders = [ROOT, ROOT / "macvo_ros", ROOT / "macvo_ros" / "matching", page.parent]
    text = page.read_text()
    for name in re.findall(
        r"`((?:macvo_ros|docs|test|tools|bench|config|launch|matching|msg|srv)/[\w./]+\.\w+)`", text
    ):
        assert any((folder / name).exists() for folder in folders), f"{page.name} names {name}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_exist_with_their_options(page: Path) -> None:
    """Every `macvo COMMAND --option` in a page is one that the command line knows."""
    known: dict[str, str] = {}
    for command, rest in re.findall(r"(?:^|`|\s)macvo (\w+)\b([^`\n#]*)", code_of(page)):
        if command not in command_names():
            pytest.fail(f"{page.name}: macvo has no command {command}")
        words = rest.split()
        deeper = [words[0]] if command in ("train", "weights", "export") and words and words[0].isalpha() else []
        key = " ".join([command, *deeper])
        if key not in known:
            line = [sys.executable, "-m", "macvo_ros.cli", command, *deeper, "--help"]
            known[key] = subprocess.run(line, capture_output=True, text=True, check=True, cwd=ROOT).stdout
        for option in re.findall(r"(?<!\S)--[a-z][a-z-]*", rest):
            assert option in known[key], f"{page.name}: macvo {key} has no {option}"


def snippet(heading: str) -> dict[str, Any]:
    """What the first Python block below a heading of CONTRIBUTING.md defines."""
    text = (ROOT / "CONTRIBUTING.md").read_text().partition(f"## {heading}\n")[2]
    names: dict[str, Any] = {}
    exec(text.partition("```python\n")[2].partition("```")[0], names)
    return names


def test_matcher_of_the_guide_tracks(room: RenderedSequence) -> None:
    odometry = StereoOdometry(matcher=snippet("A matcher in one file")["MyMatcher"]())
    estimates = [odometry.track(room[index]) for index in range(4)]
    assert room.ground_truth is not None
    moved = np.linalg.inv(room.ground_truth[0]) @ room.ground_truth[3]
    assert np.linalg.norm(estimates[-1].pose[:3, 3] - moved[:3, 3]) < 0.1 * np.linalg.norm(moved[:3, 3]) + 0.01


def test_reader_of_the_guide_reads(tmp_path: Path) -> None:
    for side, value in (("cam_l", 50), ("cam_r", 60)):
        (tmp_path / side).mkdir()
        for stamp in (1_000_000_000, 1_100_000_000):
            assert cv2.imwrite(str(tmp_path / side / f"{stamp}.png"), np.full((480, 640), value, np.uint8))
    sequence = snippet("A dataset reader in one file")["open_mine"](tmp_path)
    assert len(sequence) == 2
    assert (sequence[1].stamp, sequence[1].left[0, 0], sequence[1].right[0, 0]) == (1_100_000_000, 50, 60)


def test_citation_is_valid() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == __version__
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()
    assert f"## {__version__}" in (ROOT / "CHANGELOG.md").read_text()


def code_of(page: Path) -> str:
    """Indented and fenced blocks, and what stands in backticks."""
    text = page.read_text()
    blocks = [line for line in text.splitlines() if line.startswith("    ")]
    blocks += [line for block in re.findall(r"```\w*\n(.*?)```", text, re.S) for line in block.splitlines()]
    return "\n".join([*blocks, *(f"`{code}`" for code in re.findall(r"`([^`\n]+)`", text))])


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub makes of a page's headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}
