"""Does a filter gain from our covariance? Six rendered walks through a room whose light goes out for a second.

    python bench/fusion.py [--light 0.03] [--walks 6]

Prints the errors of a constant-velocity filter that is told our covariance, and of the same filter with a constant one:
for each error the constant that makes this very error smallest, found by a search with the truth in hand. 10 s a walk.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "test"))

import test_fusion

UNITS = {"linear": ("velocity [m/s]", 1.0), "angular": ("angular velocity [deg/s]", 57.29578)}
UNITS |= {"position": ("position [m]", 1.0), "rotation": ("rotation [deg]", 57.29578)}


def main() -> None:
    """Record the walks and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--light", type=float, default=test_fusion.LIGHT, help="share of full light in the dark stretch"
    )
    parser.add_argument("--walks", type=int, default=6)
    args = parser.parse_args()
    test_fusion.LIGHT = args.light
    recordings = [test_fusion.record(seed) for seed in range(args.walks)]
    twists = [twist for recording in recordings for twist in recording.twists]
    silent = sum(twist is None for twist in twists)
    print(f"{args.walks} walks, light {args.light}, {silent} of {len(twists)} frames silent (lost)")
    ours = test_fusion.filter_errors(recordings, lambda index, covariance: covariance)
    grid = 10.0 ** np.arange(-3.5, 0.6, 0.5)
    tried = {}
    for linear, angular in itertools.product(grid, grid):
        constant = test_fusion.constant(linear, angular)
        tried[linear, angular] = test_fusion.filter_errors(recordings, lambda index, covariance, c=constant: c)
    for name, (label, scale) in UNITS.items():
        best = min(tried, key=lambda sigmas: tried[sigmas][name])
        print(
            f"{label:25} ours {ours[name] * scale:.4f}   best constant {tried[best][name] * scale:.4f} "
            f"(sigma {best[0]:.4f} m/s, {best[1]:.4f} rad/s)"
        )


if __name__ == "__main__":
    main()
