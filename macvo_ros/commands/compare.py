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

"""macvo compare: runs side by side."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `macvo compare`."""
    parser = subparsers.add_parser(
        "compare",
        help="runs side by side, in a table and a page",
        description="Compare runs: folders written by macvo run or eval --out, their result JSON files, or "
        "trajectories in TUM format of any odometry, measured against a groundtruth.txt beside them or --groundtruth.",
    )
    parser.add_argument("runs", metavar="RUN", nargs="+", type=Path, help="run folder, JSON file or TUM trajectory")
    parser.add_argument("--groundtruth", metavar="FILE", type=Path, help="truth of trajectory files, TUM format")
    parser.add_argument("--out", metavar="FILE", type=Path, default=Path("output/compare.html"), help="page to write")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Load everything, print the table, write the page."""
    from macvo_ros.evaluation.comparison import load, rows, write_comparison
    from macvo_ros.evaluation.table import format_table

    contenders = [load(path, args.groundtruth) for path in args.runs]
    print(format_table(*rows(contenders)))
    write_comparison(args.out, contenders)
    print(f"\nwritten to {args.out}")
    return 0
