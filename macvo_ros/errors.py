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

"""The errors a user can act on: each message says what was expected, what came instead and what to do."""


class MacvoError(Exception):
    """Base of every error macvo_ros raises on purpose; the command line prints it in one line and exits with 2."""


class CalibrationError(MacvoError):
    """The camera calibration is impossible or does not belong to these images."""


class ConfigError(MacvoError):
    """A configuration key or value that is not allowed."""


class SequenceError(MacvoError):
    """A dataset, folder or bag that cannot be read as what it claims to be."""


class ImageError(MacvoError):
    """An image that cannot be used: wrong size, type or encoding."""


class WeightsError(MacvoError):
    """A network checkpoint that is not what the matcher needs."""
