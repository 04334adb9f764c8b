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

"""Write docs/parameters.md from the configuration tree; with --check, fail when the page is not current."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_type_hints

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from macvo_ros.ros.parameters import READ_ONLY, NodeConfig  # noqa: E402
from macvo_ros.settings.config import Config  # noqa: E402
from macvo_ros.settings.declaration import Setting, settings  # noqa: E402

PAGE = ROOT / "docs" / "parameters.md"

INTRODUCTION = """\
<!-- Written by tools/write_parameters.py from settings/config.py and ros/parameters.py: change those. -->
# Parameters

One tree of settings, the same names everywhere:

    ros2 run macvo_ros macvo_node --ros-args -p keypoints.count:=300        # the node
    ros2 launch macvo_ros macvo.launch.py params_file:=mine.yaml            # start from config/macvo.yaml
    macvo run SEQUENCE --set keypoints.count=300                            # offline
    macvo run SEQUENCE --config mine.yaml                                   # offline; keys only, no ros__parameters

An unknown name or a value that is not allowed is refused, with the nearest name or the allowed range. Those marked
**live** change at run time (`ros2 param set /macvo keypoints.count 300`). The others are read by `configure`; setting
one while the node runs is refused: clean up, set, configure. `ros2 param describe /macvo NAME` says the same as here.
"""


def page() -> str:
    """The whole page."""
    core = {leaf.key for leaf in settings(Config)}
    parts = [INTRODUCTION, "## The odometry, offline and in the node\n"]
    parts += _tables(Config, lambda leaf: True)
    parts.append("## The node only\n")
    parts += _tables(NodeConfig, lambda leaf: leaf.key not in core)
    return "\n".join(parts)


def _tables(cls: type, wanted: Any) -> Iterator[str]:
    """A table for the settings of `cls` itself, then one for each of its sections."""
    leaves = [leaf for leaf in settings(cls) if wanted(leaf)]
    top = [leaf for leaf in leaves if "." not in leaf.key]
    yield _table(top)
    hints = get_type_hints(cls)
    for item in fields(cls):
        group = [leaf for leaf in leaves if leaf.key.startswith(f"{item.name}.")]
        if is_dataclass(hints[item.name]) and group:
            yield f"### `{item.name}`\n\n{(hints[item.name].__doc__ or '').strip()}\n"
            yield _table(group)


def _table(leaves: list[Setting]) -> str:
    rows = ["| parameter | default | allowed | what it does |", "|---|---|---|---|"]
    rows += [f"| `{leaf.key}` | {_default(leaf)} | {_allowed(leaf)} | {_meaning(leaf)} |" for leaf in leaves]
    return "\n".join(rows) + "\n"


def _default(leaf: Setting) -> str:
    if isinstance(leaf.default, bool):
        return f"`{str(leaf.default).lower()}`"
    return "empty" if leaf.default == "" else f"`{leaf.default}`"


def _allowed(leaf: Setting) -> str:
    return leaf.allowed().removeprefix("one of ").replace("|", "\\|")


def _meaning(leaf: Setting) -> str:
    when = " **live**" if leaf.live else " Read once, at start." if leaf.key in READ_ONLY else ""
    return leaf.doc.replace("|", "\\|") + when


def main() -> int:
    """Write or check the page; 1 when it is not current."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 when the page is not current")
    current = PAGE.read_text() if PAGE.is_file() else ""
    wanted = page()
    if parser.parse_args().check:
        if current != wanted:
            print("docs/parameters.md is not current; run: python tools/write_parameters.py", file=sys.stderr)
        return int(current != wanted)
    PAGE.write_text(wanted)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
