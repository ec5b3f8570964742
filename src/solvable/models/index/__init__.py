"""Multi-index and generalized linear models, n = alpha d."""

from __future__ import annotations

from solvable.models.index import (
    algorithms,
    erm,
    spectral_algorithms,
    spectral_theory,
    theory,
)
from solvable.models.index.multi_index import MultiIndex

__all__ = [
    "MultiIndex",
    "algorithms",
    "erm",
    "spectral_algorithms",
    "spectral_theory",
    "theory",
]
