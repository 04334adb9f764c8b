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

"""The command `macvo`: finds the subcommands in macvo_ros/commands and turns errors into one line and an exit code."""

from __future__ import annotations

import contextlib
import os
import pkgutil
import sys
from collections.abc import Sequence
from importlib import import_module

from macvo_ros import __version__, commands
from macvo_ros.commands._parser import EXIT_USAGE, Parser
from macvo_ros.errors import MacvoError

EXIT_INTERRUPTED = 130
FIRST = ("run", "eval", "compare", "demo")


def command_names() -> list[str]:
    """Names of the subcommands, those of the main job first."""
    names = {module.name for module in pkgutil.iter_modules(commands.__path__) if not module.name.startswith("_")}
    return [name for name in FIRST if name in names] + sorted(names - set(FIRST))


def make_parser(names: Sequence[str]) -> Parser:
    """The parser of `macvo` with the subcommands `names`."""
    parser = Parser(prog="macvo", description="Stereo visual odometry with an honest covariance.")
    parser.add_argument("--version", action="version", version=f"macvo {__version__}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name in names:
        import_module(f"macvo_ros.commands.{name}").add_parser(subparsers)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand.

    Exit codes: 0 ran, 1 ran and found nothing that works (no frame was tracked), 2 usage or input error (one line on
    stderr), 130 interrupted.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    names = command_names()
    if arguments and arguments[0] in names:
        names = arguments[:1]  # the others need not even be imported
    try:
        args = make_parser(names).parse_args(arguments)
        return int(args.run(args))
    except MacvoError as error:
        return _fail(str(error))
    except KeyboardInterrupt:
        print("macvo: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:  # the reader of our output (head, less) is gone: nobody is left to tell
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        return _fail(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}")


def _fail(message: str) -> int:
    with contextlib.suppress(OSError):
        print(f"macvo: {' '.join(message.split())}", file=sys.stderr)
    return EXIT_USAGE


if __name__ == "__main__":
    sys.exit(main())
