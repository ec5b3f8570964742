r"""The metrics of an estimate, up to the symmetries of the target: one projection, or several.

A symmetry is an orthogonal matrix P with $g(P z) = g(z)$ for all z: the labels cannot tell $\hat W$ from $\hat W P$.
So an estimate counts as the best of these, the one closest to the truth: the P that makes $\mathrm{Tr}\, M P$ largest,
$M = W^{*T} \hat W / d$. Nothing but the exact symmetries is forgiven: for sign(z1*z2) the estimate (w1, -w2) predicts
every label wrongly, and is no solution.

A fresh input enters only through $z = x\cdot W^*$ and $\omega = x\cdot\hat W$, which given the weights are exactly
jointly Gaussian: fresh pairs are drawn from that law, equal in law to fresh inputs, without their d coordinates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from solvable.engine.cosines import cosines_of
from solvable.engine.two_sided import SMALLEST_V
from solvable.models.index.metrics import overlaps
from solvable.targets.symmetry import align, symmetries

if TYPE_CHECKING:
    from solvable.models.index.multi_index import MultiIndex

FRESH_PAIRS = 20_000
"""How many fresh pairs (z, omega) the errors of predicted labels are averaged over."""
_LEAST_SINGULAR_VALUE = 1e-6


def aligned(model: MultiIndex, estimate: np.ndarray, truth: np.ndarray) -> np.ndarray:
    r"""$\hat W P$ for the symmetry P of the labels that brings it closest to the truth, both d x r."""
    if model.projections == 1:
        return -estimate if model.hides_sign() and np.vdot(estimate, truth) < 0 else estimate
    left, values, right = np.linalg.svd(truth.T @ estimate / len(truth))
    if not values[0] > 0:
        return estimate
    # Where M is singular any P is as good there: raising its small singular values leaves one, found by division.
    M = (left * np.maximum(values, _LEAST_SINGULAR_VALUE * values[0])) @ right
    return estimate @ np.linalg.solve(M, align(M, symmetries(model.target)))


def scores(model: MultiIndex, estimate: np.ndarray, truth: np.ndarray, rng: np.random.Generator) -> dict[str, Any]:
    r"""The metrics of a posterior mean `estimate` (d x r) after alignment.

    `overlap` is $M = W^{*T}\hat W/d$, a number for one projection; for several `overlap_1`, .. are its diagonal.
    `cosine` and `squared_overlap` are those of all entries. `estimation_error` is $|\hat W - W^*|_F^2/d$. Labels are
    predicted by their posterior mean (or the most probable class) at $V = I - \hat W^T \hat W/d$, on fresh inputs;
    `classification_error` is there for discrete labels only.
    """
    d = len(truth)
    estimate = aligned(model, estimate, truth)
    M, Q, S = (a.T @ b / d for a, b in ((truth, estimate), (estimate, estimate), (truth, truth)))
    metrics: dict[str, Any] = {name: value[0] for name, value in overlaps(M[None]).items()}
    metrics |= cosines_of(estimate, truth)
    metrics["estimation_error"] = float(np.sum((estimate - truth) ** 2) / d)
    return metrics | _label_errors(model, *fresh_pairs(rng, M, Q, S), Q)


def fresh_pairs(rng: np.random.Generator, M: np.ndarray, Q: np.ndarray, S: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    r"""Draws of z and omega, each (FRESH_PAIRS, r), of covariances $E[zz^T] = S$, $E[z\omega^T] = M$,
    $E[\omega\omega^T] = Q$: first z, then omega given z."""
    r = len(S)
    z = rng.standard_normal((FRESH_PAIRS, r)) @ np.linalg.cholesky(S).T
    mean = np.linalg.solve(S, M)
    left, vectors = np.linalg.eigh(Q - M.T @ mean)
    spread = (vectors * np.sqrt(np.maximum(left, 0.0))) @ vectors.T
    return z, z @ mean + rng.standard_normal((FRESH_PAIRS, r)) @ spread


def _label_errors(model: MultiIndex, z: np.ndarray, Omega: np.ndarray, Q: np.ndarray) -> dict[str, float]:
    q, u = np.linalg.eigh(Q)
    V = (u * np.clip(1 - q, SMALLEST_V, 1.0)) @ u.T
    label, channel = model.target.numpy(z), model.channel
    errors = {"generalization_error": float(np.mean((label - np.asarray(channel.predictor.predict(Omega, V))) ** 2))}
    if channel.discrete:
        wrong = np.abs(label - np.asarray(channel.predictor.classify(Omega, V))) > 1e-9 * (1 + np.abs(label))
        errors["classification_error"] = float(np.mean(wrong))
    return errors
