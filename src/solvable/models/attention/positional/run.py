r"""The risk of attention with places at size d, by L-BFGS on all weights.

Only the 2 x 2 matrices of inner products of tokens and labels enter besides the scores:

    |y - S x|^2 = |y|^2 - 2 Tr S x y^T + Tr S x x^T S^T .
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from solvable.core.errors import NotSimulable
from solvable.core.precision import float64
from solvable.core.registry import simulation
from solvable.core.results import Outcome
from solvable.engine.cosines import cosines_of
from solvable.engine.erm import ERM
from solvable.models.attention.positional.model import SEMANTIC, PositionalData, PositionalSemantic
from solvable.models.attention.positional.theory import BRANCHES, check, generalization_error, scores

_MOST_STEPS, _SMALL_STEP, _SMALL_SLOPE = 5000, 1e-13, 1e-8


@simulation(PositionalSemantic, ERM, references=("cui2024phase",))
@float64
def minimised(model: PositionalSemantic, learner: ERM, data: PositionalData, rng: np.random.Generator) -> Outcome:
    """The local minimum below w*, or below p, as `start` says; of both the lower one unless it does.

    The starts know the truth: they tell which minimum is meant, not how it would be found.
    """
    check(learner, NotSimulable)
    d, names = len(data.truth), BRANCHES if learner.start is None else (learner.start,)
    penalty = float(learner.penalty.strength)
    known = inner_products(data)
    starts = [data.truth if name == SEMANTIC else np.ones(d) for name in names]
    ends = [descended(known, start, penalty) for start in starts]
    w, value, converged, steps = min(ends, key=lambda end: end[1])
    q, m = float(w @ w) / d, float(np.abs(w.sum())) / d
    cosine = abs(cosines_of(w, data.truth)["cosine"])
    metrics = {
        "cosine": cosine,
        "squared_overlap": cosine**2,
        "positional_overlap": m / np.sqrt(q) if q > 0 else 0.0,
        "generalization_error": float(generalization_error(scores(model), np.array([cosine * np.sqrt(q), m]), q)),
        "training_loss": (value - penalty * q * d / 2) / max(len(data.y), 1),
        "risk": value / d,
    }
    s2 = float(model.variance)
    details = {"iterations": steps, "theta": s2 * cosine * np.sqrt(q), "m": m, "q": s2 * q}
    return Outcome(metrics, w, converged, details=details)


def inner_products(data: PositionalData) -> tuple[Any, ...]:
    """The tokens and the inner products: x, |y|^2 summed, x y^T and x x^T (n, 2, 2)."""
    X, y = data.X, data.y
    products = (np.sum(y**2), np.einsum("nsd,ntd->nst", X, y), np.einsum("nsd,ntd->nst", X, X))
    return tuple(jnp.asarray(part) for part in (X, *products))


def descended(known: tuple[Any, ...], start: np.ndarray, penalty: float) -> tuple[np.ndarray, float, bool, int]:
    """The weights of a local minimum, the risk there, whether the method ended by itself, and its steps."""
    from scipy.optimize import minimize  # loaded when needed: it takes long to import

    def value(w: np.ndarray) -> tuple[float, np.ndarray]:
        found, slope = _risk(w, known, penalty)
        return float(found), np.asarray(slope)

    options = {"maxiter": _MOST_STEPS, "ftol": _SMALL_STEP, "gtol": _SMALL_SLOPE}
    end = minimize(value, start, jac=True, method="L-BFGS-B", options=options)
    return end.x, float(end.fun), bool(end.success), int(end.nit)


@jax.jit
@jax.value_and_grad
def _risk(w: Any, known: tuple[Any, ...], penalty: Any) -> Any:
    X, square, cross, own = known
    d = X.shape[2]
    h = X @ w / jnp.sqrt(d)
    S = jax.nn.softmax(h[:, :, None] * h[:, None, :], axis=-1)
    misfit = square - 2 * jnp.einsum("nts,nst->", S, cross) + jnp.einsum("nts,nsr,ntr->", S, own, S)
    return misfit / (2 * d) + penalty * jnp.sum(w**2) / 2
