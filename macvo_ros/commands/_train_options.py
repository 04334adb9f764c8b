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

"""Options that the training of any network takes."""

from __future__ import annotations

import argparse
from pathlib import Path

POSITIVE = ("steps", "batch", "learning_rate", "save_every", "report_every")


def add_training_options(
    parser: argparse.ArgumentParser, *, steps: int, batch: int, learning_rate: float, save_every: int
) -> None:
    """Add them, with a network's defaults."""
    parser.add_argument("--out", metavar="DIR", type=Path, required=True, help="folder for progress, log and weights")
    parser.add_argument("--steps", type=int, default=steps, help=f"({steps})")
    parser.add_argument("--batch", type=int, default=batch, help=f"samples a step, over all processes ({batch})")
    parser.add_argument("--learning-rate", type=float, default=learning_rate, help=f"largest one ({learning_rate:g})")
    parser.add_argument("--seed", type=int, default=0, help="of the network, the order of samples and their crops (0)")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N (auto)")
    parser.add_argument("--no-amp", action="store_true", help="float32 throughout; else bfloat16 on a CUDA device")
    parser.add_argument("--save-every", metavar="STEPS", type=int, default=save_every, help=f"({save_every})")
    parser.add_argument("--report-every", metavar="STEPS", type=int, default=100, help="steps between log rows (100)")
    parser.add_argument("--tensorboard", action="store_true", help="also log for TensorBoard, in DIR/tensorboard")


def check_positive(args: argparse.Namespace, names: tuple[str, ...] = POSITIVE) -> None:
    """Refuse options that must be above zero and are not."""
    from macvo_ros.errors import ConfigError

    for name in names:
        if not getattr(args, name) > 0:
            raise ConfigError(f"--{name.replace('_', '-')}: expected a positive number, got {getattr(args, name)}")


def write_options(args: argparse.Namespace) -> None:
    """Write all options, defaults included, to DIR/options.yaml, which `--config` takes; a run to resume has it."""
    import yaml

    from macvo_ros.atomic_write import atomic_write
    from macvo_ros.training.progress import FILE

    if (args.out / FILE).exists():
        return
    options = {name: value for name, value in sorted(vars(args).items()) if name not in ("run", "config")}
    plain = {
        name: str(value)
        if isinstance(value, Path)
        else "x".join(map(str, value))
        if isinstance(value, tuple)
        else value
        for name, value in options.items()
    }
    args.out.mkdir(parents=True, exist_ok=True)
    atomic_write(args.out / "options.yaml", yaml.safe_dump(plain))
