"""The models, one family a folder. Importing this package fills the registry."""

from __future__ import annotations

from solvable.models import features, index, lowrank, matrix

__all__ = ["features", "index", "lowrank", "matrix"]
