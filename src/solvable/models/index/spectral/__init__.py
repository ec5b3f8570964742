"""Spectral methods of index models: the leading eigenvectors of message passing linearised at its start."""

from __future__ import annotations

from solvable.models.index.spectral import run, theory

__all__ = ["run", "theory"]
