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

"""The computer and its DDS settings, as far as they decide whether images arrive and are tracked in time."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from macvo_ros.evaluation.environment import machine, versions
from macvo_ros.matching.native.library import why_missing
from macvo_ros.ros.doctor.finding import Finding

_NEEDED_MB = 512
"""Memory of the process with a network in it, rounded up (bench/results/matcher_memory.txt: 439)."""
_SEGMENT_MB = 64
"""Shared memory that a process asks for under config/fastdds.xml."""
_PROFILES = ("FASTRTPS_DEFAULT_PROFILES_FILE", "FASTDDS_DEFAULT_PROFILES_FILE")
_PROFILE_HINT = "this package's config/fastdds.xml (docs/install.md, Large images and DDS)"


def look_at_machine(shared_memory: Path = Path("/dev/shm")) -> list[Finding]:
    """Processor, memory, shared memory; whether it is fast enough, tracking itself tells (`images.py`)."""
    found = machine()
    cores = int(found["cores"])
    parts = [found["processor"], f"{cores} cores", found.get("memory", ""), f"GPU: {found['gpu']}", found["system"]]
    findings = [Finding(", ".join(part for part in parts if part))]
    findings.append(Finding(", ".join(f"{name} {version}" for name, version in versions().items())))
    findings.append(_look_at_kernels())
    if cores < 2:
        cure = "`lite` searches stereo and flow side by side on two cores: expect half its speed, so lower rate or size"
        findings.append(Finding("this process may use one core only", cure))
    findings.append(Finding(f"{os.getloadavg()[0]:.1f} programs want the processor, on average of the last minute"))
    available = _available_mb()
    if available is not None:
        lacking = f"the node takes about {_NEEDED_MB} MB: stop something, or add memory"
        findings.append(Finding(f"{available} MB of memory are free", lacking if available < _NEEDED_MB else ""))
    if shared_memory.is_dir():
        usage = shutil.disk_usage(shared_memory)
        size, free = usage.total >> 20, usage.free >> 20
        small = f"each process asks for {_SEGMENT_MB} MB, the driver and the node: start containers with --ipc=host or "
        small += "--shm-size=1g; remove what killed processes left (fastdds shm clean)"
        findings.append(
            Finding(f"{free} of {size} MB of shared memory are free", small if free < 2 * _SEGMENT_MB else "")
        )
    return findings


def _look_at_kernels() -> Finding:
    """Whether matching has its compiled kernels."""
    why = why_missing()
    if not why:
        return Finding("the compiled kernels of matching are in use")
    cure = "install a C compiler (apt install gcc) and the package again, or python setup.py build_ext --inplace"
    return Finding(f"matching runs without its compiled kernels, at about two thirds of the speed: {why}", cure)


def look_at_dds(environment: Mapping[str, str], rmw: str) -> list[Finding]:
    """Middleware and discovery. rmw: the implementation in use."""
    domain = environment.get("ROS_DOMAIN_ID", "0")
    reach = environment.get("ROS_AUTOMATIC_DISCOVERY_RANGE", "")
    local = reach.upper() == "LOCALHOST" or environment.get("ROS_LOCALHOST_ONLY", "0") == "1"
    where = "this machine only" if local else "the local network"
    findings = [Finding(f"{rmw}, domain {domain}, discovery on {where}; a driver of another domain is not seen")]
    if reach.upper() == "OFF":
        findings.append(Finding("ROS_AUTOMATIC_DISCOVERY_RANGE is OFF", "nothing can be discovered: unset it"))
    if "fastrtps" not in rmw:
        return findings
    named = {name: environment[name] for name in _PROFILES if environment.get(name)}
    if not named:
        findings.append(
            Finding(f"no FastDDS profile is set here; large images want {_PROFILE_HINT} where the *driver* runs")
        )
    for name, value in named.items():
        path = Path(value.removeprefix("file://"))
        seen = f"{name} is {value}"
        if not path.is_file():
            findings.append(Finding(seen, f"that file does not exist, so it is ignored: set it to {_PROFILE_HINT}"))
        elif "segment_size" not in path.read_text(errors="replace"):
            findings.append(
                Finding(seen, f"it sets no segment_size: FastDDS keeps 512 KB, less than an image; use {_PROFILE_HINT}")
            )
        else:
            findings.append(Finding(seen))
    return findings


def _available_mb() -> int | None:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) >> 10
    except (OSError, ValueError):
        pass
    return None
