r"""How many samples, n = alpha d^2, exact recovery takes, and up to how many noisy labels can be interpolated.

Without noise a learner recovers A* exactly from its threshold on. With rho the share of nonzero eigenvalues:

- Bayes-optimal learning: $(1 - \sum_i w_i^2)/2$ over the atoms w of the law (counting unknowns).
- Least trace among the positive semidefinite S that fit: half the statistical dimension of the descent cone of the
  trace, per $d^2/2$, which depends on the rank alone:
  $\min_c \frac12 [2\rho - \rho^2 + \rho c^2 + (1 - \rho) \int (x - c)_+^2 \, sc_{1-\rho}(dx)]$,
  sc_v the semicircle of variance v.
- Any positive semidefinite S that fits: the same at c = 0, $(1 + 2\rho - \rho^2)/4$.
- Any symmetric S of least norm: 1/2.
"""

from __future__ import annotations

import math

import numpy as np

from solvable.models.matrix.nuclear_equations import thresholded
from solvable.numerics.gaussian import gauss_legendre
from solvable.spectra import Law

_NODES = 40
_HALVINGS = 200
_LARGEST = 1e14


def positive_semidefinite(law: Law) -> bool:
    """Whether no eigenvalue is negative, up to rounding."""
    low, high = (float(end) for end in law.ends)
    return low >= -1e-12 * max(abs(low), abs(high))


def rank_share(law: Law) -> float:
    """The share rho of eigenvalues that are not zero."""
    places, weights = (np.asarray(part) for part in law.atoms)
    return 1.0 - float(np.sum(weights[places == 0.0]))


def perfect_recovery(law: Law) -> float:
    """Where Bayes-optimal learning without noise recovers A* exactly."""
    return (1.0 - float(np.sum(np.asarray(law.atoms[1]) ** 2))) / 2


def nuclear_recovery(law: Law) -> float:
    """Where the S of least trace is A*; infinite if A* has negative eigenvalues."""
    if not positive_semidefinite(law):
        return math.inf
    rho = rank_share(law)
    return rho / 2 if rho in (0.0, 1.0) else _statistical_dimension(rho, least_trace_cut(rho))


def psd_recovery(law: Law) -> float:
    """From where on no positive semidefinite S but A* fits the labels; infinite if A* has negative eigenvalues."""
    rho = rank_share(law)
    return (1 + 2 * rho - rho**2) / 4 if positive_semidefinite(law) else math.inf


def least_trace_cut(rho: float) -> float:
    r"""The angle $\phi$ of the best $c = 2\sqrt{1 - \rho} \cos\phi$: $\rho c = (1 - \rho) \int (x - c)_+ sc_{1-\rho}$.

    Found by halving the logarithm of the angle, which is small for a small rank.
    """
    low, high = math.log(1e-12), math.log(math.pi / 2)
    for _ in range(_HALVINGS):
        phi = math.exp((low + high) / 2)
        c, first, _ = _cap(rho, phi)
        low, high = (low, math.log(phi)) if (1 - rho) * first > rho * c else (math.log(phi), high)
    return math.exp((low + high) / 2)


def _statistical_dimension(rho: float, phi: float) -> float:
    c, _, second = _cap(rho, phi)
    return (2 * rho - rho**2 + rho * c**2 + (1 - rho) * second) / 2


def _cap(rho: float, phi: float) -> tuple[float, float, float]:
    """c, and the integrals of (x - c)_+ and of its square over the semicircle of variance 1 - rho."""
    t, share = gauss_legendre(_NODES)
    angle, reach = phi * t, 2 * math.sqrt(1 - rho)
    excess = 2 * reach * np.sin((phi + angle) / 2) * np.sin((phi - angle) / 2)  # x - c, without cancellation
    mass = phi * share * 2 / math.pi * np.sin(angle) ** 2
    return reach * math.cos(phi), float(np.sum(mass * excess)), float(np.sum(mass * excess**2))


def interpolation(law: Law, noise: float) -> float:
    r"""Up to which alpha some positive semidefinite S fits all labels, for noise Delta; at Delta = 0 the limit."""
    return interpolation_point(law, noise)[0]


def interpolation_point(law: Law, noise: float) -> tuple[float, float]:
    r"""alpha at the interpolation threshold, and D there.

    There theta = 0, $2\alpha = Df$ and $2\alpha D = mse + \Delta/2$ (`nuclear_equations`), which leaves one equation
    for D, $D (1 - Df) - \int_{x<0} x^2 \mu = \Delta/2$. For a positive semidefinite A* its left side rises from 0 and D
    falls to 0 with the noise. If the mean of the law is not positive it stays negative: D is infinite, and alpha = 1/4,
    half the statistical dimension of the positive semidefinite cone.
    """
    mean, second = float(law.mean), float(law.second_moment)
    if noise == 0 and positive_semidefinite(law):
        return psd_recovery(law), 0.0
    if mean <= 0:
        return 0.25, math.inf
    # For large D the left side is about 4/(3 pi) E A sqrt(D).
    high = math.log(100 * (second + (noise / mean) ** 2))
    low = high
    while _slack(law, math.exp(low))[0] > noise / 2:
        low -= 5.0
        if low < high - math.log(_LARGEST) * 4:
            return psd_recovery(law), 0.0
    from scipy.optimize import brentq  # loaded when needed: it takes long to import

    log_D = brentq(lambda log_D: _slack(law, math.exp(log_D))[0] - noise / 2, low, high, xtol=1e-13)
    D = math.exp(float(log_D))  # type: ignore[arg-type]
    return _slack(law, D)[1] / 2, D


def _slack(law: Law, D: float) -> tuple[float, float]:
    r"""$D (1 - Df) - \int_{x<0} x^2 \mu$, and Df, at theta = 0."""
    delta = math.sqrt(D)
    low, high, s = -math.inf, math.inf, 0.0
    for _ in range(_HALVINGS):
        found = thresholded(law, np.array([D]), np.array([s * delta]))
        theta = float(found.theta[0])
        if abs(theta) <= 1e-14 * delta or high - low <= 1e-15 * abs(s):
            break
        low, high = (s, high) if theta < 0 else (low, s)
        new = s - theta / (delta * max(float(found.theta_in_u[0]), 1e-3))
        s = new if low < new < high else (low + high) / 2
    mse, Df = float(found.mse[0]), float(found.Df[0])
    return D * Df - mse, Df
