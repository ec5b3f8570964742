"""What the commands print: JSON for programs, tables for people."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Any

from solvable.core.plain import to_json


def show_json(value: Any) -> None:
    """Print JSON and nothing else; infinities and NaN are the strings "inf", "-inf", "nan"."""
    print(json.dumps(to_json(value), indent=2, allow_nan=False))


def show_text(text: str) -> None:
    """Print plain text."""
    print(text)


def show_table(columns: Iterable[str], rows: Iterable[Iterable[Any]], title: str | None = None) -> None:
    """Print a table; on a pipe it is as wide as it needs, on a terminal as wide as that is."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE, title=title, title_justify="left", pad_edge=False)
    for column in columns:
        table.add_column(column)
    for row in rows:
        table.add_row(*(Text(cell(value)) for value in row))
    Console(file=sys.stdout, width=None if sys.stdout.isatty() else 200, highlight=False).print(table)


def cell(value: Any) -> str:
    """Six digits for numbers, nothing for what is missing."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value)
