"""Multi-index and generalized linear models, n = alpha d."""

from __future__ import annotations

from solvable.engine.erm import run, theory, thresholds
<<<<<<< HEAD
from solvable.models.index import dynamics, informed, spectral
from solvable.models.index.multi_index import MultiIndex

__all__ = ["MultiIndex", "dynamics", "informed", "run", "spectral", "theory", "thresholds"]
=======
from solvable.models.index import informed, spectral
from solvable.models.index.dynamics import batch
from solvable.models.index.dynamics.learners import BatchGD
from solvable.models.index.multi_index import MultiIndex

__all__ = ["BatchGD", "MultiIndex", "batch", "informed", "run", "spectral", "theory", "thresholds"]
>>>>>>> dmft
