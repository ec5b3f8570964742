"""Ask the registry; before it answers that something is missing, load every family that fills it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from solvable.core.errors import NotSimulable, NotSolvable

Entry = TypeVar("Entry")


def looked_up(find: Callable[..., Entry], *given: object) -> Entry:
    """What `find` has for a model, or for a pair; its error names all models and learners, whatever is loaded yet."""
    try:
        return find(*given)
    except (NotSolvable, NotSimulable):
        import solvable.models  # noqa: F401

        return find(*given)
