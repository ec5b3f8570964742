"""One attention layer of extensive rank, learned from its attention matrices."""

from __future__ import annotations

from solvable.models.attention.indexed import descent
from solvable.models.attention.indexed.model import AttentionIndexed

__all__ = ["AttentionIndexed", "descent"]
