r"""Directions as single functions of the label show them, before they are put together.

First order: the mean of x weighted by a function of the label, $u \propto \frac1n \sum_i a(y_i)\, x_i$. Second order:
an outlier u of $S(T) = \frac1d \sum_i T(y_i)\, x_i x_i^T$. What either says of the very samples that it was made from
is biased. Without sample i it is seen at

$$\omega_i = u\cdot x_i - \frac{a_i}{\alpha |s|} , \qquad \omega_i = (1 - m T_i)\, u\cdot x_i ,$$

s the singular value, m the resolvent $\frac1d \mathrm{Tr} (\lambda - S)^{-1}$ of the bulk at the outlier. The squared
cosine of u with the direction that it estimates is expected to be

$$q = 1 - \frac{1}{\alpha s^2} , \qquad q = 1 - \alpha m^2 \frac1n \sum_i T_i^2 (u\cdot x_i)^2 ,$$

and $E[\omega^2 - 1|y] = q\, G(y)$ with $G = E[z^2 - 1|y]$ of that direction, so that the optimal $T = G/(1 + G)$ is had
from any first T that shows the direction at all [lu2020phase, mondelli2017fundamental, defilippis2025optimal].
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from solvable.estimators.slices import Edge, Moments, Slices, bulk_edge

_STEPS = 5
_LEAST_G, _LEAST_Q = -0.95, 0.05
_STANDS_OUT = 4.0
"""How many standard deviations an eigenvalue has to be above the mean of those of shuffled labels."""
_FLUCTUATION, _WORTH_A_LOOK = 1.27, 0.0
"""The standard deviation of the law of Tracy and Widom, the least that fluctuations may have; and the height, in these
units, above which a direction is tried again with the T that it suggests, and judged by that as well."""
_TRACKED, _SAME = 12, 0.25
_MOST = 64
EXPLAINED = 0.6
"""A direction whose squared cosine with those found, corrected for the noise of both, is above this is one of them."""


@dataclasses.dataclass(frozen=True)
class Sight:
    """A direction `u` (unit vector) of expected squared cosine `q` with the truth, found at first or second `order`.

    Its `value` is above the `edge` of what shuffled labels give, by `height` in units of the fluctuations there. In
    slice h the leave-one-out projection is factor_h u.x - shift_h, less a part that lies `beside` it.
    """

    u: np.ndarray
    q: float
    order: int
    value: float
    edge: float
    height: float
    factor: np.ndarray
    shift: np.ndarray
    beside: Beside | None = None

    def field(self, X: np.ndarray, of: np.ndarray) -> np.ndarray:
        """The leave-one-out projections of samples X (n x d) in slices `of`."""
        found = self.factor[of] * (X @ self.u) - self.shift[of]
        return found if self.beside is None else found - self.beside.weight[of] * self.beside.other.field(X, of)


class Beside(NamedTuple):
    """Another direction, whose projection times `weight` of the slice is taken off."""

    other: Sight
    weight: np.ndarray


class Pilot(NamedTuple):
    """A function T of the slice with the eigenvalues of S(T), largest first, and their vectors; `edge` of the bulk."""

    T: np.ndarray
    values: np.ndarray
    vectors: np.ndarray
    edge: Edge

    def heights(self) -> np.ndarray:
        """How far each eigenvalue is above the edge, in the units of its fluctuations."""
        return (self.values - self.edge.value) / self.edge.scale


class Null:
    """What shuffled labels give: thresholds for the eigenvalues of second moments and the singular values of means.

    `height` is that of an eigenvalue above the edge, in units of its fluctuations, `look` above which a direction is
    refined, and `refined` that of a refined eigenvalue; `square` that of a squared singular value.
    """

    def __init__(self, X: np.ndarray, slices: Slices, shuffles: int, rng: np.random.RandomState):
        heights, refits, squares = [], [], []
        for _ in range(shuffles):
            moments = Moments(X, slices.permuted(rng))
            best = 0.0
            for pilot in pilots(moments):
                heights.append(pilot.heights()[0])
                if heights[-1] > _WORTH_A_LOOK:
                    best = max(best, refined(moments, outlier(moments, pilot, 0)).height)
            # The best of each shuffle: so many directions are tried of the true labels as well.
            refits.append(best)
            squares.append(mean_functions(moments.slices, moments.means)[1][0] ** 2)
        self.height, self.refined = _above(heights, _FLUCTUATION), _above(refits, _FLUCTUATION)
        # The scale of the largest squared singular value of k x d independent numbers of variance 1/n.
        k, (n, d) = min(len(slices.waves), slices.count - 1), X.shape
        scale = (np.sqrt(k) + np.sqrt(d)) * (1 / np.sqrt(k) + 1 / np.sqrt(d)) ** (1 / 3) / n
        self.square = _above(squares, _FLUCTUATION * scale)


def pilots(moments: Moments) -> Iterator[Pilot]:
    """The spectra of each wave of the label and of its negative."""
    slices = moments.slices
    for wave in slices.waves:
        values, vectors = np.linalg.eigh(moments.weighted(wave))
        yield Pilot(wave, values[::-1], vectors[:, ::-1], bulk_edge(slices.share, wave, moments.alpha, moments.d))
        yield Pilot(-wave, -values, vectors, bulk_edge(slices.share, -wave, moments.alpha, moments.d))


def mean_functions(
    slices: Slices, means: np.ndarray, variance: np.ndarray | float = 1.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Functions a of the slice (k, slices) with the singular values s and directions u of E[a x] = s u.

    `means` (slices, d) are those of x in each slice, where it has this variance. The functions have no mean and are
    orthonormal for the noise of these averages: E[variance a^2] = 1.
    """
    share = slices.share
    root = np.sqrt(share * variance)
    orthonormal = np.linalg.qr((root * slices.waves).T)[0].T / root
    left, s, right = np.linalg.svd((orthonormal * share) @ means, full_matrices=False)
    return left.T @ orthonormal, s, right


def first_order(moments: Moments, null: Null, other: Sight | None = None) -> list[Sight]:
    """Directions of the mean that stand out; of the mean of x times its projection on another direction, if given.

    The second is part of the second moments: it shows directions z2 with E[z1 z2|y] != 0, of which E[z2^2|y] may be 1.
    """
    means, variance = moments.means, 1.0
    if other is not None:
        means = moments.products(other.u) * other.factor[:, None] - other.shift[:, None] * means
        variance = np.maximum(other.factor**2 * moments.seen(other.u), 1e-3)
    found = []
    for a, value, u in zip(*mean_functions(moments.slices, means, variance), strict=True):
        if value**2 <= null.square:
            break
        q = float(np.clip(1 - 1 / (moments.alpha * value**2), _LEAST_Q, 1.0))
        own, zero = a / (moments.alpha * value), np.zeros_like(a)
        shift, beside = (own, None) if other is None else (zero, Beside(other, own))
        order = 1 if other is None else 2
        height = float(value**2 / null.square)
        found.append(Sight(u, q, order, float(value**2), null.square, height, np.ones_like(a), shift, beside))
    return found


def joint(moments: Moments, null: Null, found: list[Sight]) -> list[Sight]:
    """Directions that show only together with those that are found, once there are such."""
    new: list[Sight] = []
    for other in found:
        for seen in first_order(moments, null, other):
            if explained(seen, found + new) <= EXPLAINED:
                new.append(seen)
    return new


def second_order(moments: Moments, null: Null, all_of_them: bool = False) -> tuple[list[Sight], list[Sight]]:
    """Directions of the second moments that stand out, each once, the strongest first; and the next best ones.

    With `all_of_them` every function of the label gives at least one of the two kinds.
    """
    candidates = []
    for pilot in pilots(moments):
        heights = pilot.heights()
        count = max(int(np.sum(heights > _WORTH_A_LOOK)), int(all_of_them))
        candidates += [(heights[j], pilot, j) for j in range(min(_MOST, count, moments.d - 1))]
    found: list[Sight] = []
    spare: list[Sight] = []
    for height, pilot, j in sorted(candidates, key=lambda candidate: -candidate[0]):
        seen = outlier(moments, pilot, j)
        if len(found) >= _MOST or explained(seen, found) > EXPLAINED:
            continue
        better = refined(moments, seen)
        if explained(better, found) <= EXPLAINED:
            (found if height > null.height or better.height > null.refined else spare).append(better)
    return found, sorted(spare, key=lambda seen: -seen.height)


def outlier(moments: Moments, pilot: Pilot, j: int) -> Sight:
    """The direction of the j-th eigenvalue."""
    T, value, u = pilot.T, pilot.values[j], pilot.vectors[:, j]
    gaps = value - pilot.values[j + 1 :]
    m = float(np.sum(1 / np.maximum(gaps, 1e-9 * np.abs(pilot.values).max())) / moments.d)
    q = 1 - moments.alpha * m**2 * float(moments.slices.share @ (T**2 * moments.seen(u)))
    clipped = float(np.clip(q, _LEAST_Q, 1.0))
    height = float(value - pilot.edge.value) / pilot.edge.scale
    return Sight(u, clipped, 2, float(value), pilot.edge.value, height, 1 - m * T, np.zeros_like(T))


def refined(moments: Moments, seen: Sight) -> Sight:
    """The same direction with the T that it suggests itself, again and again."""
    share = moments.slices.share
    for _ in range(_STEPS):
        G = np.maximum(told(moments, seen), _LEAST_G)
        if not np.any(np.abs(G) > 1e-9):
            break
        T = G / (1 + G)
        values, vectors = np.linalg.eigh(moments.weighted(T))
        pilot = Pilot(T, values[::-1], vectors[:, ::-1], bulk_edge(share, T, moments.alpha, moments.d))
        near = (seen.u @ pilot.vectors[:, : min(_TRACKED, moments.d)]) ** 2
        j = int(np.argmax(near))
        if near[j] < _SAME or pilot.values[j] <= pilot.edge.value or j == moments.d - 1:
            break
        before, seen = seen, outlier(moments, pilot, j)
        if 1 - (seen.u @ before.u) ** 2 < 1e-4:
            break
    return seen


def told(moments: Moments, seen: Sight) -> np.ndarray:
    """G = E[z^2 - 1|y] of the direction in each slice, of mean zero, without what may be noise."""
    share = moments.slices.share
    square = seen.factor**2 * moments.seen(seen.u)
    square = square / max(float(share @ square), 1e-300)
    G = moments.slices.smooth(square - 1, 2 * square**2 / (share * moments.n)) / seen.q
    return G - share @ G


def explained(seen: Sight, others: list[Sight]) -> float:
    """The share of a direction that lies in the span of others, corrected for the noise of all."""
    if not others:
        return 0.0
    U, q = np.stack([other.u for other in others], axis=1), np.array([other.q for other in others])
    gram = U.T @ U / np.sqrt(np.outer(q, q))
    np.fill_diagonal(gram, 1.0)
    values, vectors = np.linalg.eigh(gram)
    cosines = vectors.T @ (U.T @ seen.u / np.sqrt(q * seen.q))
    return float(np.sum(cosines**2 / np.maximum(values, 0.2)))


def _above(values: list[float], least: float = 0.0) -> float:
    return float(np.mean(values) + _STANDS_OUT * max(np.std(values, ddof=1), least))
