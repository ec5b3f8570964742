"""`python -m solvable` is the command line."""

from __future__ import annotations

from solvable.cli import main

if __name__ == "__main__":
    main()
