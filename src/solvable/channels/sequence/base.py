r"""P(y|z) of a sample that is T tokens: z is a T x r matrix, whose rows have independent $N(\omega_t, V)$ laws.

With $g_t = V^{-1}(E[z_t | y, \omega] - \omega_t)$ the information of a sample is the r x r matrix
$E \sum_t g_t g_t^T$; all else is as for one token, and so the same solvers and the same loop of message passing serve.
Rows of a data set are tokens, and the T of a sample follow each other. [troiani2025fundamental]

The posterior of z given a label is a member's own (`moments`): by quadrature, or by weighted samples. The average over
$\omega$ and labels is here, over scrambled Sobol points, several scramblings of which tell its error. Three averages
are one under the true law (Nishimori), with $e_t = V^{-1}(z_t - \omega_t)$ at the z that made the label:

    E sum_t g_t g_t^T  =  E sum_t e_t g_t^T  =  T V^-1 - V^-1 E[sum_t Cov(z_t | y, omega)] V^-1 .

The differences of their terms have zero mean, and subtracting what they explain leaves less scatter. Of weighted
samples there are two independent sets: products of posterior means are those of one set with the other, and what the
mean of both sets changes tells the error that the number of samples leaves.
"""

from __future__ import annotations

import abc
from typing import Any, NamedTuple

import numpy as np

from solvable.channels.base import Average, Channel, Information, Linearisation, Posterior
from solvable.numerics.errors import error_of_mean, standard_errors
from solvable.numerics.sobol import normal_points

SCRAMBLINGS = 8
_POWER = 10
"""The logarithm of the points of a scrambling, to base 2."""


class Moments(NamedTuple):
    """Of each sample: `log_Z` (n,), and given its label the mean (n, T r) and covariance (n, T r, T r) of z."""

    log_Z: np.ndarray
    mean: np.ndarray
    covariance: np.ndarray


class SequenceChannel(Channel):
    """Labels of `tokens` tokens; `weighted` says that its posteriors are those of weighted samples."""

    tokens: int
    weighted: bool = False
    steady: bool = False
    """Whether weighted samples are many enough for their second moments to serve as well."""
    fineness_on_data: float = 1.0
    """That of the posteriors of labels of data, over which no further average is taken."""
    label_dimensions: int = 0
    """How many Gaussian numbers, beside z, a label is made of."""
    shared: int = 0
    """How many projections in a row share a sign that labels hide: 1 if the label is the same for -z_k, for each
    projection k of all tokens; 0 if labels hide none."""
    turned: int = 1
    """How many projections in a row labels show up to a turn of them alone."""
    mirrored: bool = False
    """Whether labels of -z_k have the law of labels of z_k under other names, so that averages have no mixed terms."""

    @abc.abstractmethod
    def shown(self, z: np.ndarray, noise: np.ndarray) -> Any:
        """What the labels of z (n, T, r) show, with an array of Gaussian numbers (n, `label_dimensions`)."""

    @abc.abstractmethod
    def moments(self, shown: Any, Omega: np.ndarray, V: np.ndarray, draw: int = 0, fineness: float = 1.0) -> Moments:
        """The posterior of z given what labels show, at Omega (n, T, r); `draw` chooses the set of weighted samples."""

    @property
    def resolution(self) -> float:
        return 1e-3

    def posterior(self, observation: Any, Omega: np.ndarray, V: np.ndarray, evidence: bool = True) -> Posterior:
        """Of each token: its mean and covariance, (n T, r) and (n T, r, r); log_Z is of each sample."""
        T, r = self.tokens, self.projections
        n = len(Omega) // T
        found = self.moments(observation, Omega.reshape(n, T, r), V, fineness=self.fineness_on_data)
        blocks = found.covariance.reshape(n, T, r, T, r)
        own = np.einsum("ntatb->ntab", blocks)
        return Posterior(found.log_Z, found.mean.reshape(n * T, r), own.reshape(n * T, r, r))

    def average(self, V: np.ndarray, fineness: float) -> Average:
        T, r, inverse = self.tokens, self.projections, np.linalg.inv(V)
        first, second, third, entropies, bias = [], [], [], [], []
        for number in range(SCRAMBLINGS):
            points = self._points(V, number, fineness)
            parts = self._parts(points, V, number, fineness)
            g = [(part.mean.reshape(-1, T, r) - points.Omega) @ inverse for part in parts]
            e = (points.z - points.Omega) @ inverse
            first.append(self._symmetric(_products(g[0], g[-1]), V))
            if self.weighted:
                pooled = _pooled(*parts)
                both = (pooled.mean.reshape(-1, T, r) - points.Omega) @ inverse
                second.append(self._symmetric(_products(e, 2 * both - (g[0] + g[1]) / 2), V))
                bias.append((second[-1] - self._symmetric(_products(e, both), V)).mean(axis=0))
                entropies.append(pooled.log_Z.mean())
                if self.steady:
                    own = _own(points.Omega, parts[0], parts[1], pooled)
                    third.append(self._symmetric(T * inverse - inverse @ own @ inverse, V))
            else:
                second.append(self._symmetric(_products(e, g[0]), V))
                own = _traced(parts[0].covariance, T, r)
                third.append(self._symmetric(T * inverse - inverse @ own @ inverse, V))
                entropies.append(parts[0].log_Z.mean())
        base, others = (second, [first, third][: 1 + self.steady]) if self.weighted else (first, [second, third])
        value, error = _combined(base, others)
        error = standard_errors(SCRAMBLINGS) * error
        if bias:
            error = error + np.abs(np.mean(bias, axis=0))
        of_entropy = float(error_of_mean(np.array(entropies)))
        return Average((value + value.T) / 2, float(np.mean(entropies)), float(error.max()), of_entropy)

    def information(self, V: np.ndarray, fineness: float = 1.0) -> Information:
        """At each V of a batch (k, r, r); the scramblings tell the error."""
        found = [self.average(v, fineness) for v in np.asarray(V, float)]
        columns = (np.array([getattr(a, name) for a in found]) for name in Average._fields)
        return Information(*columns)

    def linearisation(self, M: np.ndarray, basis: np.ndarray) -> Linearisation:
        T, r, k = self.tokens, self.projections, basis.shape[1]
        V = np.eye(r) - M
        trivial, easy, crossed = [], [], []
        for number in range(SCRAMBLINGS):
            points = self._points(V, number, 2.0)
            parts = self._parts(points, V, number, 1.0)
            m = [part.mean.reshape(-1, T, r) @ basis for part in parts]
            G = [self._unseen(second_moments(part, basis, T, r), basis) for part in parts]
            truth = points.z @ basis
            drawn = truth.reshape(-1, T * k)
            seen = drawn[:, :, None] * drawn[:, None, :] - np.eye(T * k)
            hidden = self.shared == 1 or self._groups(basis) is not None
            trivial.append(np.zeros((1, k, k)) if hidden else _products(m[0], m[-1]))
            easy.append(pairs(G[0], G[-1], T, k))
            crossed.append(pairs((G[0] + G[-1]) / 2, seen, T, k))
        easy_value, easy_error = _combined(easy, [crossed])
        trivial_means = np.array([part.mean(axis=0) for part in trivial])
        value = even_part((easy_value + easy_value.T) / 2, basis, self._mirrors(M))
        changes = _standard_error(trivial_means)
        error = max(float(np.max(changes)), float(np.max(easy_error)))
        return Linearisation(basis, trivial_means.mean(axis=0), value, error)

    def observe(self, y: np.ndarray) -> Any:
        self._no_data()

    class _Points(NamedTuple):
        Omega: np.ndarray
        z: np.ndarray
        shown: Any

    def _points(self, V: np.ndarray, number: int, fineness: float) -> _Points:
        """Draws of omega ~ N(0, I - V), of z given it, and of what the label shows."""
        T, r = self.tokens, self.projections
        power = _POWER + (-1 if self.weighted else 1) + round(np.log2(fineness))
        x = normal_points(2 * T * r + self.label_dimensions, power, number)
        v, u = np.linalg.eigh(V)
        known, left = ((u * np.sqrt(np.maximum(part, 0.0))) @ u.T for part in (1 - v, v))
        Omega = x[:, : T * r].reshape(-1, T, r) @ known
        z = Omega + x[:, T * r : 2 * T * r].reshape(-1, T, r) @ left
        return self._Points(Omega, z, self.shown(z, x[:, 2 * T * r :]))

    def _parts(self, points: _Points, V: np.ndarray, number: int, fineness: float) -> list[Moments]:
        draws = (2 * number, 2 * number + 1) if self.weighted else (0,)
        return [self.moments(points.shown, points.Omega, V, draw, fineness) for draw in draws]

    @property
    def mirrors(self) -> np.ndarray:
        """Signs (g, r) of projections that leave the law of labels as it is, under other names."""
        r = self.projections
        if not (self.mirrored or self.shared):
            return np.ones((0, r))
        layer = np.arange(r) // (1 if self.mirrored else self.shared)
        return np.where(np.arange(layer[-1] + 1)[:, None] == layer, -1.0, 1.0)

    def _mirrors(self, V: np.ndarray) -> np.ndarray:
        """Those that leave V (r x r) as it is."""
        moved = V * (self.mirrors[:, :, None] * self.mirrors[:, None, :] - 1)
        return self.mirrors[np.abs(moved).max(axis=(1, 2)) < 1e-12]

    def _symmetric(self, matrices: np.ndarray, V: np.ndarray) -> np.ndarray:
        """The part of matrices (n, r, r) that the symmetries of labels and of V leave in their average."""
        for signs in self._mirrors(V):
            matrices = (matrices + matrices * np.outer(signs, signs)) / 2
        w, blocks = self.turned, len(V) // self.turned
        if w > 1:
            alike = np.einsum("iaia->i", V.reshape(blocks, w, blocks, w)) / w
            if np.abs(V - np.kron(np.diag(alike), np.eye(w))).max() < 1e-12:
                means = np.einsum("niaia->ni", matrices.reshape(-1, blocks, w, blocks, w)) / w
                return np.repeat(means, w, axis=1)[:, :, None] * np.eye(len(V))
        return matrices

    def _groups(self, basis: np.ndarray) -> np.ndarray | None:
        """The number of the sign that each direction of a basis shares; None unless these are axes and all that share
        one are there."""
        axes = _axes(basis)
        if not self.shared or axes is None or not _whole(axes, self.shared):
            return None
        return axes // self.shared

    def _unseen(self, G: np.ndarray, basis: np.ndarray) -> np.ndarray:
        """Second moments (n, T k, T k) of directions of which nothing is known, without what weighted samples leave of
        terms that a hidden sign or turn makes zero."""
        groups = self._groups(basis)
        if groups is None:
            return G
        T, k, w = self.tokens, len(groups), self.turned
        blocks = G.reshape(len(G), T, k, T, k) * (groups[:, None] == groups)[:, None, :]
        if w > 1 and _whole(groups, w):
            means = np.einsum("ntiasia->nits", blocks.reshape(len(G), T, k // w, w, T, k // w, w)) / w
            blocks = np.einsum("nits,ij,ab->ntiasjb", means, np.eye(k // w), np.eye(w))
        return blocks.reshape(G.shape)


def _axes(basis: np.ndarray) -> np.ndarray | None:
    """The numbers of the axes that the columns of a basis are, up to signs; None if they are not."""
    axes = np.argmax(np.abs(basis), axis=0)
    return axes if np.abs(np.abs(basis) - np.eye(len(basis))[:, axes]).max(initial=0.0) < 1e-12 else None


def _whole(axes: np.ndarray, width: int) -> bool:
    """Whether axes are those of layers of so many directions each, in their order."""
    first = axes[::width]
    return np.array_equal(axes, (first[:, None] + np.arange(width)).ravel()) and not np.any(first % width)


def _products(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """sum_t a_t b_t^T, made symmetric, of each sample: (n, r, r)."""
    found = np.einsum("nta,ntb->nab", a, b)
    return (found + found.transpose(0, 2, 1)) / 2


def pairs(A: np.ndarray, B: np.ndarray, T: int, k: int) -> np.ndarray:
    """The sum over pairs of tokens of A^{tt'} (x) B^{tt'}, (n, k^2, k^2), of arrays (n, T k, T k)."""
    A, B = (part.reshape(-1, T, k, T, k) for part in (A, B))
    return np.einsum("ntasb,ntcsd->nacbd", A, B).reshape(-1, k * k, k * k)


def second_moments(part: Moments, basis: np.ndarray, T: int, r: int) -> np.ndarray:
    k = basis.shape[1]
    mean = (part.mean.reshape(-1, T, r) @ basis).reshape(-1, T * k)
    blocks = part.covariance.reshape(-1, T, r, T, r)
    covariance = np.einsum("ntasb,ac,bd->ntcsd", blocks, basis, basis, optimize=True).reshape(-1, T * k, T * k)
    return covariance + mean[:, :, None] * mean[:, None, :] - np.eye(T * k)


def _pooled(a: Moments, b: Moments) -> Moments:
    """The mean of two equal sets of weighted samples taken together; the covariance is that of the first."""
    log_Z = np.logaddexp(a.log_Z, b.log_Z) - np.log(2)
    share = np.exp(a.log_Z - log_Z)[:, None] / 2
    return Moments(log_Z, share * a.mean + (1 - share) * b.mean, a.covariance)


def _traced(products: np.ndarray, T: int, r: int) -> np.ndarray:
    """The sum over tokens of those of each, (n, r, r), of products (n, T r, T r)."""
    return np.einsum("ntatb->nab", products.reshape(-1, T, r, T, r))


def _own(Omega: np.ndarray, a: Moments, b: Moments, pooled: Moments) -> np.ndarray:
    """The sum over tokens of their covariances by two sets of weighted samples: products of means are those of one set
    with the other, and mean products are twice those of both sets less the mean of each."""
    n, T, r = Omega.shape
    shift = Omega.reshape(n, -1)
    means = [part.mean - shift for part in (a, b)]
    each = [part.covariance + mean[:, :, None] * mean[:, None, :] for part, mean in zip((a, b), means, strict=True)]
    share = np.exp(a.log_Z - pooled.log_Z)[:, None, None] / 2
    products = 2 * (share * each[0] + (1 - share) * each[1]) - (each[0] + each[1]) / 2
    return _traced(products, T, r) - _products(*(mean.reshape(n, T, r) for mean in means))


def _combined(terms: list[np.ndarray], others: list[list[np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """The mean of `terms`, (n, a, b) of each scrambling, less what terms of the same mean explain; and its standard
    error."""
    shape = terms[0].shape[1:]
    value, error = np.zeros(shape), np.zeros(shape)
    for place in np.ndindex(*shape):
        own = np.array([term[(slice(None), *place)] for term in terms])
        zero = np.array([[o[(slice(None), *place)] for o in other] for other in others]) - own
        flat = zero.reshape(len(others), -1)
        centred = own.ravel() - own.mean()
        weights = np.linalg.lstsq(flat @ flat.T + 1e-12 * np.eye(len(flat)), flat @ centred, rcond=1e-10)[0]
        means = (own - np.tensordot(weights, zero, 1)).mean(axis=1)
        value[place], error[place] = means.mean(), _standard_error(means)
    return value, error


def _standard_error(means: np.ndarray) -> Any:
    """That of the mean of independent scramblings."""
    return means.std(axis=0, ddof=1) / np.sqrt(len(means))


def even_part(easy: np.ndarray, basis: np.ndarray, mirrors: np.ndarray) -> np.ndarray:
    """The part of a map of overlaps that changes of signs (g, r) leave, for a basis of axes."""
    if np.any((np.abs(basis) > 1e-12).sum(axis=0) > 1):
        return easy
    for signs in mirrors @ np.abs(basis):
        both = np.kron(signs, signs)
        easy = (easy + easy * np.outer(both, both)) / 2
    return easy
