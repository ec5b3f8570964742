"""The models, one family a folder. Importing this package fills the registry."""

from __future__ import annotations

from solvable.models import index, matrix

__all__ = ["index", "matrix"]
