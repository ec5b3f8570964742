"""Channels of sequences: labels of T tokens that share their r directions."""

from __future__ import annotations

from solvable.channels.sequence.base import SequenceChannel

__all__ = ["SequenceChannel"]
