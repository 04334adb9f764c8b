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

"""The parsers of `macvo`: complaints in one line, and options from a file where a command has many."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from macvo_ros.errors import ConfigError

EXIT_USAGE = 2


class Parser(argparse.ArgumentParser):
    """An argument parser whose complaints fit in one line."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong in one line on stderr and exit with 2."""
        self.exit(EXIT_USAGE, f"macvo: {' '.join(message.split())} (try: {self.prog} --help)\n")


class ConfigurableParser(Parser):
    """Takes options also from `--config FILE`: YAML, keys named as the options. What is on the command line wins."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.add_argument("--config", metavar="FILE", type=Path, help="YAML file with any of these options")

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """As argparse does, with the words that the file stands for before those of the command line."""
        words = list(args or ())
        finder = Parser(prog=self.prog, add_help=False, allow_abbrev=False)
        finder.add_argument("--config", type=Path)
        file = argparse.ArgumentParser.parse_known_args(finder, words)[0].config
        return super().parse_known_args([*self._words(file), *words] if file else words, namespace)

    def _words(self, file: Path) -> list[str]:
        from macvo_ros.settings.declaration import read_yaml

        options = {action.option_strings[-1]: action for action in self._actions if action.option_strings}
        words = []
        for key, value in read_yaml(file).items():
            option = "--" + key.replace("_", "-")
            if option not in options or option in ("--config", "--help"):
                near = difflib.get_close_matches(option, options, n=1)
                raise ConfigError(f"{file}: no option {key!r}" + (f"; did you mean {near[0][2:]}?" if near else ""))
            if isinstance(options[option], argparse._StoreTrueAction):
                if not isinstance(value, bool):
                    raise ConfigError(f"{file}: {key}: expected true or false, got {value!r}")
                words += [option] * value
            elif value not in (None, []):
                words += [option, *(map(str, value) if isinstance(value, list) else [str(value)])]
        return words
