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

"""An option that takes the size of an image."""

from __future__ import annotations

import argparse
import re


def image_size(text: str) -> tuple[int, int]:
    """Width and height of WIDTHxHEIGHT, for argparse."""
    found = re.fullmatch(r"(\d+)x(\d+)", text)
    if not found or min(int(found[1]), int(found[2])) < 32:
        raise argparse.ArgumentTypeError(f"expected WIDTHxHEIGHT of at least 32x32, for example 640x480, got {text!r}")
    return int(found[1]), int(found[2])
