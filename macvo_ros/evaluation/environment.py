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

"""What a figure was measured with: versions of the software, and the machine."""

from __future__ import annotations

import os
import platform
from functools import lru_cache
from importlib import metadata
from pathlib import Path

from macvo_ros import __version__

PACKAGES = ("numpy", "torch", "opencv-python-headless", "opencv-python", "opencv-contrib-python", "pypose", "evo")


@lru_cache
def versions() -> dict[str, str]:
    """Versions of macvo_ros, Python and the packages that do the arithmetic, as installed."""
    found = {"macvo_ros": __version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


@lru_cache
def machine() -> dict[str, str]:
    """Processor, cores this process may use, memory, GPU and system. No host or user name."""
    found = {
        "processor": _processor(),
        "cores": str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()),
        "system": f"{platform.system()} {platform.machine()}",
    }
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        found["memory"] = f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.0f} GiB"
    import torch

    found["torch threads"] = str(torch.get_num_threads())
    found["gpu"] = torch.cuda.get_device_name() if torch.cuda.is_available() else "none"
    return found


def measured_with() -> str:
    """Versions and machine as lines of text, to stand below a table."""
    return "\n".join(f"{name}: {value}" for name, value in {**versions(), **machine()}.items()) + "\n"


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith(("model name", "Model")):
                return " ".join(line.partition(":")[2].split())
    except OSError:
        pass
    return platform.processor() or platform.machine()
