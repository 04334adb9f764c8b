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

"""Where the parameters of a command line were addressed to: this node, or a wildcard that many nodes share."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from macvo_ros.settings.declaration import flatten


def shared_parameters(arguments: Sequence[str], node: str) -> dict[str, str]:
    """Parameters that reach `node` (its full name) through a wildcard section of a parameter file and no other way.

    arguments: the command line. Returns the file of each by its dotted name. `-p` speaks to this process, so what is
    given that way is addressed to the node.
    """
    shared: dict[str, str] = {}
    addressed = set()
    for option, word in _ros_options(arguments):
        if option in ("-p", "--param"):
            addressed.add(word.partition(":=")[0].rpartition(":")[2])
            continue
        for section, values in _sections(_content(word)):
            if not _pattern(section).fullmatch(node):
                continue
            if section.rpartition("/")[2] in ("*", "**"):
                shared.update(dict.fromkeys(flatten(values), word))
            else:
                addressed.update(flatten(values))
    return {name: file for name, file in shared.items() if name not in addressed}


def _ros_options(arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The options of `--ros-args` ... `--` that carry parameters, each with its value."""
    inside = False
    for word, following in itertools.pairwise(arguments):
        if word in ("--ros-args", "--"):
            inside = word == "--ros-args"
        elif inside and word in ("-p", "--param", "--params-file"):
            yield word, following


def _content(file: str) -> Any:
    """What a parameter file holds, all values as text (rcl has read it already, and launch files write odd tags)."""
    try:
        return yaml.load(Path(file).read_text(), Loader=yaml.BaseLoader)
    except (OSError, ValueError, yaml.YAMLError):
        return None  # then everything in it counts as addressed to us


def _sections(tree: Any, name: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Full names of nodes, wildcards included, and the parameters under them."""
    if not isinstance(tree, dict):
        return
    for key, inner in tree.items():
        if key == "ros__parameters":
            yield name, inner if isinstance(inner, dict) else {}
        else:
            yield from _sections(inner, f"{name}/{str(key).strip('/')}")


def _pattern(section: str) -> re.Pattern[str]:
    """What a section's name stands for: `*` is one part of a full name, `**` any number of them."""
    parts = {"*": "/[^/]+", "**": "(?:/[^/]+)*"}
    return re.compile("".join(parts.get(part, f"/{re.escape(part)}") for part in section.split("/")[1:]))
