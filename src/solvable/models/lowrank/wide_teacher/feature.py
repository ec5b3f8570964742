r"""One feature of a wide teacher, which its samples show as if it were the spike of a noisy tensor.

With $\kappa$ the samples per dimension times the squared amplitude of the feature, over the variance of all that hides
it, the overlap q of its weights maximises

    kappa g(q) - h(q),        h(q) = -log(1 - q) - q,

so that $\kappa = q/((1-q) g'(q))$: the curve of stationary points is explicit. Since g'(0) = 0, q = 0 is a local
maximum at every $\kappa$, and the best q jumps from 0 at a transition $\kappa_{IT}$, above the `spinodal` where the
other maximum appears. For $g = q^3$ these are the transitions of a Gaussian spike in a tensor of order three and noise
$\Delta = 1/(3\kappa)$: spinodal 4/3 and $\kappa_{IT}$ = 1.4557767. A kernel of several degrees may jump again.

q, D = g(1) - g(q) and h of the best q are read off tables in x = log kappa, made once.
"""

from __future__ import annotations

import functools
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy import special

from solvable.models.lowrank.wide_teacher.kernel import Kernel
from solvable.numerics.interpolation import PiecewiseChebyshev, chebyshev_nodes, fit
from solvable.numerics.roots import crossing, golden_section, illinois

_LOGITS = np.arange(-12.0, 140.0, 0.02)
_TOP = 60.0
"""log kappa up to which tables go; beyond it log q/(1-q) and log D are linear."""
_DEGREE = 16
_WIDEST = 2.0
_SCAN = 2000


class Rise(NamedTuple):
    """A stretch of the curve along which kappa rises with q, on a grid of t = log(q/(1-q)): stationary maxima."""

    t: np.ndarray
    x: np.ndarray


class Branch(NamedTuple):
    """The best overlap between two transitions: x = log kappa from `low` to `high`, on a rise."""

    low: float
    high: float
    rise: Rise


class Feature:
    """The best overlap of a feature, and what is left of it, as functions of kappa."""

    def __init__(self, kernel: Kernel):
        self.kernel = kernel

    def log_kappa(self, t: np.ndarray) -> np.ndarray:
        """log kappa along the curve of stationary points, at t = log(q/(1-q))."""
        return t - np.log(self.kernel.slope(special.expit(-t)))

    def gain(self, t: np.ndarray, x: np.ndarray) -> np.ndarray:
        """kappa g(q) - h(q)."""
        return np.exp(x) * (self.kernel.total - self.kernel.deficit(special.expit(-t))) - cost(t)

    @functools.cached_property
    def rises(self) -> list[Rise]:
        """The stretches along which kappa rises, from left to right; the first begins at the spinodal, or one does."""
        x = self.log_kappa(_LOGITS)
        up = np.concatenate([[False], np.diff(x) > 0])
        starts = np.nonzero(up & ~np.roll(up, 1))[0]
        ends = np.append(np.nonzero(~up[1:] & up[:-1])[0], len(x) - 1)
        found = []
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            inner = slice(start + 1, end if end < len(x) - 1 else end + 1)
            low = self._turn(start - 1, 1.0)
            high = () if end == len(x) - 1 else (self._turn(end, -1.0),)
            t = np.concatenate([[low], _LOGITS[inner], high])
            found.append(Rise(t, self.log_kappa(t)))
        return found

    def _turn(self, index: int, sign: float) -> float:
        """The extremum of the curve next to a point of the grid: a minimum, or with `sign` -1 a maximum."""
        low, high = _LOGITS[index - 1], _LOGITS[index + 1]
        return float(golden_section(lambda t: sign * self.log_kappa(t[None])[0], low, high, 40).middle)

    @property
    def spinodal(self) -> float:
        """The least kappa at which a maximum with q > 0 exists."""
        return float(np.exp(min(rise.x[0] for rise in self.rises)))

    @functools.cached_property
    def branches(self) -> list[Branch]:
        """The best q > 0 as kappa grows, from the first transition on."""
        least = min(rise.x[0] for rise in self.rises)
        x = least + np.linspace(0.0, 1.0, _SCAN) * max([3.0, *(1 + rise.x[-1] - least for rise in self.rises[:-1])])
        while self._best(x[-1:])[0] != len(self.rises):
            x = x[-1] + (x - x[0])
        best = self._best(x)
        changes = [(0.0, int(best[0]))] if best[0] else []
        for i in np.nonzero(np.diff(best))[0]:
            old, new = int(best[i]), int(best[i + 1])
            changes.append((crossing(partial(self._lead, old, new), x[i], x[i + 1]), new))
        lows = [low for low, _ in changes]
        return [
            Branch(low, high, self.rises[new - 1])
            for (low, new), high in zip(changes, [*lows[1:], np.inf], strict=True)
        ]

    def _best(self, x: np.ndarray) -> np.ndarray:
        """Which rise, counted from 1, has the largest gain at each x; 0 where q = 0 has."""
        heights = np.array([self._heights(number, x) for number in range(len(self.rises) + 1)])
        return np.argmax(heights, axis=0)

    def _heights(self, number: int, x: np.ndarray) -> np.ndarray:
        if number == 0:
            return np.zeros(len(x))
        rise = self.rises[number - 1]
        there = (x >= rise.x[0]) & (x <= rise.x[-1])
        found = np.full(len(x), -np.inf)
        found[there] = self.gain(self._logit(rise, x[there]), x[there])
        return found

    def _lead(self, old: int, new: int, x: float) -> float:
        """By how much the gain of one rise exceeds that of another."""
        return float(self._heights(new, np.array([x]))[0] - self._heights(old, np.array([x]))[0])

    def _logit(self, rise: Rise, x: np.ndarray) -> np.ndarray:
        """t at x on a rise."""
        index = np.clip(np.searchsorted(rise.x, x), 1, len(rise.x) - 1)
        low, high = rise.t[index - 1], rise.t[index]
        return illinois(lambda t, level: self.log_kappa(t) - level, low, high, x)

    @property
    def transitions(self) -> np.ndarray:
        """The kappa at which the best q jumps; the first is the information-theoretic transition, from q = 0."""
        return np.exp([branch.low for branch in self.branches])

    # The tables

    @functools.cached_property
    def _tables(self) -> tuple[PiecewiseChebyshev, PiecewiseChebyshev]:
        """t and log D of the best q over x, from the first transition on."""
        panels, logits = [], []
        for branch in self.branches:
            edges = _graded(branch)
            nodes = chebyshev_nodes(edges, _DEGREE)
            panels.append(edges[:-1])
            logits.append(self._logit(branch.rise, nodes.ravel()).reshape(nodes.shape))
        edges, t = np.append(np.concatenate(panels), _TOP), np.concatenate(logits)
        return fit(edges, _DEGREE, t), fit(edges, _DEGREE, np.log(self.kernel.deficit(special.expit(-t))))

    @property
    def edges(self) -> np.ndarray:
        """Ends of panels in x between which everything is smooth."""
        return self._tables[0].edges

    def logit(self, x: np.ndarray) -> np.ndarray:
        """log(q/(1-q)) of the best q at x = log kappa, above the first transition."""
        return self._tables[0](x)

    def log_deficit(self, x: np.ndarray) -> np.ndarray:
        """log D at the best q, above the first transition."""
        return self._tables[1](x)

    def log_deficit_slope(self, x: np.ndarray) -> np.ndarray:
        """Its derivative in x."""
        return self._tables[1].derivative(x)

    def overlap(self, kappa: np.ndarray) -> np.ndarray:
        """The best q at any kappa; zero below the first transition."""
        with np.errstate(divide="ignore"):
            x = np.log(np.asarray(kappa, float))
        start = self.branches[0].low
        return np.where(x >= start, special.expit(self.logit(np.maximum(x, start))), 0.0)


def cost(t: np.ndarray) -> np.ndarray:
    """h(q) = -log(1 - q) - q at t = log(q/(1-q))."""
    return np.logaddexp(0.0, t) - special.expit(t)


def _graded(branch: Branch) -> np.ndarray:
    """Ends of panels between the ends of a branch, finer where it ends near an extremum of the curve."""
    high = min(branch.high, _TOP)
    left = max(branch.low - branch.rise.x[0], 1e-6)
    right = branch.rise.x[-1] - high if branch.high < _TOP else np.inf
    edges = [branch.low]
    while edges[-1] < high:
        room = min(left + edges[-1] - branch.low, max(right + high - edges[-1], 1e-6), 2 * _WIDEST)
        edges.append(edges[-1] + room / 2)
    edges[-1] = high
    return np.array(edges)
