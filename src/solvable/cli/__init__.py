"""The command line: commands that parse their arguments, call a verb and print. See `solvable --help`."""

from __future__ import annotations


def main() -> None:
    """Run the command line and leave the process with its exit code."""
    import sys

    from solvable.cli.app import run

    sys.exit(run(sys.argv[1:], compile_cache=True))
