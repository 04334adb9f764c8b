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

"""macvo train: train a matching network. Start with torchrun to use several processes."""

from __future__ import annotations

import argparse

from macvo_ros.commands import _train_flowformer, _train_lite
from macvo_ros.commands._parser import ConfigurableParser


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `macvo train`, with one sub-command a network."""
    parser = subparsers.add_parser(
        "train",
        help="train a matching network",
        description="Train a matching network. Several processes: torchrun --nproc-per-node N -m macvo_ros.cli train",
    )
    networks = parser.add_subparsers(
        title="networks", metavar="NETWORK", required=True, parser_class=ConfigurableParser
    )
    _train_lite.add_parser(networks)
    _train_flowformer.add_parser(networks)
