"""The ament linters that hold here, wherever they are installed (they come with ROS 2 from apt)."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def test_copyright(monkeypatch: pytest.MonkeyPatch) -> None:
    lint = pytest.importorskip("ament_copyright.main", reason="ament_copyright is not installed")
    monkeypatch.chdir(ROOT)
    folders = ["macvo_ros", "launch", "test", "bench", "tools", "LICENSE", "CONTRIBUTING.md"]
    assert lint.main(argv=folders) == 0


def test_cmake(monkeypatch: pytest.MonkeyPatch) -> None:
    lint = pytest.importorskip("ament_lint_cmake.main", reason="ament_lint_cmake is not installed")
    monkeypatch.chdir(ROOT)
    assert lint.main(argv=["CMakeLists.txt"]) == 0


def test_package_xml(monkeypatch: pytest.MonkeyPatch) -> None:
    lint = pytest.importorskip("ament_xmllint.main", reason="ament_xmllint is not installed")
    if shutil.which("xmllint") is None:
        pytest.skip("xmllint is not installed")
    monkeypatch.chdir(ROOT)
    assert lint.main(argv=["package.xml"]) == 0
