"""macvo demo: the main job without any data of one's own."""

from __future__ import annotations

import argparse
from pathlib import Path

from macvo_ros.commands._options import RENDERED_FRAMES, add_config_options, load_config_of
from macvo_ros.commands.run import run_and_measure, summary, write_all


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `macvo demo`."""
    parser = subparsers.add_parser(
        "demo",
        help="render a short stereo sequence and run the odometry over it",
        description="Render what a hand-held ZED-X sees in a room, run the odometry over it, and leave the "
        "trajectory and a report page with plots.",
    )
    add_config_options(parser)
    parser.add_argument("--out", metavar="DIR", type=Path, default=Path("output/demo"), help="where to write")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Render, run, measure, write."""
    from macvo_ros.rendering.sequence import RenderedSequence

    config = load_config_of(args)
    evaluation = run_and_measure(RenderedSequence("room", RENDERED_FRAMES), config)
    write_all(args.out, evaluation)
    print(summary(evaluation))
    print(f"\nopen {args.out / 'report.html'} in a browser; the trajectory is {args.out / 'trajectory.txt'}")
    return 0
