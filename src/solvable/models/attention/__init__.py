"""Attention layers: of extensive rank, n = alpha d^2, and of one direction, n = alpha d, also sample by sample."""

from __future__ import annotations

from solvable.models.attention.indexed import AttentionIndexed, DeepAttentionIndexed
from solvable.models.attention.online import SequenceSGD, SequenceSingleIndex, positional_transitions
from solvable.models.attention.positional import PositionalSemantic
from solvable.models.attention.sequence import DeepAttention, SequenceIndex

__all__ = [
    "AttentionIndexed",
    "DeepAttention",
    "DeepAttentionIndexed",
    "PositionalSemantic",
    "SequenceIndex",
    "SequenceSGD",
    "SequenceSingleIndex",
    "positional_transitions",
]
