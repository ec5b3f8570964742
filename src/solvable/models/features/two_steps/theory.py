r"""What two giant steps find, in the limit of large width and dimension [moniri2026two].

The gradient of the second step is, by powers of the second layer a (`expansion`),

    G = sum_k p^(k a_1) a^(k+1) beta_k^T,         beta_k = (1/n) sum_i y_i m_k(i) x_i,

each term of size $p^{-k(1/2 - a_1)}$. With the rate $p^{a_2}$ the term k does not vanish beside the rows of order one
that were there before if $k (1/2 - a_1) \le a_2$ and $m_k \ne 0$, for the closed formula $c_{k+1} c_1^k \ne 0$. Besides
k = 0, the direction of one step, these are at most $\lfloor a_2/(1/2 - a_1)\rfloor$ directions; an odd activation has
those of even k only. The size of a term is

    p^(a_2 - k (1/2 - a_1)) sqrt((2k + 1)!!) |beta_k| .

Without a linear part of the target ($g_1 = 0$, an information exponent above one) a fresh batch has
$E[y\kappa^k z] = E[\kappa^k] E[y z] = 0$ and finds nothing. A reused batch sees powers of the label: the term k = 1
finds the target if $E[y^2 z] \ne 0$, k = 2 if $E[y^3 z] \ne 0$. For an even target all of them vanish.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from solvable.core.checks import is_traced
from solvable.core.errors import bad_parameter
from solvable.core.registry import theory
from solvable.core.results import Prediction
from solvable.core.status import Status
from solvable.engine.cosines import cosine_error
from solvable.models.features.two_layer.model import TwoLayer
from solvable.models.features.two_steps.directions import Sample, directions, sample_nodes
from solvable.models.features.two_steps.expansion import Expansion, expansion, slopes_by_power
from solvable.models.features.two_steps.learner import MOST, TwoSteps

SHOWN = 4
"""Metrics of this many directions, k = 0, 1, ..."""
NAMES = tuple(f"alignment_{k}" for k in range(SHOWN))
_ORDER = MOST + 2
_ROUNDING = 1e-13


@theory(TwoLayer, TwoSteps, references=("moniri2026two",))
def two_steps(model: TwoLayer, learner: TwoSteps, alpha: np.ndarray) -> Prediction:
    """Number and alignments of the directions; differentiable in alpha and noise."""
    averages, traced = expansion(model, learner), is_traced((model, alpha))
    xp, noisy = (jnp if traced else np), is_traced(model.noise) or model.noise > 0

    def solve(fine: bool) -> tuple[dict[str, Any], dict[str, Any]]:
        sample = sample_nodes(model, _ORDER, noisy, fine)
        points = [_point(xp, sample, averages, learner, value) for value in alpha]
        return jax.tree.map(lambda *parts: xp.stack(parts), *points)

    metrics, order = solve(True)
    count = xp.zeros(len(alpha))
    uncertainty = {name: count for name in metrics}
    if not traced:
        coarse, other = solve(False)
        if not np.allclose(order["sizes"], other["sizes"], rtol=0.1):
            raise bad_parameter("target", str(model.target), "of labels whose powers have a variance")
        uncertainty = {name: np.abs(value - coarse[name]) + _ROUNDING for name, value in metrics.items()}
        uncertainty["cosine"] = cosine_error(metrics["squared_overlap"], uncertainty["squared_overlap"])
    metrics["directions"], uncertainty["directions"] = count + len([k for k in averages.powers() if k > 0]), count
    order["exponents"] = xp.stack([xp.asarray(learner.exponents())] * len(alpha))
    return Prediction(metrics, order, count + int(Status.CONVERGED), count, count.astype(int), uncertainty)


def _point(xp: Any, sample: Sample, averages: Expansion, learner: TwoSteps, alpha: Any) -> tuple[dict, dict]:
    """The metrics at one alpha, all zero without samples, and size and first cosine of each direction.

    `xp` is numpy or jax.numpy.
    """
    known, powers = alpha > 0, averages.powers()
    alpha = xp.where(known, alpha, 1.0)
    v = averages.signs[:, None] * slopes_by_power(xp, sample, averages, alpha, learner)
    found = directions(xp, sample, alpha, learner.reuse, v)
    # Of a reused batch the direction k = 0 is that of the first step again.
    kept = np.array([0] * (not learner.reuse and 0 in powers) + [k + 1 for k in powers], dtype=int)
    share = found.share(xp, kept) if len(kept) else xp.zeros(())
    lengths = found.lengths(xp)
    cosines, with_first = found.along / lengths, found.gram[0] / (lengths * lengths[0])
    metrics = {"squared_overlap": share, "cosine": xp.sqrt(xp.where(share > 0, share, 0.0))}
    metrics |= {name: cosines[k + 1] if k in powers else xp.zeros(()) for k, name in enumerate(NAMES)}
    absent = xp.zeros(MOST + 1 - len(v))
    sizes = xp.where(averages.signs != 0, lengths[1:], 0.0) * np.sqrt(np.cumprod(2 * np.arange(len(v)) + 1.0))
    order = {"sizes": xp.concatenate([sizes, absent]), "with_first": xp.concatenate([with_first[1:], absent])}
    metrics = {name: xp.where(known, value, 0.0) for name, value in metrics.items()}
    return metrics, {name: xp.where(known, value, 0.0) for name, value in order.items()}
