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

"""Which matcher `matcher: auto` stands for on this machine."""

from __future__ import annotations

import logging

import torch

from macvo_ros.settings.config import Config

_log = logging.getLogger(__name__)


def choose_matcher(config: Config) -> str:
    """`flowformer` where there are a CUDA device and a checkpoint for it, else `lite`; logs which and why."""
    cuda = torch.cuda.is_available() and config.device != "cpu"
    if cuda and config.flowformer.weights:
        name, why = "flowformer", "there are a CUDA device and flowformer.weights"
    elif cuda:
        name, why = "lite", "flowformer.weights names no checkpoint"
    elif torch.cuda.is_available():
        name, why = "lite", "device is cpu"
    else:
        name, why = "lite", "there is no CUDA device"
    _log.info("matcher auto: %s, because %s", name, why)
    return name
