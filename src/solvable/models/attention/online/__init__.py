"""A direction that all tokens share, learned from samples one after another."""

from __future__ import annotations

from solvable.models.attention.online.descent import positional_transitions
from solvable.models.attention.online.learner import SequenceSGD
from solvable.models.attention.online.model import SequenceSingleIndex

__all__ = ["SequenceSGD", "SequenceSingleIndex", "positional_transitions"]
