"""The models, one family a folder. Importing this package fills the registry."""

from __future__ import annotations

from solvable.models import attention, features, index, lowrank, matrix

__all__ = ["attention", "features", "index", "lowrank", "matrix"]
