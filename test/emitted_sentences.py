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

"""Every sentence the node may log, publish or answer with, found in its source."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "macvo_ros"

CORE = (
    "status",
    "odometry",
    "two_frame",
    "frame_check",
    "scene_check",
    "attempt",
    "pipelined_odometry",
    "matching/auto",
)
"""Where the reasons of `~/status` come from, and what the core logs."""
INPUT = ("camera", "camera_info", "rectification", "image_decoding", "frame", "calibration")
"""What may be wrong with an image or a calibration."""
NOT_THE_NODE = ("live_odometry", "parameter_file")
NOT_CALLED = (
    "resized", "cropped", "read_kitti_projections", "load_kitti_calibration", "load_euroc_calibration", "_euroc_camera",
)  # fmt: skip
"""Functions of these files that only datasets use."""

SPEAKERS = {
    "Refusal", "Trouble", "TooFewPoints", "ImageError", "CalibrationError", "ConfigError", "MacvoError", "_restart",
    "_notice", "notice", "say", "_refuse", "refuse", "_refused", "error", "warning", "info", "append",
}  # fmt: skip
"""Functions and exceptions that take a sentence."""
ANSWERS = {
    "judge", "likely_cause", "stamps_cause", "loss_hint", "why_refused", "why_not", "set_paused", "seen_on",
    "find_trouble",
}  # fmt: skip
"""Functions that return one."""


@dataclass(frozen=True)
class Sentence:
    """Where a sentence stands, and its parts between the variables in it."""

    where: str
    parts: tuple[str, ...]


def sentences() -> list[Sentence]:
    """All of them, in the order of the files."""
    names = [*CORE, *INPUT, *(f"ros/{path.stem}" for path in sorted((PACKAGE / "ros").glob("*.py")))]
    files = [PACKAGE / f"{name}.py" for name in names if name.removeprefix("ros/") not in NOT_THE_NODE]
    return [sentence for file in files for sentence in _of_file(file)]


def refusal_kinds() -> set[str]:
    """The words by which refused pairs are counted, and repeated log lines begin."""
    kinds = set()
    for file in sorted((PACKAGE / "ros").glob("*.py")):
        for call in ast.walk(ast.parse(file.read_text())):
            if isinstance(call, ast.Call) and _name(call.func) in ("Refusal", "_refuse", "refuse", "_refused", "say"):
                first = call.args[0] if len(call.args) > 1 else None
                if isinstance(first, ast.Constant) and isinstance(first.value, str):
                    kinds.add(first.value)
    return kinds


def _of_file(file: Path) -> Iterator[Sentence]:
    seen = set()
    for node in _walk(ast.parse(file.read_text())):
        for text in _texts(node):
            parts = tuple(piece.strip() for piece in text if piece.strip(" ;:,.()"))
            if max((len(part.split()) for part in parts), default=0) >= 3 and parts not in seen:
                seen.add(parts)
                yield Sentence(f"{file.relative_to(PACKAGE)}: {max(parts, key=len)[:40]}", parts)


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those of functions the node never calls."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.FunctionDef) and child.name in NOT_CALLED):
            yield from _walk(child)


def _texts(node: ast.AST) -> Iterator[list[str]]:
    if isinstance(node, ast.Call) and _name(node.func) in SPEAKERS:
        for argument in node.args:
            yield from _alternatives(argument)
    if isinstance(node, ast.FunctionDef) and node.name in ANSWERS:
        for inner in ast.walk(node):
            if isinstance(inner, ast.Return) and inner.value is not None:
                parts = inner.value.elts if isinstance(inner.value, ast.Tuple) else [inner.value]
                for part in parts:
                    yield from _alternatives(part)
    if isinstance(node, ast.Module):  # SENTENCE = "..."
        for line in node.body:
            if isinstance(line, ast.Assign) and isinstance(line.value, (ast.Constant, ast.JoinedStr)):
                yield from _alternatives(line.value)
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple):  # message.level, message.message = ...
        for part in node.value.elts:
            yield from _alternatives(part)


def _alternatives(node: ast.expr) -> Iterator[list[str]]:
    """The constant pieces of a text; both sides of a choice."""
    if isinstance(node, ast.IfExp):
        yield from _alternatives(node.body)
        yield from _alternatives(node.orelse)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield re.split(r"%[sdg]", node.value)
    elif isinstance(node, ast.JoinedStr):
        yield [str(piece.value) for piece in node.values if isinstance(piece, ast.Constant)]
    elif isinstance(node, ast.BinOp):
        yield from _alternatives(node.left)


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
