"""The output side of a matrix state evolution: what the labels of a channel say, each thing computed once.

Nothing here depends on alpha or on earlier questions, so all that is solved for one channel shares it.
"""

from __future__ import annotations

import functools
import itertools

import numpy as np

from solvable.channels.base import Channel, Linearisation
from solvable.engine.labels import Labels
from solvable.numerics.cache import Kept

_MOST_LINEARISATIONS, _MOST_MASSES, _MOST_FROZEN = 1024, 1024, 64


class MatrixOutput:
    """E[g g^T] and Psi (`labels`) of a channel, its linearisations, and what its labels can pin down exactly."""

    def __init__(self, channel: Channel):
        self.channel = channel
        self.labels = Labels(channel)
        self._linearised = Kept(self._linearisation, _MOST_LINEARISATIONS)
        self._masses = Kept(channel.pinned_mass, _MOST_MASSES)
        self._frozen = Kept(lambda directions: MatrixOutput(channel.known(directions)), _MOST_FROZEN)

    @property
    def projections(self) -> int:
        return self.channel.projections

    @property
    def calls(self) -> int:
        """How often the information of the channel, or of one with known directions, has been evaluated."""
        return self.labels.calls + sum(child.calls for child in self._frozen.values)

    def linearisation(self, M: np.ndarray, basis: np.ndarray) -> Linearisation:
        """How state evolution moves off M in the directions `basis`; ArithmeticError if that is not finite."""
        return self._linearised(M, basis)

    def frozen(self, directions: np.ndarray) -> MatrixOutput:
        """The output side for the other directions once these are known exactly."""
        return self._frozen(directions)

    def mass(self, directions: np.ndarray) -> float:
        """The probability of a label that depends on these directions only, and not flatly."""
        return self._masses(directions) if directions.shape[1] else 0.0

    def alpha_exact(self, directions: np.ndarray) -> float:
        """The alpha above which exact knowledge of these directions (r x k) is stable.

        For each part W of them that may be known (columns), the labels that depend on them, but not on W alone, must
        exceed the unknowns left: alpha (mass(all) - mass(W)) > k - dim W. Infinite with noise or discrete labels.
        """
        k = directions.shape[1]
        if not self.channel.deterministic or self.channel.discrete or not k:
            return np.inf
        whole = self.mass(directions)
        parts = (list(chosen) for size in range(k) for chosen in itertools.combinations(range(k), size))
        masses = ((whole - self.mass(directions[:, part]), k - len(part)) for part in parts)
        return max(left / mass if mass > 1e-12 else np.inf for mass, left in masses)

    def pins(self, directions: np.ndarray, alpha: float) -> bool:
        """Whether, without noise, exact knowledge of these directions is stable."""
        return alpha > self.alpha_exact(directions)

    @functools.cached_property
    def subspaces(self) -> list[np.ndarray]:
        """The coordinate subspaces, of which a better fixed point may know one: smallest first, the whole last."""
        r = self.projections
        sizes = range(1, r + 1)
        return [np.eye(r)[:, list(axes)] for size in sizes for axes in itertools.combinations(range(r), size)]

    def _linearisation(self, M: np.ndarray, basis: np.ndarray) -> Linearisation:
        found = self.channel.linearisation(M, basis)
        if not (np.isfinite(found.trivial).all() and np.isfinite(found.easy).all()):
            raise ArithmeticError(f"the linearisation of {self.channel!r} at M = {M.tolist()} is not finite.")
        return found
