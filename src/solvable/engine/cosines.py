r"""Cosine and squared overlap: what learners are compared by, since the length of an estimate does not enter.

For a vector or a matrix of unknowns, with the inner product of all entries,

    cosine = <W_hat, W*> / (|W_hat| |W*|),        squared_overlap = cosine^2,

both 0 where the estimate vanishes. A posterior mean has $\langle\hat W, W^*\rangle = |\hat W|^2$: its squared overlap
is $q/E[w^{*2}]$, with r projections $\mathrm{Tr}\,M/r$. No estimate has a larger cosine: its inner product with the
truth is that with the posterior mean, at most $|\hat W|\,|\hat W_{Bayes}|$.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def cosines(m: Any, q: Any, scale: Any) -> dict[str, Any]:
    """In theory, elementwise: from <W_hat, W*>, |W_hat|^2 and |W*|^2, each for one unknown. Differentiable."""
    xp = jnp if any(isinstance(part, jax.Array) for part in (m, q, scale)) else np
    there = (q > 0) & (scale > 0)
    m, q, scale = (xp.where(there, part, safe) for part, safe in ((m, 0.0), (q, 1.0), (scale, 1.0)))
    # In this order a posterior mean, m = q, keeps every digit.
    squared = (m / q) * (m / scale)
    return {"cosine": m / xp.sqrt(q) / xp.sqrt(scale), "squared_overlap": squared}


def cosine_error(squared: np.ndarray, error: np.ndarray) -> np.ndarray:
    """How far the square root of a squared overlap may be off, if that is off by `error`."""
    cosine = np.sqrt(squared)
    return np.maximum(cosine - np.sqrt(np.maximum(squared - error, 0.0)), np.sqrt(squared + error) - cosine)


def cosines_of(estimate: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """In a run: of an estimate with the truth, aligned with it before if the labels leave that open."""
    m, q, scale = (float(np.vdot(a, b)) for a, b in ((estimate, truth), (estimate, estimate), (truth, truth)))
    return {name: float(value) for name, value in cosines(m, q, scale).items()}
