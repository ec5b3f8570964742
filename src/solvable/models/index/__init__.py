"""Multi-index and generalized linear models, n = alpha d."""

from __future__ import annotations

from solvable.engine.erm import run, theory, thresholds
from solvable.models.index import dynamics, informed, kernel, lofi, spectral
from solvable.models.index.multi_index import MultiIndex

__all__ = ["MultiIndex", "dynamics", "informed", "kernel", "lofi", "run", "spectral", "theory", "thresholds"]
