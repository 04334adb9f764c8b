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

"""Give every Python file the licence header that ament_copyright looks for; with --check, name those without it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("macvo_ros", "launch", "test", "bench", "tools")

HEADER = """\
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

"""
"""ament_copyright compares the whole text; a two-line SPDX header is not one to it."""


def python_files() -> list[Path]:
    """The Python files of the repository; build, install and .venv are not ours."""
    return sorted([*ROOT.glob("*.py"), *(file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py"))])


def without_header(path: Path) -> bool:
    """Whether a file has code but no header."""
    first, rest = split(path.read_text())
    return bool((first + rest).strip()) and not rest.startswith(HEADER)


def add_header(path: Path) -> None:
    """Put the header at the top, below a first line that names the interpreter."""
    first, rest = split(path.read_text())
    path.write_text(first + HEADER + rest)


def split(text: str) -> tuple[str, str]:
    """A first line that names the interpreter, empty without one, and the rest."""
    first, newline, rest = text.partition("\n")
    return (first + newline, rest) if first.startswith("#!") else ("", text)


def main() -> int:
    """Add or check; 1 when --check finds a file without header."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; exit with 1 when a header is missing")
    check = parser.parse_args().check
    missing = [path for path in python_files() if without_header(path)]
    for path in missing:
        print(f"{'no licence header' if check else 'added header'}: {path.relative_to(ROOT)}", file=sys.stderr)
        if not check:
            add_header(path)
    return int(check and bool(missing))


if __name__ == "__main__":
    raise SystemExit(main())
