r"""Bayes-optimal bilinear sequence regression, and the message passing that attains it.

The posterior mean of S* given n = alpha d L labels is as good as that given $S^* + \sqrt\kappa Z$, Z of independent
N(0, 1) entries, whose effective noise solves

    kappa = (Delta + mmse(kappa)) / alpha,        estimation error = mmse(kappa) = alpha kappa - Delta.

Without noise mmse(kappa)/kappa tends to the number of unknowns over d L as kappa falls, so that kappa = 0, perfect
recovery, is the only solution from there on. mmse(kappa)/kappa decreases with kappa wherever we looked: the solution is
unique, there is no hard phase, and message passing reaches it.
"""

from __future__ import annotations

import math

import numpy as np

from solvable.core.learners import AMP, BayesOptimal
from solvable.core.registry import theory, thresholds_of
from solvable.core.results import Prediction
from solvable.engine.thresholds import Thresholds
from solvable.models.matrix.bilinear_sequence import BilinearSequence, upright
from solvable.models.matrix.effective_noise import solve
from solvable.numerics.gaussian import gauss_legendre
from solvable.spectra.law import Law
from solvable.spectra.rectangular import RectangularSum, rectangular_sums
from solvable.spectra.rectangular_denoising import rectangular_mmse_forms

_NODES = 60
_HALVINGS = 200


@theory(BilinearSequence, BayesOptimal, references=("erba2024bilinear", "troiani2022optimal"))
@theory(BilinearSequence, AMP, references=("erba2024bilinear", "troiani2022optimal"))
def bayes_optimal(model: BilinearSequence, learner: BayesOptimal | AMP, alpha: np.ndarray) -> Prediction:
    """The error of the posterior mean; message passing has the same, since the fixed point is unique."""
    law, beta = upright(float(model.rho), float(model.beta))
    points = solve(lambda kappa: _mmse(law, beta, kappa), float(model.noise), np.ravel(alpha), 1.0, unknowns(model))
    return points.prediction({"estimation_error": 1.0, "generalization_error": 1.0})


def _mmse(law: Law, beta: float, kappa: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """mmse(kappa) for an array of kappa and its numerical error: the difference of its two formulas, or the mass that
    the quadrature misses where one of them suffers from cancellation."""
    found = RectangularSum(*(np.asarray(part) for part in rectangular_sums(law, beta, kappa)))
    by_score, by_square = rectangular_mmse_forms(1.0, found)
    lost = kappa * np.abs(1 - found.weight.sum(-1))
    return np.where(kappa < 1, by_score, by_square), np.minimum(np.abs(by_score - by_square), lost)


@thresholds_of(BilinearSequence, references=("erba2024bilinear",))
def bilinear_thresholds(model: BilinearSequence) -> Thresholds:
    r"""Where S* is recovered exactly (infinite with noise), and where a matrix of small rank begins to be seen.

    perfect_recovery: Bayes-optimal learning; nuclear_recovery: the matrix of least nuclear norm that fits the labels;
    narrow_weak_recovery: $(1 + \Delta) \rho/\sqrt\beta$, from where on Bayes-optimal learning of a matrix of small
    rank, rho -> 0, does better than guessing zero.
    """
    found = Thresholds(perfect_recovery=unknowns(model), nuclear_recovery=nuclear_recovery(model))
    if float(model.noise) > 0:
        found = Thresholds({name: math.inf for name in found})
    found["narrow_weak_recovery"] = (1 + float(model.noise)) * float(model.rho) / math.sqrt(float(model.beta))
    return found


def unknowns(model: BilinearSequence) -> float:
    """Unknowns of a d x L matrix of rank min(r, d, L), over d L: r (d + L - r) / (d L)."""
    beta = float(model.beta)
    rho = min(float(model.rho), 1.0, beta)
    return 1.0 if rho in (1.0, beta) else rho * (1 + beta - rho) / beta


def nuclear_recovery(model: BilinearSequence) -> float:
    r"""Where the matrix of least nuclear norm that fits is S*: the statistical dimension of its descent cone,

    $\min_c \{ \rho (1 + \beta - \rho)/\beta + \rho c^2 + (1 - \rho) \int (s - c)_+^2 \nu(ds) \}$ for $\beta \ge 1$,
    with $\nu$ the law of the singular values of a (d - r) x (L - r) Gaussian matrix over $\sqrt L$; one for full rank.
    At the minimum $\rho c = (1 - \rho) \int (s - c)_+ \nu(ds)$.
    """
    law, beta = upright(float(model.rho), float(model.beta))
    rho = float(law.rho)
    if rho >= 1:
        return 1.0
    top = _tail(rho, beta, 0.0)[0]
    # The distance of c from the largest singular value is halved in its logarithm: it is small for a small rank.
    low, high = math.log(1e-14 * top), math.log(top)
    for _ in range(_HALVINGS):
        gap = math.exp((low + high) / 2)
        _, first, _ = _tail(rho, beta, gap)
        low, high = (low, math.log(gap)) if (1 - rho) * first > rho * (top - gap) else (math.log(gap), high)
    gap = math.exp((low + high) / 2)
    return unknowns(model) + rho * (top - gap) ** 2 + (1 - rho) * _tail(rho, beta, gap)[2]


def _tail(rho: float, beta: float, gap: float) -> tuple[float, float, float]:
    r"""The largest singular value b, and $\int (s - c)_+ \nu(ds)$ and $\int (s - c)_+^2 \nu(ds)$ at c = b - `gap`.

    $\nu(s) = \sqrt{(s^2 - a^2)(b^2 - s^2)}/(\pi q v s)$ with $v = 1 - \rho/\beta$, $q = (1 - \rho)/(\beta - \rho)$ and
    $a, b = \sqrt v (1 \mp \sqrt q)$.
    """
    v, q = 1 - rho / beta, (1 - rho) / (beta - rho)
    a, b = math.sqrt(v) * (1 - math.sqrt(q)), math.sqrt(v) * (1 + math.sqrt(q))
    width = min(gap, b - a)
    t, share = gauss_legendre(_NODES)
    below = width * (1 - np.cos(math.pi * t)) / 2  # b - s, which is small where the density vanishes
    s = b - below
    step = math.pi * share * width * np.sin(math.pi * t) / 2
    rise = np.maximum((s - a) * (s + a), 0.0)
    mass = step * np.sqrt(rise * below * (b + s)) / (math.pi * q * v * s)
    excess = gap - below
    return b, float(np.sum(mass * excess)), float(np.sum(mass * excess**2))
