"""Attention of few directions, learned from n = alpha d samples."""

from __future__ import annotations

from solvable.models.attention.sequence import descent
from solvable.models.attention.sequence.index import SequenceIndex
from solvable.models.attention.sequence.model import DeepAttention

__all__ = ["DeepAttention", "SequenceIndex", "descent"]
