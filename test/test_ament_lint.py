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

"""The ament linters that hold here, wherever they are installed (they come with ROS 2 from apt)."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def test_every_python_file_has_its_header() -> None:
    command = [sys.executable, "tools/add_licence_headers.py", "--check"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert found.returncode == 0, f"{found.stderr}run: python tools/add_licence_headers.py"


def test_copyright(monkeypatch: pytest.MonkeyPatch) -> None:
    lint = pytest.importorskip("ament_copyright.main", reason="to run this: apt install ros-jazzy-ament-copyright")
    monkeypatch.chdir(ROOT)
    folders = ["macvo_ros", "launch", "test", "bench", "tools", "LICENSE", "CONTRIBUTING.md"]
    assert lint.main(argv=folders) == 0


def test_cmake(monkeypatch: pytest.MonkeyPatch) -> None:
    lint = pytest.importorskip("ament_lint_cmake.main", reason="to run this: apt install ros-jazzy-ament-lint-cmake")
    monkeypatch.chdir(ROOT)
    assert lint.main(argv=["CMakeLists.txt"]) == 0


def test_package_xml(monkeypatch: pytest.MonkeyPatch) -> None:
    lint = pytest.importorskip("ament_xmllint.main", reason="to run this: apt install ros-jazzy-ament-xmllint")
    if shutil.which("xmllint") is None:
        pytest.skip("apt install libxml2-utils to run this: xmllint is not installed")
    monkeypatch.chdir(ROOT)
    assert lint.main(argv=["package.xml"]) == 0
