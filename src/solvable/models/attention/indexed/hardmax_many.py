r"""Hardmax attention of three tokens and more: each token names the largest of its scores.

Token a picks the score $h_{a y_a}$, and every other score of its row is smaller. A picked pair {a, b} of two tokens
that name each other, or a token that names itself, has no bound; any other picked score is below that of the token it
names; and a score that nobody picks is below those that its tokens picked. So scores are drawn one after another, each
from a Gaussian cut off above, and those that nobody picks are integrated out [geweke1991efficient]:

    P(y) = E prod_e Phi(b_e),    b_e = (bound_e - omega_e) / sigma_e,    sigma_ab^2 = (1 + delta_ab) V,

an average over at most T coordinates. Each is drawn around its own posterior mean, found by a
few draws before. A cycle
of three tokens or more is no label.

The information of a sample is J(q/V)/V. As $t = (1 + q/V)^{-1/2}$ falls to 0 only ties inform, and J/t tends to a
closed number; J/t is a smooth function of t, kept as a table (`hardmax_table`) with the error of its sampling.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from typing import Any, NamedTuple

import numpy as np
from scipy.special import log_ndtr, ndtri, ndtri_exp

from solvable.engine.sides import BayesOutput, OutputStep
from solvable.engine.token_pairs import pairs
from solvable.models.attention.indexed.hardmax_table import TABLE
from solvable.models.attention.indexed.ties import Ties, fitted, tied_pair
from solvable.numerics.sobol import normal_points

_LOG_ROOT = float(np.log(2 * np.pi) / 2)
_PILOT, _PASSES = 32, 3
"""Draws and rounds in which the centres of the draws are found."""
_DRAWS = 64
"""Draws for each sample of message passing."""
_EDGE = 1e-12
_DEGREE = 4
_BLOCK = 2**20


class Order(NamedTuple):
    """The scores of a label in the order in which they are drawn: `picks`, each with the number of the pick that
    bounds it (-1: none), and `rest`, each with those of the picks below which it lies."""

    picks: tuple[tuple[int, int], ...]
    rest: tuple[tuple[int, tuple[int, ...]], ...]


@functools.cache
def order_of(label: tuple[int, ...]) -> Order | None:
    """The order of the scores $a \\le b$ of a label, or None where no scores have it."""
    T = len(label)
    number = np.zeros((T, T), int)
    number[pairs(T)[:2]] = np.arange(T * (T + 1) // 2)
    number = np.maximum(number, number.T)
    own = [int(number[a, b]) for a, b in enumerate(label)]
    picks: list[tuple[int, int]] = []
    waiting = set(range(T))
    while waiting:
        free = {a for a in waiting if label[label[a]] == a}
        ready = free or {a for a in waiting if label[a] not in waiting}
        if not ready:
            return None
        for a in sorted(ready):
            bound = -1 if a in free else own[label[a]]
            if own[a] not in [pick for pick, _ in picks]:
                picks.append((own[a], bound))
        waiting -= ready
    chosen = [pick for pick, _ in picks]
    rest = tuple(
        (int(number[a, b]), tuple(sorted({own[a], own[b]})))
        for a, b in itertools.combinations_with_replacement(range(T), 2)
        if number[a, b] not in chosen
    )
    return Order(tuple(picks), rest)


class Moments(NamedTuple):
    """log P (n,) of labels, and the mean and the mean square of $(h_e - \\omega_e)/\\sigma_e$ given them, (n, m)."""

    log_P: np.ndarray
    mean: np.ndarray
    square: np.ndarray


def posterior(omega: np.ndarray, label: tuple[int, ...], u: np.ndarray, pilot: np.ndarray) -> Moments:
    """The moments of scores of one label, $\\omega$ (n, m) in units of $\\sqrt V$, by uniform draws u (n, K, T).

    The centres are found with the draws `pilot`: those that are fitted to the draws they are used with bias them.
    """
    order, scale = order_of(label), pairs(len(label))[2]
    if order is None:
        raise ValueError(f"no scores have the label {label}.")
    centre = np.zeros(omega.shape)
    for _ in range(_PASSES):
        centre = _moments(omega, order, scale, pilot, centre).mean
    return _moments(omega, order, scale, u, centre)


def _moments(omega: np.ndarray, order: Order, scale: np.ndarray, u: np.ndarray, centre: np.ndarray) -> Moments:
    mean, square = np.empty((2, *omega.shape, u.shape[1]))
    height: dict[int, np.ndarray] = {}
    log_weight = np.zeros(u.shape[:2])
    for draw, (entry, bound) in enumerate(order.picks):
        at, shift = omega[:, entry, None], centre[:, entry, None]
        # Around the posterior mean, but as wide as without a label: a narrower law would miss a tail.
        if bound < 0:
            z = shift + ndtri(u[:, :, draw])
        else:
            log_P = log_ndtr((height[bound] - at) / scale[entry] - shift)
            log_weight += log_P
            z = shift + ndtri_exp(np.log(u[:, :, draw]) + log_P)
        log_weight += shift * (shift / 2 - z)
        height[entry] = at + scale[entry] * z
        mean[:, entry], square[:, entry] = z, z**2
    for entry, bounds in order.rest:
        least = functools.reduce(np.minimum, (height[pick] for pick in bounds))
        b = (least - omega[:, entry, None]) / scale[entry]
        log_P = log_ndtr(b)
        log_weight += log_P
        slope = np.exp(-(b**2) / 2 - _LOG_ROOT - log_P)
        mean[:, entry], square[:, entry] = -slope, 1 - b * slope
    top = log_weight.max(1)
    weight = np.exp(log_weight - top[:, None])
    total = weight.sum(1)
    return Moments(
        top + np.log(total / u.shape[1]),
        np.einsum("nmk,nk->nm", mean, weight) / total[:, None],
        np.einsum("nmk,nk->nm", square, weight) / total[:, None],
    )


def moments(omega: np.ndarray, labels: np.ndarray, shifts: np.ndarray, draws: int, number: int = 0) -> Moments:
    """The moments at labels (n, T), by Sobol points that are shifted for each sample, by `shifts` (n, 2, T)
    of the draws and of their pilots."""
    n, m = omega.shape
    found = Moments(np.empty(n), np.empty((n, m)), np.empty((n, m)))
    points = _uniform(labels.shape[1], draws, number)
    size = max(1, _BLOCK // (draws * m))
    for label in np.unique(labels, axis=0):
        rows = np.flatnonzero((labels == label).all(1))
        for start in range(0, len(rows), size):
            some = rows[start : start + size]
            u, pilot = (
                np.clip((rows_of + shifts[some, None, k]) % 1, _EDGE, 1 - _EDGE)
                for k, rows_of in enumerate((points, points[:_PILOT]))
            )
            for whole, part in zip(found, posterior(omega[some], tuple(map(int, label)), u, pilot), strict=True):
                whole[some] = part
    return found


@functools.lru_cache(maxsize=8)
def _uniform(dimensions: int, draws: int, number: int) -> np.ndarray:
    from scipy.special import ndtr

    return ndtr(normal_points(dimensions, int(np.log2(draws)), number))


def _shifts(rng: np.random.Generator, labels: np.ndarray) -> np.ndarray:
    return rng.random((len(labels), 2, labels.shape[1]))


def labels_of(h: np.ndarray) -> np.ndarray:
    """The token of the largest score in each row of h (n, T, T)."""
    return h.argmax(-1)


def drawn_information(tokens: int, ratio: float, power: int, draws: int, replica: int = 0) -> float:
    r"""J at q/V = `ratio` from $2^{power}$ drawn samples: V times $E \sum_{a \le b} (1 + \delta_{ab}) g_{ab}^2$.

    The square of the posterior mean is that of two independent sets of draws. What is known of averages takes most of
    the noise away: the mean square of $(h - \omega)/\sigma$ is one, and its mean has no correlation with $\omega$.
    """
    first, second, scale = pairs(tokens)
    m = len(scale)
    drawn = normal_points(2 * m, power, replica)
    omega = np.sqrt(ratio) * drawn[:, :m] * scale
    h = np.zeros((len(drawn), tokens, tokens))
    h[:, first, second] = h[:, second, first] = omega + drawn[:, m:] * scale
    labels = labels_of(h)
    rng = np.random.default_rng([2025, replica])
    one, two = (_unbiased(omega, labels, rng, draws, 4 * replica + 2 * k) for k in (0, 1))
    J = np.sum(one.mean * two.mean, 1)
    controls = np.stack([np.sum(one.square + two.square - 2, 1), np.sum((one.mean + two.mean) * drawn[:, :m], 1)], 1)
    centred = controls - controls.mean(0)
    slope = np.linalg.lstsq(centred, J - J.mean(), rcond=None)[0]
    return float(J.mean() - controls.mean(0) @ slope)


def _unbiased(omega: np.ndarray, labels: np.ndarray, rng: np.random.Generator, draws: int, number: int) -> Moments:
    """The moments by two sets of draws, whose difference from both together is the bias of a ratio of averages."""
    one, two = (moments(omega, labels, _shifts(rng, labels), draws, number + k) for k in (0, 1))
    log_P = np.logaddexp(one.log_P, two.log_P)
    shares = [np.exp(part.log_P - log_P)[:, None] for part in (one, two)]
    mean, square = (
        2 * (shares[0] * first + shares[1] * second) - (first + second) / 2
        for first, second in ((one.mean, two.mean), (one.square, two.square))
    )
    return Moments(log_P - np.log(2), mean, square)


@functools.cache
def tie_limit(tokens: int) -> float:
    """The limit of J/t at t -> 0: the rows' pairs of scores off the diagonal, and on and off it."""
    T = tokens
    off = (T - 1) * (T - 2) / 2 * tied_pair(0.5, T - 3, 1) if T > 2 else 0.0
    return T * (off + (T - 1) * tied_pair(2 / 3, T - 2, 0))


@functools.cache
def _table(tokens: int) -> Ties:
    t, mean, error = (np.array(column) for column in zip(*TABLE[tokens], strict=True))
    return fitted(tie_limit(tokens), t, mean, error, _DEGREE)


@dataclasses.dataclass(frozen=True)
class ManyHardmaxOutput(BayesOutput):
    """The largest score of each of `tokens` rows, where the part of the scores that is always known has variance
    `known`."""

    known: float
    tokens: int
    monotone = True

    @property
    def projections(self) -> int:
        return 1

    def information(self, V: Any) -> Any:
        V = np.asarray(V, float)
        return _table(self.tokens)(self._nearness(V)) / V

    def information_error(self, V: Any) -> np.ndarray:
        return _table(self.tokens).relative_error(self._nearness(np.asarray(V, float)))

    def _nearness(self, V: np.ndarray) -> np.ndarray:
        """t."""
        return np.sqrt(V / (1 + self.known))

    def at_nothing(self) -> tuple[float, float]:
        """J where nothing is known of the scores, and its relative error."""
        J, one = _table(self.tokens), np.ones(())
        return float(J(one)), float(J.relative_error(one))

    def denoiser(self, y: np.ndarray) -> ManyHardmaxLabels:
        return ManyHardmaxLabels(np.asarray(y, int))


class ManyHardmaxLabels:
    """The denoiser of labels `y` (n, T), for T (T + 1)/2 measurements of a sample, those of one token over the root of
    two. Each sample keeps its draws, so that message passing has a fixed point."""

    def __init__(self, y: np.ndarray, always: float | np.ndarray = 0.0):
        self.y, self.always = y, always
        self._shifts = _shifts(np.random.default_rng(2025), y)

    def __call__(self, Omega: np.ndarray, V: np.ndarray) -> OutputStep:
        v = float(V[0, 0])
        scale = pairs(self.y.shape[1])[2]
        omega = (Omega + self.always).reshape(-1, len(scale)) * scale
        found = moments(omega / np.sqrt(v), self.y, self._shifts, _DRAWS)
        own = (1 - found.square + found.mean**2) / v
        return OutputStep(
            (found.mean / np.sqrt(v)).reshape(-1, 1), np.full((1, 1), own.mean()), None, lambda: found.log_P
        )
