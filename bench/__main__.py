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

"""Every table of README and docs, one after the other: `python -m bench [NAME ...]`. Run nothing beside it.

Each part writes its figures to bench/results/ with the machine and the versions they came from.
"""

from __future__ import annotations

import argparse
import subprocess
import sys

PARTS: dict[str, list[str]] = {
    "accuracy": ["bench.accuracy", "--ablation"],
    "accuracy_lite": ["bench.accuracy", "--matcher", "lite"],
    "core": ["bench.core"],
    "dense_disparity": ["bench.dense_disparity"],
    "error_by_step": ["bench.error_by_step"],
    "flowformer": ["bench.flowformer"],
    "flowformer_flops": ["bench.flowformer_flops"],
    "lite": ["bench.lite"],
    "live_rate": ["bench.live_rate"],
    "lite_profile": ["bench.lite_profile"],
    "ekf_silence": ["bench.ekf_silence"],
    "fusion": ["bench.fusion"],
    "memory": ["bench.matcher_memory"],
    "node": ["bench.node_overhead"],
    "rendering": ["bench.render_speed"],
    "startup": ["bench.startup"],
    "transport": ["bench.transport"],
    "successive_errors": ["bench.successive_errors"],
    "vertical_disparity": ["bench.vertical_disparity"],
}


def main() -> int:
    """Run the named parts, or all; the exit code is that of the first that failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="NAME", help=f"{', '.join(PARTS)}; all when none is named")
    chosen = parser.parse_args().parts or list(PARTS)
    unknown = [part for part in chosen if part not in PARTS]
    if unknown:
        parser.error(f"no part is called {unknown[0]!r}; choose from {', '.join(PARTS)}")
    for part in chosen:
        print(f"== {part}", flush=True)
        code = subprocess.run([sys.executable, "-m", *PARTS[part]], check=False).returncode
        if code:
            return code
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
