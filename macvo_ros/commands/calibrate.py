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

"""macvo calibrate: what a drive says of the calibration, and the calibration corrected by it."""

from __future__ import annotations

import argparse
from dataclasses import replace

from macvo_ros.commands._options import (
    add_config_options,
    add_output_option,
    add_sequence_options,
    load_config_of,
    open_input,
    output_folder,
)
from macvo_ros.errors import SequenceError


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `macvo calibrate`."""
    parser = subparsers.add_parser(
        "calibrate",
        help="find what the calibration is off by, and write a corrected one",
        description="Run the odometry over a sequence or a bag and print what it learned of the calibration, with its "
        "uncertainty. Writes calibration.yaml (for calibration_file with rectify: true) and left.yaml, right.yaml for "
        "camera_info_manager. Drive for a minute, with turns and things near and far.",
    )
    add_sequence_options(parser)
    add_config_options(parser)
    add_output_option(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Track, print, write."""
    from macvo_ros.evaluation.runner import run_sequence
    from macvo_ros.odometry.stereo_odometry import StereoOdometry

    config = load_config_of(args)
    config = replace(config, calibration=replace(config.calibration, online=True))
    sequence = open_input(args)
    odometry = StereoOdometry(config)
    run_sequence(sequence, odometry)
    learned = odometry.learned
    if learned is None:
        raise SequenceError(f"{sequence.name}: no frame showed anything, so nothing was learned; see macvo run")
    print(f"{sequence.name}: what the calibration is off by (one sigma)")
    for figure in learned.figures():
        print(f"  {figure.name:<12} {figure}")
    print(f"  altogether   {learned.field_size():.2f} px by which the left image is corrected (root mean square)")
    for sentence in learned.findings() or ["nothing is significantly off"]:
        print(sentence)
    print(f"\n{learned.save(output_folder(args, sequence))}")
    return 0
