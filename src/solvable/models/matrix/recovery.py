r"""How many samples exact recovery takes, and up to how many noisy labels can be interpolated.

Without noise a learner recovers A*, seen by n = alpha d^2 labels, exactly from its threshold on. With rho the share of
nonzero eigenvalues:

- Bayes-optimal learning: $(1 - \sum_i w_i^2)/2$ over the atoms w of the law (counting unknowns).
- Least trace among the positive semidefinite S that fit: half the statistical dimension of the descent cone of the
  trace, per $d^2/2$, which depends on the rank alone:
  $\min_c \frac12 [2\rho - \rho^2 + \rho c^2 + (1 - \rho) \int (x - c)_+^2 \, sc_{1-\rho}(dx)]$,
  sc_v the semicircle of variance v.
- Any positive semidefinite S that fits: the same at c = 0, $(1 + 2\rho - \rho^2)/4$.
- Any symmetric S of least norm: 1/2.

For a d x L matrix and n = alpha d L labels, L = beta d with $\beta \ge 1$, least nuclear norm likewise takes
$\min_c \{ \rho (1 + \beta - \rho)/\beta + \rho c^2 + (1 - \rho) \int (s - c)_+^2 \nu(ds) \}$ with $\nu$ the law of the
singular values of a (d - r) x (L - r) Gaussian matrix over $\sqrt L$. [maillard2024bayes, erba2025nuclear,
erba2024bilinear]
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from solvable.core.registry import thresholds_of
from solvable.engine.signals.singular_values import upright
from solvable.engine.solvers.base import Thresholds
from solvable.models.matrix.bilinear_sequence import BilinearSequence
from solvable.models.matrix.model import MatrixModel, QuadraticNetwork
from solvable.numerics.gaussian import gauss_legendre
from solvable.numerics.roots import crossing, first_beyond, halving
from solvable.spectra import Law
from solvable.spectra.thresholded import thresholded

_NODES = 60
_HALVINGS = 200
_LARGEST = 1e14


@thresholds_of(MatrixModel, references=("maillard2024bayes", "erba2025nuclear"))
def matrix_thresholds(model: MatrixModel) -> Thresholds:
    """Where each learner recovers A* exactly (infinite with noise), and up to where labels can be interpolated.

    perfect_recovery: Bayes-optimal learning; nuclear_recovery: `NuclearNorm` with a vanishing penalty; psd_recovery:
    any positive semidefinite matrix that fits; lazy_recovery: `Lazy` with a vanishing penalty; interpolation: above it
    no positive semidefinite matrix fits all labels (without noise, the limit of small noise).
    """
    law, noise = model.law, float(model.noise)
    found = Thresholds(
        perfect_recovery=model.signal_side().dimension / 2,
        nuclear_recovery=least_trace_recovery(law),
        psd_recovery=psd_recovery(law),
        lazy_recovery=0.5,
    )
    if noise > 0:
        found = Thresholds({name: math.inf for name in found})
    found["interpolation"] = interpolation(law, noise)
    return found


@thresholds_of(QuadraticNetwork, references=("maillard2024bayes", "erba2025nuclear"))
def network_thresholds(model: QuadraticNetwork) -> Thresholds:
    """Those of matrix sensing, and narrow_weak_recovery = rho (2 + noise) / 4.

    From there on Bayes-optimal learning of a narrow network, rho -> 0, does better than guessing the mean of A*.
    """
    found = matrix_thresholds(model)
    found["narrow_weak_recovery"] = float(model.rho) * (2 + float(model.noise)) / 4
    return found


@thresholds_of(BilinearSequence, references=("erba2024bilinear",))
def bilinear_thresholds(model: BilinearSequence) -> Thresholds:
    r"""Where S* is recovered exactly (infinite with noise), and where a matrix of small rank begins to be seen.

    perfect_recovery: Bayes-optimal learning; nuclear_recovery: the matrix of least nuclear norm that fits the labels;
    narrow_weak_recovery: $(1 + \Delta) \rho/\sqrt\beta$, from where on Bayes-optimal learning of a matrix of small
    rank, rho -> 0, does better than guessing zero.
    """
    rho, beta, noise = float(model.rho), float(model.beta), float(model.noise)
    found = Thresholds(perfect_recovery=model.signal_side().dimension, nuclear_recovery=least_norm_recovery(rho, beta))
    if noise > 0:
        found = Thresholds({name: math.inf for name in found})
    found["narrow_weak_recovery"] = (1 + noise) * rho / math.sqrt(beta)
    return found


def positive_semidefinite(law: Law) -> bool:
    """Whether no eigenvalue is negative, up to rounding."""
    low, high = (float(end) for end in law.ends)
    return low >= -1e-12 * max(abs(low), abs(high))


def rank_share(law: Law) -> float:
    """The share rho of eigenvalues that are not zero."""
    places, weights = (np.asarray(part) for part in law.atoms)
    return 1.0 - float(np.sum(weights[places == 0.0]))


def psd_recovery(law: Law) -> float:
    """From where on no positive semidefinite S but A* fits the labels; infinite if A* has negative eigenvalues."""
    rho = rank_share(law)
    return (1 + 2 * rho - rho**2) / 4 if positive_semidefinite(law) else math.inf


def least_trace_recovery(law: Law) -> float:
    """Where the S of least trace is A*; infinite if A* has negative eigenvalues."""
    if not positive_semidefinite(law):
        return math.inf
    rho = rank_share(law)
    if rho in (0.0, 1.0):
        return rho / 2
    v = 1 - rho
    top = 2 * math.sqrt(v)

    def density(below: np.ndarray) -> np.ndarray:
        return np.sqrt(below * (2 * top - below)) / (2 * math.pi * v)

    return _descent_cone(rho, 2 * rho - rho**2, top, 2 * top, density) / 2


def least_norm_recovery(rho: float, beta: float) -> float:
    r"""Where the d x L matrix of least nuclear norm that fits is the true one of rank rho d; 1 for full rank.

    $\nu(s) = \sqrt{(s^2 - a^2)(b^2 - s^2)}/(\pi q v s)$ with $v = 1 - \rho/\beta$, $q = (1 - \rho)/(\beta - \rho)$ and
    $a, b = \sqrt v (1 \mp \sqrt q)$.
    """
    law, beta = upright(rho, beta)
    rho = float(law.rho)
    if rho >= 1:
        return 1.0
    v, q = 1 - rho / beta, (1 - rho) / (beta - rho)
    a, b = math.sqrt(v) * (1 - math.sqrt(q)), math.sqrt(v) * (1 + math.sqrt(q))

    def density(below: np.ndarray) -> np.ndarray:
        s = b - below
        rise = np.maximum((s - a) * (s + a), 0.0)
        return np.sqrt(rise * below * (b + s)) / (math.pi * q * v * s)

    return _descent_cone(rho, rho * (1 + beta - rho) / beta, b, b - a, density)


def _descent_cone(
    rho: float, unknowns: float, top: float, width: float, density: Callable[[np.ndarray], np.ndarray]
) -> float:
    r"""The statistical dimension of the cone in which a norm of rank rho falls, over that of all matrices:

    $\min_c \{ unknowns + \rho c^2 + (1 - \rho) \int (x - c)_+^2 \nu(dx) \}$, at which
    $\rho c = (1 - \rho) \int (x - c)_+ \nu(dx)$. The law $\nu$ has its largest point at `top`, its smallest `width`
    below, and its `density` is given as a function of the distance from the top. That of c is found in its logarithm:
    it is small for a small rank.
    """
    t, share = gauss_legendre(_NODES)

    def tail(gap: float) -> tuple[float, float]:
        """The integrals of (x - c)_+ and of its square, at c = top - gap."""
        reach = min(gap, width)
        below = reach * (1 - np.cos(math.pi * t)) / 2
        mass = math.pi * share * reach * np.sin(math.pi * t) / 2 * density(below)
        return float(np.sum(mass * (gap - below))), float(np.sum(mass * (gap - below) ** 2))

    def beyond(log_gap: float) -> bool:
        return (1 - rho) * tail(math.exp(log_gap))[0] > rho * (top - math.exp(log_gap))

    gap = math.exp(halving(beyond, math.log(1e-14 * top), math.log(top), _HALVINGS).middle)
    return unknowns + rho * (top - gap) ** 2 + (1 - rho) * tail(gap)[1]


def interpolation(law: Law, noise: float) -> float:
    r"""Up to which alpha some positive semidefinite S fits all labels, for noise Delta; at Delta = 0 the limit."""
    return interpolation_point(law, noise)[0]


def interpolation_point(law: Law, noise: float) -> tuple[float, float]:
    r"""alpha at the interpolation threshold, and D there.

    There theta = 0, $2\alpha = Df$ and $2\alpha D = mse + \Delta/2$ (`spectra.thresholded`), which leaves one equation
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
    falling = np.arange(high, high - math.log(_LARGEST) * 4, -5.0).tolist()
    found = first_beyond(lambda log_D: _slack(law, math.exp(log_D))[0] <= noise / 2, falling)
    if found is None:
        return psd_recovery(law), 0.0
    D = math.exp(crossing(lambda log_D: _slack(law, math.exp(log_D))[0] - noise / 2, found.high, high, 1e-13))
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
