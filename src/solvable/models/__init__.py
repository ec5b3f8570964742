"""The models, one family a folder. Importing this package fills the registry."""

from __future__ import annotations

from solvable.models import attention, depth, features, index, lowrank, matrix

__all__ = ["attention", "depth", "features", "index", "lowrank", "matrix"]
