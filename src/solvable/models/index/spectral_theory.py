"""Exact asymptotics of the spectral methods for one projection.

With G(y) = E[z^2|y] - 1, linearising AMP at the uninformed point gives two matrices whose top eigenvector correlates
with the teacher above alpha_weak = 1 / E[G^2]:

- symmetric, S = sum_i T(y_i) x_i x_i^T with T = G / (1 + G): the squared overlap is the root q in (0, 1) of
  alpha (1 - q) E[G^2 / (1 + q G)] = 1, and the outlier sits at 1 exactly;
- asymmetric, L = (X X^T - I) diag(G): the outlier is gamma = alpha E[G^2] above a bulk of radius sqrt(gamma), and the
  squared overlap is (gamma^2 - gamma) / (gamma^2 + alpha E[G^3]).
"""

from __future__ import annotations

import functools

import numpy as np

from solvable.channels import Channel, LabelLaw
from solvable.core.learners import Spectral
from solvable.core.registry import theory
from solvable.core.results import Prediction
from solvable.core.status import Status
from solvable.models.index.multi_index import MultiIndex
from solvable.models.index.theory import errors_at, uncertainties

_NOTHING = 1e-11
"""E[G^2] below this is rounding: the second moment of z says nothing, at any alpha."""


@theory(MultiIndex, Spectral, references=("mondelli2017fundamental", "lu2020phase", "defilippis2025optimal"))
def spectral(model: MultiIndex, learner: Spectral, alpha: np.ndarray) -> Prediction:
    """The cosine with the teacher, and the errors of the estimate scaled to |w_hat|^2/d = cosine^2."""
    if model.target.projections > 1:
        from solvable.models.index import multi_spectral_theory

        return multi_spectral_theory.spectral_theory(model, learner, alpha)
    flat = np.ravel(alpha)
    q = squared_overlap(model, learner.kind, flat)
    metrics, slopes = errors_at(model, q, 1 - q)
    metrics["overlap"] = np.sqrt(q)
    coarse = _squared_overlap(_law(model.channel, 0.7), learner.kind, flat)
    change = np.abs(coarse - q) + 1e-12
    uncertainty = uncertainties(model, metrics, slopes, change)
    uncertainty["overlap"] = change / np.maximum(2 * np.sqrt(q), np.sqrt(change))
    return Prediction(
        metrics={name: value.reshape(np.shape(alpha)) for name, value in metrics.items()},
        order_parameters={k: v.reshape(np.shape(alpha)) for k, v in _spectrum(model, learner.kind, flat).items()},
        status=np.full(np.shape(alpha), Status.CONVERGED),
        uncertainty={name: value.reshape(np.shape(alpha)) for name, value in uncertainty.items()},
    )


def squared_overlap(model: MultiIndex, kind: str, alpha: np.ndarray) -> np.ndarray:
    """The squared cosine between the top eigenvector and the teacher; zero below the threshold."""
    return _squared_overlap(_law(model.channel), kind, np.asarray(alpha, float))


@functools.lru_cache(maxsize=64)
def _law(channel: Channel, fineness: float = 1.0) -> LabelLaw:
    return channel.label_law(fineness)


def _squared_overlap(law: LabelLaw, kind: str, alpha: np.ndarray) -> np.ndarray:
    strength = np.sum(law.weight * law.G**2)
    gamma = alpha * strength
    above = (gamma > 1) & (strength > _NOTHING)
    if kind == "asymmetric":
        cubed = np.sum(law.weight * law.G**3)
        return np.where(above, gamma * (gamma - 1) / np.where(above, gamma**2 + alpha * cubed, 1.0), 0.0)
    low, high = np.zeros(alpha.shape), np.ones(alpha.shape)
    for _ in range(60):
        q = (low + high) / 2
        expectation = np.sum(law.weight * law.G**2 / (1 + q[..., None] * law.G), -1)
        rising = alpha * (1 - q) * expectation > 1
        low, high = np.where(rising, q, low), np.where(rising, high, q)
    return np.where(above, (low + high) / 2, 0.0)


def _spectrum(model: MultiIndex, kind: str, alpha: np.ndarray) -> dict[str, np.ndarray]:
    """Where the top eigenvalue and the edge of the bulk lie; below the threshold the two coincide."""
    law = _law(model.channel)
    gamma = alpha * np.sum(law.weight * law.G**2)
    if kind == "asymmetric":
        edge = np.sqrt(gamma)
        return {"outlier": np.maximum(gamma, edge), "bulk_edge": edge}
    edge = np.array([_symmetric_edge(law, a) for a in alpha])
    return {"outlier": np.where(gamma > 1, 1.0, edge), "bulk_edge": edge}


def _symmetric_edge(law: LabelLaw, alpha: float) -> float:
    """The right end of the bulk: the minimum over m in (0, 1/T_max) of 1/m + alpha E[T / (1 - m T)]."""
    second = np.maximum(1 + law.G, 1e-300)
    T = 1 - 1 / second
    # A largest value that has no weight lies in the far tail, where T goes on towards 1.
    top = T.max()
    top = top if law.weight[top - 1e-9 < T].sum() > 1e-10 else 1.0
    if alpha == 0 or top <= 0:
        return 0.0

    def bulk(log_m: float) -> float:
        m = np.exp(log_m)
        return 1 / m + alpha * float(np.sum(law.weight * (second - 1) / (second - m * (second - 1))))

    limit = np.log(1 / top)
    from scipy.optimize import minimize_scalar  # loaded when needed: it takes long to import

    found = minimize_scalar(bulk, bounds=(limit - 30, limit - 1e-12), method="bounded", options={"xatol": 1e-10})
    return bulk(getattr(found, "x"))  # noqa: B009 - scipy's result type hides its fields from type checkers
