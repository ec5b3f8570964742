"""The entries there are: every module of `entries` that defines `ENTRY`."""

from __future__ import annotations

import importlib
import pkgutil

from solvable.core.errors import bad_parameter
from solvable.lab.figures import entries
from solvable.lab.figures.entry import Entry

ALL = "all"


def all_entries() -> dict[str, Entry]:
    """Every entry by its id, in alphabetical order."""
    modules = (
        importlib.import_module(f"{entries.__name__}.{found.name}") for found in pkgutil.iter_modules(entries.__path__)
    )
    known = [module.ENTRY for module in modules if hasattr(module, "ENTRY")]
    return {entry.id: entry for entry in sorted(known, key=lambda entry: entry.id)}


def find_entries(id: str) -> list[Entry]:
    """The entry of that id, or all of them for `all`."""
    known = all_entries()
    if id == ALL:
        return list(known.values())
    if id not in known:
        raise bad_parameter("id", id, f"{ALL}, or one of: {', '.join(known)}")
    return [known[id]]


def find_entry(id: str) -> Entry:
    """The entry of that id."""
    known = all_entries()
    if id not in known:
        raise bad_parameter("entry", id, f"one of: {', '.join(known)}")
    return known[id]
