r"""What a data set says of the population it comes from, as far as the learning curves of ridge regression need it.

With $S_k = \lambda_k/(\lambda_k + \nu)$ over the eigenvalues of the kernel, kernel ridge regression needs the functions

    T1 = sum S,   T2 = sum S^2,   Q = noise + sum beta^2 (1 - S)^2,   H = noise + sum beta^2 (1 - S)

of one number nu (`models/features/equivalent.py`). The eigenvalues of the kernel matrix of N samples are not those of
the kernel, nor are its coefficients those of the target: small ones are far off. But these sums need neither. With
$a_j = \mathrm{Tr}(K + \lambda)^{-j}$, $c_j = y^T (K + \lambda)^{-j} y$ and one equation, $\nu = 1/a_1$, they are

    T1 = M - lambda a_1,    T2 = M - a_1^2/a_2,    H = c_1/a_1,    Q = c_2/a_2,

at every nu from that of $\lambda = 0$ on, to a relative 1/N: the theory at n = N is solved for the population, and N
times $c_2/a_1^2$ is the error by generalized cross validation [golub1979generalized, jacot2020kernel, wei2022more].
With the mean taken off labels and kernel, M = N - 1 takes the place of N.

The theory holds for Gaussian features, and real ones have heavier tails: samples far from all others have less weight
in what is learned than they have in what there is to learn, and $M - \lambda a_1$ grows with N at the same nu. Their
leverages tell. With the weights $w_i = \lambda (K + \lambda)^{-1}_{ii}\, N/M$ the leverages
$t_i = \lambda a_1 (1/w_i - 1)$ are functions of nu that do not depend on N, if what is far from all others is far from
each other too (its degrees of freedom are then proportional to $1/\nu$). Their mean is the $T_1$ of the population,
$M - \lambda a_1$ if they are all equal, and n samples are worth $m = \lambda/\nu$, at n = N $\lambda a_1$, with

    (1/N) sum_i 1/(m + t_i) = 1/n        (m = n - T1 if all are equal).

For Gaussian features times a length of each sample this $T_1$ is too large at small nu; for kernels of real data that
of a quarter of the rows is that of all within a few percent. The errors are multiplied by that of leaving each sample
out over that of generalized cross validation, at the same nu: the first is right whatever the features, at n = N.

**Below the smallest nu**, which more than N samples may reach, the functions are continued: $T_1 \propto \nu^{-g}$,
g its slope, but not beyond the number of features, with leverages in the same proportions; and $Q = s + A \nu^b$,
fitted where at least half of the directions count, $a_2^2/a_4 \ge M/2$: closer to $\lambda = 0$ everything rests on a
few of the smallest eigenvalues. A kernel that has fewer eigenvalues than M/2 needs no continuation, since nu goes down
to 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

GRID = 160
ZERO = 1e-12
"""Eigenvalues that are this part of the largest are those of rounding."""
WINDOW = 30.0
"""The power laws are fitted from the smallest reliable nu up to this times it."""
DECADES, A_DECADE = 8, 20
"""How far below it they go, and in how many points each."""
_GROUPS = 24
"""Leverages are kept as the means of this many groups of samples."""
_NEWTON = 12
_TINY = 1e-100
_TOGETHER = 32
"""How many penalties are taken at once, so that the residuals of many samples fit into memory."""


class Spectrum(NamedTuple):
    """The positive eigenvalues of a centred kernel matrix, their vectors (N x r), and the labels without their mean."""

    eigenvalues: np.ndarray
    vectors: np.ndarray
    labels: np.ndarray


class Population(NamedTuple):
    """The functions of nu at increasing values of it; `leaving_out` is the factor that real features need.

    `leverages` are those of as many equal groups of samples, the smallest first: their mean is T1.
    """

    nu: np.ndarray
    leverages: np.ndarray
    T2: np.ndarray
    Q: np.ndarray
    H: np.ndarray
    leaving_out: np.ndarray

    @property
    def T1(self) -> np.ndarray:
        """The degrees of freedom."""
        return self.leverages.mean(axis=1)

    def worth(self, n: float) -> np.ndarray:
        """m of n samples at each nu, n - T1 if all are alike; 0 where so many samples do not reach that nu."""
        harmonic = 1 / np.mean(1 / np.maximum(self.leverages, _TINY), axis=1)
        m = np.maximum(n - self.T1, _TINY)
        # The harmonic mean of m + t is concave in m, so that Newton's method rises to the solution.
        for _ in range(_NEWTON):
            parts = 1 / (m[:, None] + self.leverages)
            mean = parts.sum(axis=1) / _GROUPS
            step = (n * mean - 1) * mean / (np.einsum("ij,ij->i", parts, parts) / _GROUPS)
            m = np.maximum(m + step, _TINY)
            if np.all(np.abs(step) <= 1e-12 * n):
                break
        return np.where(n > harmonic, m, 0.0)


class Estimate(NamedTuple):
    """A population as `rows` samples show it: read off them, and smooth, continued to smaller nu."""

    rows: int
    seen: Population
    smooth: Population


def spectrum_of_features(X: np.ndarray, y: np.ndarray) -> Spectrum:
    """That of the kernel X X^T, from the smaller of the two matrices of products."""
    X, y = X - X.mean(axis=0), y - y.mean()
    if X.shape[1] >= len(X):
        return _spectrum(X @ X.T, y)
    values, vectors = np.linalg.eigh(X.T @ X)
    kept = values > ZERO * max(values[-1], np.finfo(float).tiny)
    return Spectrum(values[kept], X @ vectors[:, kept] / np.sqrt(values[kept]), y)


def spectrum_of_kernel(K: np.ndarray, y: np.ndarray) -> Spectrum:
    """That of a kernel matrix."""
    rows = K.mean(axis=0)
    return _spectrum(K - rows - rows[:, None] + rows.mean(), y - y.mean())


def _spectrum(K: np.ndarray, y: np.ndarray) -> Spectrum:
    from scipy.linalg import eigh

    values, vectors = eigh(K, overwrite_a=True, check_finite=False)
    kept = values > ZERO * max(values[-1], np.finfo(float).tiny)
    return Spectrum(values[kept], vectors[:, kept], y)


def estimate(found: Spectrum, features: float) -> Estimate:
    """The population behind a spectrum, of a kernel with so many features at most."""
    rows, M = len(found.labels), len(found.labels) - 1
    e, y = found.eigenvalues, found.labels
    w = found.vectors.T @ y
    empty = M - len(e)  # directions without an eigenvalue
    high, low = e.max(), e.max() * 1e-10 if empty else max(e.min() * 1e-2, e.max() * ZERO)
    penalty = np.geomspace(low, 1e4 * high, GRID)
    s = penalty[:, None] / (e + penalty[:, None])
    a1, a2, a4 = (empty + np.sum(s**j, axis=1) for j in (1, 2, 4))
    rest = max(float(y @ y - w @ w), 0.0) if empty else 0.0
    c1, c2 = (rest + s**j @ w**2 for j in (1, 2))
    errors, groups = _left_out(found, s, w, empty)
    leverages = a1[:, None] * np.maximum((M / rows) / groups - 1, 0.0)
    seen = Population(penalty / a1, leverages, M - a1**2 / a2, c2 / a2, c1 / a1, errors / (rows * c2 / a1**2))
    reliable = a2**2 / a4 >= M / 2
    first = int(np.argmax(reliable))
    if first == 0 and empty:
        return Estimate(rows, seen, seen)
    return _continued(rows, seen, first, features)


def _left_out(found: Spectrum, s: np.ndarray, w: np.ndarray, empty: int) -> tuple[np.ndarray, np.ndarray]:
    """At every penalty the mean squared error of samples by the fit to all others, and the g_i by groups, falling."""
    U, y = found.vectors, found.labels
    share, fitted = U**2, U * w
    # What the directions without an eigenvalue leave; none are left of a matrix of full rank but rounding.
    unfitted = np.maximum(1 - 1 / len(y) - share.sum(axis=1), 0.0) if empty else 0.0
    unexplained = y - fitted.sum(axis=1) if empty else 0.0
    errors, groups = [], []
    for part in np.split(s.T, range(_TOGETHER, len(s), _TOGETHER), axis=1):
        residual = np.reshape(unexplained, (-1, 1)) + fitted @ part
        kept = np.reshape(unfitted, (-1, 1)) + share @ part
        errors.append(np.mean((residual / kept) ** 2, axis=0))
        groups.append(_grouped(np.sort(kept, axis=0)[::-1]))
    return np.concatenate(errors), np.concatenate(groups)


def _grouped(sorted_rows: np.ndarray) -> np.ndarray:
    """The means over groups of equal mass of each column, rows being cut where a border falls inside."""
    count = len(sorted_rows)
    sums = np.concatenate([np.zeros((1, sorted_rows.shape[1])), np.cumsum(sorted_rows, axis=0)])
    place = np.linspace(0, count, _GROUPS + 1)
    below = np.minimum(place.astype(int), count - 1)
    at_borders = sums[below] + (place - below)[:, None] * sorted_rows[below]
    return np.diff(at_borders, axis=0).T * (_GROUPS / count)


def _continued(rows: int, seen: Population, first: int, features: float) -> Estimate:
    """The functions from the first reliable nu on, with power laws below."""
    from scipy.optimize import nnls

    kept = Population(*(part[first:] for part in seen))
    error = kept.Q * kept.leaving_out
    near = kept.nu <= WINDOW * kept.nu[0]
    x = kept.nu[near] / kept.nu[0]
    fits = []
    for b in np.linspace(0.05, 2.0, 40):
        columns = np.stack([np.ones(len(x)), x**b], axis=1) / error[near][:, None]
        (floor, scale), misfit = nnls(columns, np.ones(len(x)))
        fits.append((misfit, b, floor, scale))
    _, b, floor, scale = min(fits)
    fitted = floor + scale * (kept.nu / kept.nu[0]) ** b
    weight = np.clip(np.log(kept.nu / kept.nu[0]) / np.log(WINDOW), 0.0, 1.0)  # from the fit to what was seen
    blended = np.where(weight < 1, fitted ** (1 - weight) * error**weight, error) / kept.leaving_out
    kept = kept._replace(Q=blended, H=blended + kept.H - kept.Q)
    below = np.logspace(-DECADES, 0, DECADES * A_DECADE, endpoint=False)
    # The degrees of freedom grow like a power until they come close to the number of features: 1/T1 = 1/power + 1/most.
    last = kept.T1[0]
    most = max(features, 1.01 * last)
    slope = min((1 - kept.T2[0] / last) / (1 - last / most), 1.0)
    T1 = 1 / (below**slope * (1 / last - 1 / most) + 1 / most)
    T2 = T1 * (1 - slope * (1 - T1 / most))
    Q = (floor + scale * below**b) / kept.leaving_out[0]
    H = Q + (kept.H[0] - kept.Q[0]) * below**b
    parts = (
        below * kept.nu[0],
        np.outer(T1 / last, kept.leverages[0]),
        T2,
        Q,
        H,
        np.full(len(below), kept.leaving_out[0]),
    )
    smooth = Population(*(np.concatenate(pair) for pair in zip(parts, kept, strict=True)))
    return Estimate(rows, seen, smooth)
