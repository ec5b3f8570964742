"""Attention whose tokens carry their places: the minimum of the risk is positional or semantic."""

from __future__ import annotations

from solvable.models.attention.positional import run, theory  # noqa: F401
from solvable.models.attention.positional.model import PositionalSemantic

__all__ = ["PositionalSemantic"]
