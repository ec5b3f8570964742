r"""Integrals over the largest eigenvalues of $Y = A + \sqrt D Z$, for every cut, from one evaluation of its law.

On each interval of the bulk the nodes of `free_sum` are those of Gauss and Legendre in an angle; what is integrated is
a polynomial in it to high accuracy, whose Legendre series is integrated term by term from the cut to the end.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import numpy as np
from numpy.polynomial.legendre import legvander

from solvable.core.precision import float64
from solvable.numerics.gaussian import gauss_legendre
from solvable.numerics.roots import crossing
from solvable.spectra.convolution import NODES, free_sum, nodes_each
from solvable.spectra.denoising import mmse_of
from solvable.spectra.law import Law

_SAME = 1e-8
"""Masses that differ by less are equal within the error of quadrature."""


class Moments(NamedTuple):
    r"""Integrals over the eigenvalues x above a cut, with h the Hilbert transform of mu_Y and f* = x - 2 D h.

    Of 1, x, h, x h and h^2; `missed` is that of f*^2 over the eigenvalues below the cut.
    """

    mass: float
    first: float
    hilbert: float
    cross: float
    square: float
    missed: float


class UpperPart:
    """The moments of the part of Y above a cut.

    A cut is a number k + t: in interval k of the bulk, t from 0 at its lower end to 1 at its upper end. `edges` are the
    eigenvalues at the ends, intervals x 2, and `mmse` is the error of the best estimate of A from Y.
    """

    def __init__(self, law: Law, D: float, nodes: int = NODES):
        count, most = (nodes_each(number, len(law.gaps) + 1) for number in (nodes, max(nodes, NODES)))
        node, share = gauss_legendre(count)
        # Filled up with nodes of no weight, so that rules share compiled code.
        rule = np.pad(node, (0, most - count), constant_values=0.5), np.pad(share, (0, most - count))
        *columns, error = (np.asarray(part) for part in _nodes(law, D, rule))
        x, h, shrunk, weight = (column[:, :count] for column in columns)
        basis = legvander(2 * node - 1, count - 1) * (2 * np.arange(count) + 1)
        parts = np.stack([weight, weight * x, weight * h, weight * x * h, weight * h**2, weight * shrunk**2], 1)
        self.D = D
        self.mmse = float(error)
        self._series = parts @ basis
        self._places = (x * share) @ basis
        self.edges = self._places @ legvander(np.array([-1.0, 1.0]), count - 1).T
        each = parts.sum(-1)
        # Row k: what interval k and all higher ones hold; in the last column what the lower ones hold.
        self._beyond = np.zeros((len(x) + 1, 6))
        self._beyond[:-1, :-1] = np.cumsum(each[::-1, :-1], 0)[::-1]
        self._beyond[1:, -1] = np.cumsum(each[:, -1])

    def beyond(self, k: int) -> Moments:
        """The moments of interval k and all higher ones."""
        return Moments(*self._beyond[k].tolist())

    def at(self, cut: float) -> tuple[float, Moments]:
        """The eigenvalue at a cut, and the moments above it."""
        k = min(int(cut), len(self._places) - 1)
        y = 2 * (cut - k) - 1
        count = self._places.shape[1]
        P = _legendre(y, count)
        integrals = np.empty(count)  # of P_0, P_1, .. from the cut to the end
        integrals[0] = (1 - y) / 2
        integrals[1:] = (P[:-2] - P[2:]) / (4 * np.arange(1, count) + 2)
        held = self._series[k] @ integrals
        held[-1] = -held[-1]
        return float(self._places[k] @ P[:-1]), Moments(*(self._beyond[k + 1] + held).tolist())

    def cut_of_mass(self, mass: float) -> float:
        """The cut above which there is that mass; 0, the lowest one, where it is the whole.

        It is the end of an interval, exactly, where that mass fills the intervals above a gap.
        """
        apart = np.concatenate([[True], self.edges[1:, 0] > self.edges[:-1, 1]])
        full = np.nonzero(apart & (np.abs(self._beyond[:-1, 0] - mass) < _SAME))[0]
        if len(full):
            return float(full[0])
        reached = np.nonzero(self._beyond[:, 0] >= mass)[0]
        if not len(reached):
            return 0.0
        k = int(reached[-1])
        return crossing(lambda cut: mass - self.at(cut)[1].mass, float(k), k + 1.0)


@float64
@jax.jit
def _nodes(law: Law, D: float, rule: tuple[np.ndarray, np.ndarray]) -> tuple[jax.Array, ...]:
    """x, h, f* = 2u - x and the weights, intervals x nodes, and the mmse."""
    found = free_sum(law, D, rule=rule)
    columns = found.x, found.hilbert, 2 * found.u - found.x, found.weight
    return *(column.reshape(len(law.gaps) + 1, -1) for column in columns), mmse_of(law, found)


def _legendre(y: float, degree: int) -> np.ndarray:
    """P_0(y) .. P_degree(y): the recurrence on plain numbers, which at one point is faster than on arrays."""
    values = [1.0, y]
    for n in range(1, degree):
        values.append(((2 * n + 1) * y * values[n] - n * values[n - 1]) / (n + 1))
    return np.array(values)
