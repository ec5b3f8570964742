"""Multi-index and generalized linear models, n = alpha d."""

from __future__ import annotations

from solvable.models.index import erm_algorithms, erm_theory, informed
from solvable.models.index.multi_index import MultiIndex
from solvable.models.index.spectral import run, theory

__all__ = ["MultiIndex", "erm_algorithms", "erm_theory", "informed", "run", "theory"]
