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

"""The long fuzz: `python test/fuzz/long_run.py [--cases 100000] [--seed 0] [--only bag]`.

Each case must end within ten seconds and three gigabytes, in a result or in one of our own errors. Whatever does not is
printed with its seed (`--seed N --cases 1 --only TARGET` runs it again) and the exit code is 1.
"""

from __future__ import annotations

import argparse
import random
import resource
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "test"), str(Path(__file__).resolve().parent)]

from targets import TARGETS  # noqa: E402

from macvo_ros.errors import MacvoError  # noqa: E402
from macvo_ros.evaluation.environment import measured_with  # noqa: E402

SECONDS = 10
MEMORY = 3 << 30


class Hang(BaseException):
    """A case took too long; not an Exception, so that nothing swallows it."""


def on_alarm(number: int, frame: FrameType | None) -> None:
    raise Hang(f"more than {SECONDS} s")


def resident() -> float:
    """Megabytes of memory in use now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6


def case(name: str, seed: int) -> tuple[str, str]:
    """One case: how it ended (read, refused, failed) and the failure."""
    signal.alarm(SECONDS)
    try:
        TARGETS[name][0](random.Random(f"{name} {seed}"))
        return "read", ""
    except MacvoError as error:
        return ("refused", "") if "\n" not in str(error) else ("failed", f"a message of several lines: {error}")
    except (Exception, Hang):
        return "failed", traceback.format_exc()
    finally:
        signal.alarm(0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="targets whose name contains this")
    options = parser.parse_args()
    chosen = {name: share for name, (_, share) in TARGETS.items() if options.only in name}
    signal.signal(signal.SIGALRM, on_alarm)
    warnings.simplefilter("ignore")
    for name in chosen:
        case(name, -1)  # what is made once is made before memory is limited
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    failures: Counter[str] = Counter()
    print("| target | cases | read | refused | failed | time (s) | memory grown (MB) |\n|---|---|---|---|---|---|---|")
    for name, share in chosen.items():
        started, before = time.monotonic(), resident()
        ends: Counter[str] = Counter()
        for seed in range(options.seed, options.seed + max(1, round(options.cases * share / sum(chosen.values())))):
            end, why = case(name, seed)
            ends[end] += 1
            if why:
                key = why.strip().splitlines()[-1][:160]
                failures[f"{name}: {key}"] += 1
                if failures[f"{name}: {key}"] == 1:
                    print(f"{name}, seed {seed}:\n{why}", file=sys.stderr, flush=True)
        row = [name, sum(ends.values()), ends["read"], ends["refused"], ends["failed"]]
        row += [f"{time.monotonic() - started:.0f}", f"{resident() - before:.0f}"]
        print("| " + " | ".join(map(str, row)) + " |", flush=True)
    print(f"\n{measured_with()}", end="")
    for failure, count in failures.most_common():
        print(f"{count} x {failure}", file=sys.stderr)
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
