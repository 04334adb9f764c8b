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

"""Folders are the architecture: data flows one way, and so do imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from macvo_ros.odometry.track_state import Track

PACKAGE = Path(__file__).resolve().parent.parent / "macvo_ros"

LAYERS = ("settings", "geometry", "images", "uncertainty", "matching", "motion", "doubt", "odometry")
"""From what knows nothing of the others to what puts them together; each may import those before it."""
AROUND = ("evaluation", "sequences", "bags", "ros", "rendering", "training", "commands")
"""What uses the core, and is never used by it."""


def imports(file: Path) -> Iterator[str]:
    """Modules of the package that a file imports when it runs, anywhere in it."""
    tree = ast.parse(file.read_text())
    for_types = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and id(node) not in for_types:
            yield node.module
        elif isinstance(node, ast.Import) and id(node) not in for_types:
            yield from (alias.name for alias in node.names)


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_imports_only_those_below_it(layer: str) -> None:
    allowed = {*LAYERS[: LAYERS.index(layer) + 1], "errors", "atomic_write"}
    files = sorted((PACKAGE / layer).rglob("*.py"))
    assert len(files) > 2
    for file in files:
        ours = {name.split(".")[1] for name in imports(file) if name.startswith("macvo_ros.")}
        assert ours <= allowed, f"{file.relative_to(PACKAGE)} imports {', '.join(sorted(ours - allowed))}"


@pytest.mark.parametrize("layer", LAYERS)
def test_the_core_knows_no_ros(layer: str) -> None:
    for file in sorted((PACKAGE / layer).rglob("*.py")):
        roots = {name.split(".")[0] for name in imports(file)}
        assert not roots & {"rclpy", "cv_bridge", "message_filters", "tf2_ros", "sensor_msgs", "nav_msgs"}, file


def test_every_folder_has_its_place() -> None:
    folders = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    assert folders <= {*LAYERS, *AROUND, "msg", "srv"}
    loose = {path.stem for path in PACKAGE.glob("*.py")}
    assert loose == {"__init__", "cli", "errors", "atomic_write"}


def test_the_loop_keeps_little_state() -> None:
    """What the odometry remembers between frames is one value, `Track`; a new field there wants a good reason."""
    source = (PACKAGE / "odometry" / "stereo_odometry.py").read_text()
    loop = next(node for node in ast.parse(source).body if isinstance(node, ast.ClassDef))
    stored = {
        node.attr
        for node in ast.walk(loop)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) == "self"
    }
    assert "_now" in stored
    assert len(stored) <= 6, sorted(stored)
    assert len(fields(Track)) <= 6


def test_the_loop_is_read_in_one_go() -> None:
    """CONTRIBUTING asks for at most 250 lines a file, and a function reads on one screen."""
    for file in sorted((PACKAGE / "odometry").glob("*.py")):
        source = file.read_text()
        assert source.count("\n") <= 250, file
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef):
                length = (node.end_lineno or 0) - node.lineno + 1
                assert length <= 50, f"{file.name}: {node.name} has {length} lines"
