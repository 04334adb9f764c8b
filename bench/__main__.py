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
    "flowformer": ["bench.flowformer"],
    "lite": ["bench.lite"],
    "fusion": ["bench.fusion"],
    "node": ["bench.node_overhead"],
    "rendering": ["bench.render_speed"],
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
