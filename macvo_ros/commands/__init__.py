"""The subcommands of `macvo`, one module each.

A module named `NAME` offers `add_parser(subparsers)`, which adds a parser called NAME with `set_defaults(run=run)`, and
`run(args) -> int`, the exit code. Modules are imported to print help, so they import what is heavy (torch, OpenCV,
matplotlib) inside `run`. A leading underscore marks what commands share.
"""
