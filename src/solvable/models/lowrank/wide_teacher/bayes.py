r"""Bayes-optimal learning of a wide teacher, by a student of any width.

The posterior mean learns the features whose $\kappa_j$ exceeds the transition. A student of k_s neurons learns at most
that many: the others stay in the error, and so in the noise that hides those it learns,

    eps = sum_{j<=k_s} a_j^2 D(kappa_j) + g(1) sum_{j>k_s} a_j^2.

The linear part of all features is one vector, which linear regression finds at the noise $N = \Delta + \epsilon$. Its
error e solves $e = V (N + e)/(N + e + \alpha V)$, $V = c_1^2 \sum_j a_j^2$, and vanishes like d/n: the equations of the
features, which hold where n/d is large, are those without it. It says nothing of a feature that is one of many.
"""

from __future__ import annotations

import math
from typing import ClassVar

import equinox as eqx
import numpy as np

from solvable.core.checks import check_count
from solvable.core.learners import BayesOptimal
from solvable.core.model import Learner
from solvable.core.registry import theory, thresholds_of
from solvable.core.results import Prediction
from solvable.engine.cosines import cosine_error
from solvable.models.lowrank.wide_teacher.curve import Solution
from solvable.models.lowrank.wide_teacher.model import SHOWN, WideTeacher, feature_of
from solvable.numerics.roots import golden_section, halving, logarithmic

_ROUNDING = 1e-12
_KEY = ("barbier2026sharp",)


class BayesStudent(Learner):
    """The posterior mean of the `width` strongest features: as good as a student of that many neurons can be."""

    posterior_mean: ClassVar[bool] = True
    by_default: ClassVar[bool] = False

    width: int = eqx.field(static=True)

    def __init__(self, width: int):
        self.width = check_count("width", width, least=1)


@theory(WideTeacher, BayesOptimal, references=_KEY)
def bayes_optimal(model: WideTeacher, learner: BayesOptimal, alpha: np.ndarray) -> Prediction:
    """The solution of least free energy: the error of the exact posterior mean."""
    return _prediction(model, math.inf, alpha)


@theory(WideTeacher, BayesStudent, references=_KEY)
def bayes_student(model: WideTeacher, learner: BayesStudent, alpha: np.ndarray) -> Prediction:
    """The same with as many features as the student has neurons."""
    return _prediction(model, float(learner.width), alpha)


def _prediction(model: WideTeacher, limit: float, alpha: np.ndarray) -> Prediction:
    alpha = np.asarray(alpha, float)
    features, noise = model.features(limit), float(model.noise)
    found = model.curve(limit).optimal(alpha)
    shift = _error_of_sums(model, limit, found)
    linear = _linear_error(model.kernel.linear * features.power, noise + found.error, alpha)
    error = found.error + linear
    squared = np.clip(1 - error / model.variance, 0.0, 1.0)
    kappa = features.kappa(np.where(np.isinf(found.u), 1.0, found.u), SHOWN)
    kappa = np.where(np.isinf(found.u)[:, None] & (kappa > 0), np.inf, kappa)
    q = features.feature.overlap(kappa)
    metrics = {
        "generalization_error": error,
        "nonlinear_error": found.error,
        "cosine": np.sqrt(squared),
        "squared_overlap": squared,
        "overlap": q,
        "effective_width": found.learned,
    }
    uncertainty = {
        "generalization_error": shift,
        "nonlinear_error": shift,
        "cosine": cosine_error(squared, shift / model.variance),
        "squared_overlap": shift / model.variance,
        "overlap": _overlap_error(model, kappa, q, shift / (noise + found.error + 1e-300)),
        "effective_width": np.zeros(len(alpha)),
    }
    order_parameters = {
        "effective_noise": noise + found.error,
        "kappa": kappa,
        "linear_error": linear,
        "free_energy": found.free_energy,
    }
    return Prediction(metrics, order_parameters, found.status, found.residual, 0, uncertainty)


def _error_of_sums(model: WideTeacher, limit: float, found: Solution) -> np.ndarray:
    """How far eps may be off: a multiple of what fewer coefficients and fewer features summed one by one change.

    Twice it where coefficients fall fast; at a kink or a jump halving their number changes less than is still missing.
    Rounding of log u moves eps by d eps / d log u = (slope - 1)(noise + eps).
    """
    finite = np.isfinite(found.u)
    u = np.where(finite, found.u, 1.0)
    change = (2 if model.kernel.tail is None else 6) * np.abs(model.features(limit, coarse=True).error(u) - found.error)
    rounding = _ROUNDING * (np.abs(found.slope - 1) * (float(model.noise) + found.error) + found.error)
    return np.where(finite, (change + rounding) / np.maximum(found.slope, 1e-6), 0.0)


def _linear_error(V: float, noise: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """The positive root of e^2 + e (noise + (alpha - 1) V) - V noise = 0, in the form in which nothing cancels."""
    half = (noise + (alpha - 1) * V) / 2
    root = np.sqrt(half**2 + V * noise)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.where(half > 0, V * noise / (root + half), root - half)
    return np.where(V * noise + np.abs(half) > 0, found, 0.0)


def _overlap_error(model: WideTeacher, kappa: np.ndarray, q: np.ndarray, relative: np.ndarray) -> np.ndarray:
    """How far overlaps are off: by what their kappa is off, and by what the coarser kernel changes."""
    fine, coarse = feature_of(model.activation), feature_of(model.activation, coarse=True)
    moved = np.abs(fine.overlap(kappa * (1 + relative[:, None])) - q)
    return moved + _ROUNDING + (0.0 if coarse is fine else 2 * np.abs(coarse.overlap(kappa) - q))


@thresholds_of(WideTeacher, references=_KEY)
def learned_features(model: WideTeacher) -> dict[str, float]:
    """The n/d at which the first features are learned, `feature_1`, `feature_2`, ...

    Equal ones are learned together, at `information_theoretic`; from `spinodal` on that is a local optimum.
    """
    if model.exponent == 0:
        found = _first_alpha(model, np.ones(1))[0]
        return {"information_theoretic": float(found), "spinodal": min(_spinodal(model), float(found))}
    numbers = np.arange(1, int(min(model.width, SHOWN)) + 1)
    return {f"feature_{j}": float(alpha) for j, alpha in zip(numbers, _first_alpha(model, numbers), strict=True)}


def _first_alpha(model: WideTeacher, numbers: np.ndarray) -> np.ndarray:
    """The least n/d at which as many features are learned, for each of some numbers."""
    features, curve = model.features(), model.curve()
    # Above this, kappa of that feature exceeds its transition even if nothing is learned.
    high = features.feature.transitions[0] / features.squares(numbers) * (float(model.noise) + features.unlearned)
    return halving(
        lambda alpha: curve.optimal(alpha).learned >= numbers, 1e-9 * high, high * (1 + 1e-9), 60, middle=logarithmic
    ).high


def _spinodal(model: WideTeacher) -> float:
    """Equal features: the least n/d = width kappa(q) (noise + D(q)) on the last rise of kappa(q)."""
    from scipy.special import expit

    feature, width = feature_of(model.activation), float(model.width)

    def log_alpha(t: np.ndarray) -> np.ndarray:
        left = float(model.noise) + feature.kernel.deficit(expit(-t))
        return np.log(width) + feature.log_kappa(t) + np.log(left)

    t = feature.rises[-1].t
    t = np.concatenate([np.linspace(t[0] - 3.0, t[0], 100, endpoint=False), t])
    values = log_alpha(t)
    if values[-1] <= values.min() + 1e-9:  # without noise it falls to its limit
        return float(np.exp(values.min()))
    at = int(np.clip(np.argmin(values), 1, len(t) - 2))
    return float(np.exp(log_alpha(golden_section(log_alpha, t[at - 1 : at], t[at + 1 : at + 2], 40).middle)[0]))


@thresholds_of(WideTeacher, BayesOptimal, references=_KEY)
def transition(model: WideTeacher, learner: BayesOptimal) -> dict[str, float]:
    r"""The $\kappa = (n/d)\, a_j^2/(\Delta + \epsilon)$ at which a feature is learned, and from which on it may be."""
    feature = feature_of(model.activation)
    return {"kappa_information_theoretic": float(feature.transitions[0]), "kappa_spinodal": feature.spinodal}
