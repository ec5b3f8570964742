r"""Hardmax attention with untied keys and queries: each token names the largest of T independent scores.

Given what is known the scores are taken as independent, $h_{ab} \sim N(\omega_{ab}, V)$, and the rows of a label as
labels by themselves: what is left out is that the symmetric part of S is known better than the other (`model.py`). With
u the largest score of a row and y its place, x = omega / sqrt(V),

    P(y) = int phi(u - x_y) prod_{b != y} Phi(u - x_b) du,
    g_b = -E_u[r_b] / sqrt(V)  (b != y),    g_y = E_u[u - x_y] / sqrt(V),    r_b = phi(u - x_b) / Phi(u - x_b),

E_u the mean under that integrand: the orthant probability of T - 1 differences of correlation 1/2, an integral over one
number for any T. The integrand is log-concave in u, at least as narrow as phi, and entire: the trapezoidal rule around
its mode has the accuracy of rounding.

The information of a sample is J(q/V)/V, T times that of a row,

    J / T = E_x sum_y P(y)^{-1} [ sum_{b != y} D_yb^2 + (sum_{b != y} D_yb)^2 ],    D_yb = -d P(y) / d x_b,

averaged over the T - 1 differences of x by Sobol points. At t = sqrt(V) -> 0 only ties inform and J/t has a closed
limit; at V = 1 all is closed, J = T^4 (T - 1) (int phi^2 Phi^{T-2})^2. J/t is a smooth function of t between them.
[boncoraglio2025bayes]
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, NamedTuple

import numpy as np
from scipy.special import log_ndtr

from solvable.engine.sides import BayesOutput, OutputStep
from solvable.models.attention.indexed.ties import Ties, fitted, tied_pair
from solvable.numerics.gaussian import expectation, normal_density
from solvable.numerics.sobol import normal_points
from solvable.numerics.subspaces import complement

_LOG_ROOT = float(np.log(2 * np.pi) / 2)
_STEP, _REACH = 0.25, 7.0
"""The step of the rule in u and how far it goes out; the integrand is at most about 1/sqrt(T) narrow."""
_BELOW = 9.0
"""How far below the largest x the largest score may be, in averages over all labels."""
_CLIMBS = 60
_STILL = 1e-6
_NODES = np.array([0.06, 0.12, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95])
_DEGREE, _POLYNOMIAL = 7, 1e-5
"""The degree of J/t, and how near it comes to J/t but for sampling."""
_POWER, _REPLICAS = 11, 6
_NEGLIGIBLE = 1e-30
_BLOCK = 2**20


class Row(NamedTuple):
    """log P of labels of rows, and the slope of log P in each x and minus its second derivative there (n, T)."""

    log_P: np.ndarray
    slope: np.ndarray
    bend: np.ndarray


def posterior(x: np.ndarray, label: np.ndarray) -> Row:
    """The derivatives of log P at the labels (n,) of rows whose scores are known up to N(0, 1) around x (n, T)."""
    n, T = x.shape
    found = Row(np.empty(n), np.empty((n, T)), np.empty((n, T)))
    steps = np.arange(-_REACH, _REACH + _STEP / 2, _STEP)
    size = max(1, _BLOCK // (len(steps) * T))
    for start in range(0, n, size):
        rows = slice(start, start + size)
        own = np.take_along_axis(x[rows], label[rows, None], 1)
        others = x[rows][np.arange(T) != label[rows, None]].reshape(-1, T - 1)
        u = _mode(own[:, 0], others)[:, None] + steps
        away, below = u - own, u[:, :, None] - others[:, None, :]
        log_below = log_ndtr(below)
        log_w = log_below.sum(-1) - away**2 / 2 - _LOG_ROOT
        top = log_w.max(1, keepdims=True)
        w = np.exp(log_w - top)
        total = w.sum(1)
        w /= total[:, None]
        ratio = np.exp(-(below**2) / 2 - _LOG_ROOT - log_below)
        mean, own_mean = np.einsum("nu,nub->nb", w, ratio), np.sum(w * away, 1)
        found.log_P[rows] = top[:, 0] + np.log(total * _STEP)
        place = np.arange(T) == label[rows, None]
        slope, bend = np.empty(place.shape), np.empty(place.shape)
        slope[place], slope[~place] = own_mean, -mean.ravel()
        bend[place] = 1 + own_mean**2 - np.sum(w * away**2, 1)
        bend[~place] = (np.einsum("nu,nub->nb", w, below * ratio) + mean**2).ravel()
        found.slope[rows], found.bend[rows] = slope, bend
    return found


def _mode(own: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Where the integrand is largest. The slope of its logarithm is convex: Newton's steps from below never pass it."""
    u = own.copy()
    for _ in range(_CLIMBS):
        below = u[:, None] - others
        ratio = np.exp(-(below**2) / 2 - _LOG_ROOT - log_ndtr(below))
        step = (ratio.sum(1) - (u - own)) / (1 + np.sum(ratio * (ratio + below), 1))
        u += step
        if np.all(np.abs(step) < _STILL):
            break
    return u


def row_information(tokens: int, ratio: float, power: int = _POWER, replica: int = 0) -> float:
    """J/T at q/V = `ratio`, by 2^power Sobol points."""
    basis = complement(np.full((tokens, 1), tokens**-0.5))
    x = np.sqrt(ratio) * normal_points(tokens - 1, power, replica) @ basis.T
    x -= x.max(1, keepdims=True)
    u = np.arange(-_BELOW, _REACH + _STEP / 2, _STEP)
    total, size = 0.0, max(1, _BLOCK // (len(u) * tokens))
    for start in range(0, len(x), size):
        below = u[:, None] - x[start : start + size, None, :]
        log_below = log_ndtr(below)
        ratios = np.exp(-(below**2) / 2 - _LOG_ROOT - log_below)
        w = _STEP * np.exp(log_below.sum(-1))
        P = np.einsum("nu,nub->nb", w, ratios)
        D = np.matmul((w[:, :, None] * ratios).transpose(0, 2, 1), ratios)
        D[:, np.arange(tokens), np.arange(tokens)] = 0.0
        total += float(np.sum((np.sum(D**2, -1) + np.sum(D, -1) ** 2) / np.maximum(P, _NEGLIGIBLE)))
    return total / len(x)


def nothing_known(tokens: int) -> float:
    """J/T where nothing is known: all labels of a row are equal."""
    return tokens**3 * (tokens - 1) * _slope_at_nothing(tokens) ** 2


def _slope_at_nothing(tokens: int) -> float:
    """c = int phi^2 Phi^{T-2}: minus the slope of P(y) in any other score of the row, at equal ones."""
    return expectation(lambda u: normal_density(u) * np.exp((tokens - 2) * log_ndtr(u)))


@functools.cache
def _table(tokens: int) -> Ties:
    """J/T as a function of t."""
    found = np.array([[row_information(tokens, t**-2 - 1, replica=k) / t for t in _NODES] for k in range(_REPLICAS)])
    t, mean = np.append(_NODES, 1.0), np.append(found.mean(0), nothing_known(tokens))
    error = np.append(found.std(0, ddof=1) / np.sqrt(_REPLICAS), 0.0)
    limit = tokens * (tokens - 1) / 2 * tied_pair(0.5, tokens - 2, 0)
    return fitted(limit, t, mean, np.hypot(error, _POLYNOMIAL * mean), _DEGREE)


@dataclasses.dataclass(frozen=True)
class UntiedHardmaxOutput(BayesOutput):
    """The largest score of each of `tokens` rows of independent scores."""

    tokens: int
    monotone = True

    @property
    def projections(self) -> int:
        return 1

    def information(self, V: Any) -> Any:
        V = np.asarray(V, float)
        return self.tokens * _table(self.tokens)(np.sqrt(V)) / V

    def information_error(self, V: Any) -> np.ndarray:
        return _table(self.tokens).relative_error(np.sqrt(np.asarray(V, float)))

    def denoiser(self, y: np.ndarray) -> UntiedHardmaxLabels:
        return UntiedHardmaxLabels(np.asarray(y, int))


class UntiedHardmaxLabels:
    """The denoiser of labels `y` (n, T), for the T^2 scores of a sample, row by row; `always` (n T^2, 1) is the part of
    the scores that is known beside the estimate."""

    def __init__(self, y: np.ndarray, always: float | np.ndarray = 0.0):
        self.y, self.always = y, always

    def __call__(self, Omega: np.ndarray, V: np.ndarray) -> OutputStep:
        v, T = float(V[0, 0]), self.y.shape[1]
        found = posterior((Omega + self.always).reshape(-1, T) / np.sqrt(v), self.y.ravel())

        def log_Z() -> np.ndarray:
            return found.log_P.reshape(self.y.shape).sum(1)

        return OutputStep(
            (found.slope / np.sqrt(v)).reshape(-1, 1), np.full((1, 1), found.bend.mean() / v), None, log_Z
        )


def shift_of_own(y: np.ndarray) -> float:
    """What all tokens add to the score of themselves, by how many of the labels y (n, T) name their own token.

    It is Tr S / sqrt(d), of order 1/sqrt(d): the mean of the features that a run leaves out of its operator.
    """
    T = y.shape[1]
    share = float(np.mean(y == np.arange(T)))
    return (share - 1 / T) / ((T - 1) * _slope_at_nothing(T))
