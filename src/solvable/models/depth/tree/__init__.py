"""Targets that form a tree: functions of sums of functions of projections."""

from __future__ import annotations

from solvable.models.depth.tree import kernel, layerwise, lofi, theory  # noqa: F401  (they fill the registry)
from solvable.models.depth.tree.model import TreeTarget

__all__ = ["TreeTarget"]
