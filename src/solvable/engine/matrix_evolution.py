r"""State evolution of several projections: Bayes-optimal learning and AMP as fixed points of an r x r matrix.

With the information E[g g^T](M) of the channel and the Gaussian prior N(0, I_r) the fixed points solve

    Mhat = alpha E[g g^T](M),    M = I - (I + Mhat)^{-1},

and are the stationary points of the free entropy (relative to knowing nothing)

    phi(M) = Tr M / 2 + log det(I - M) / 2 + alpha (Psi(M) - Psi(0)).

AMP reaches the smallest fixed point above an infinitesimal positive start. Without noise a direction may be recovered
exactly: the labels that depend on k directions U only, and not flatly, must be more than k per unknown, for U and for
what is left of U once any part of it is known. The rest then sees the channel in which U is known.
"""

from __future__ import annotations

import functools

import numpy as np

from solvable.channels.base import Channel
from solvable.engine.matrix_branches import Branches
from solvable.engine.matrix_output import MatrixOutput
from solvable.engine.matrix_points import MatrixFixedPoints, collect

_GRIDS = 256
"""How many grids of alpha are remembered with their fixed points."""


class MatrixStateEvolution:
    """Fixed points of one channel of r projections with a Gaussian prior.

    A result depends on the grid of alpha that it was asked for, along which points are continued, to the last bit; it
    does not depend on what was asked before.
    """

    def __init__(self, channel: Channel):
        self.output = MatrixOutput(channel)
        # The uninformed points of a grid serve its optimal ones too, and a grid asked for again.
        self._along = functools.lru_cache(maxsize=_GRIDS)(lambda grid: self.branches())

    @property
    def calls(self) -> int:
        """How often the information of the channel, or of one with known directions, has been evaluated."""
        return self.output.calls

    def branches(self) -> Branches:
        """A computation that has found nothing yet, and shares what the labels say with all others."""
        return Branches(self.output)

    def uninformed(self, alpha: np.ndarray) -> MatrixFixedPoints:
        """The fixed points that AMP reaches from an uninformed start."""
        grid = _ascending(alpha)
        branches = self._along(grid)
        with branches.lock:
            return collect([branches.uninformed_point(a) for a in grid], alpha)

    def optimal(self, alpha: np.ndarray) -> MatrixFixedPoints:
        """The fixed points of largest free entropy: what no learner can beat."""
        grid = _ascending(alpha)
        branches = self._along(grid)
        with branches.lock:
            for a in grid:
                branches.uninformed_point(a)
            # From above: what is known at a larger alpha bounds what can be known at a smaller one.
            return collect([branches.optimal_point(a) for a in reversed(grid)], alpha)

    def free_entropy(self, M: np.ndarray, alpha: float) -> float:
        """phi at any M with eigenvalues below one."""
        found, nothing = self.output.labels(M), self.output.labels(np.zeros_like(M))
        log_det = float(np.log(np.linalg.eigvalsh(np.eye(len(M)) - M)).sum())
        return (float(np.trace(M)) + log_det) / 2 + alpha * (found.entropy - nothing.entropy)


def _ascending(alpha: np.ndarray) -> tuple[float, ...]:
    return tuple(sorted({float(a) for a in np.ravel(alpha)}))
