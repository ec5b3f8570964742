"""Attention layers of extensive rank, learned from attention matrices: one, or several."""

from __future__ import annotations

from solvable.models.attention.indexed import descent
from solvable.models.attention.indexed.deep import DeepAttentionIndexed
from solvable.models.attention.indexed.model import AttentionIndexed

__all__ = ["AttentionIndexed", "DeepAttentionIndexed", "descent"]
