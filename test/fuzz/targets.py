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

"""What is fuzzed: everything that reads bytes or numbers from outside.

Each target takes a source of randomness, makes one input and feeds it. Coming back, or one of our own errors in one
line, is right; anything else that escapes is a defect.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from checkpoint_target import checkpoint
from file_targets import bag, calibration_file, configuration, dataset, trajectory_file
from message_targets import camera_info, compressed_message, image_message, reset_pose

TARGETS: dict[str, tuple[Callable[[random.Random], None], float]] = {
    "image message": (image_message, 0.2),
    "compressed image": (compressed_message, 0.2),
    "camera_info": (camera_info, 0.1),
    "calibration file": (calibration_file, 0.1),
    "configuration": (configuration, 0.1),
    "trajectory file": (trajectory_file, 0.1),
    "dataset": (dataset, 0.05),
    "bag": (bag, 0.03),
    "checkpoint": (checkpoint, 0.1),
    "reset_to_pose": (reset_pose, 0.02),
}
"""Each with its share of a long run; the slow ones get less."""
