"""Attention layers: attention-indexed models, n = alpha d^2."""

from __future__ import annotations

from solvable.models.attention.indexed import AttentionIndexed

__all__ = ["AttentionIndexed"]
