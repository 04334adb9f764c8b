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

"""Writes config/macvo.yaml, each parameter with its default and meaning: `python -m macvo_ros.ros.parameter_file`."""

from __future__ import annotations

import json
from typing import Any

from macvo_ros.ros.parameters import LEAVES


def parameter_file() -> str:
    """The text of a ROS 2 parameter file with every parameter at its default."""
    lines = [
        "# Parameters of macvo_node at their defaults; made by `python -m macvo_ros.ros.parameter_file`.",
        "# Those marked `live` change at run time, the others are read by configure.",
        "/**:",
        "  ros__parameters:",
    ]
    section = ""
    for key, leaf in LEAVES.items():
        prefix, _, name = key.rpartition(".")
        if prefix != section:
            section = prefix
            if prefix:
                lines.append(f"    {prefix}:")
        live = " (live)" if leaf.live else ""
        lines.append(f"    {'  ' if prefix else ''}{name}: {_scalar(leaf.default)}  # {leaf.doc}{live}")
    return "\n".join(lines) + "\n"


def _scalar(value: Any) -> str:
    return json.dumps(value)


if __name__ == "__main__":
    print(parameter_file(), end="")
