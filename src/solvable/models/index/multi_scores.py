r"""The metrics of an estimate of several projections, up to the symmetries of the target.

A symmetry is an orthogonal matrix P with $g(P z) = g(z)$ for all z: the labels cannot tell $\hat W$ from $\hat W P$.
So an estimate counts as the best of these, the one closest to the truth: the P that makes $\mathrm{Tr}\, M P$ largest,
$M = W^{*T} \hat W / d$. Nothing but the exact symmetries is forgiven: for sign(z1*z2) the estimate (w1, -w2) predicts
every label wrongly, and is no solution.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from solvable.channels.base import TargetChannel
from solvable.models.index.instance import SMALLEST_V, fresh_pairs
from solvable.models.index.multi_index import MultiIndex
from solvable.targets.symmetry import align, symmetries

_LEAST_SINGULAR_VALUE = 1e-6


def aligned(model: MultiIndex, estimate: np.ndarray, truth: np.ndarray) -> np.ndarray:
    r"""$\hat W P$ for the symmetry P of the target that brings it closest to the truth, both d x r."""
    left, values, right = np.linalg.svd(truth.T @ estimate / len(truth))
    if not values[0] > 0:
        return estimate
    # Where M is singular any P is as good there: raising its small singular values leaves one, found by division.
    M = (left * np.maximum(values, _LEAST_SINGULAR_VALUE * values[0])) @ right
    return estimate @ np.linalg.solve(M, align(M, symmetries(model.target)))


def scores(model: MultiIndex, estimate: np.ndarray, truth: np.ndarray, rng: np.random.Generator) -> dict[str, Any]:
    r"""The metrics of `estimate` (d x r) after alignment.

    `overlap` is $M = W^{*T}\hat W/d$ (r x r) and `overlap_1` .. its diagonal; `estimation_error` is
    $|\hat W - W^*|_F^2/d$. Labels are predicted by their posterior mean (or the most probable class) at
    $V = I - \hat W^T \hat W/d$, on fresh inputs; `classification_error` is there for discrete labels only.
    """
    d, r = truth.shape
    estimate = aligned(model, estimate, truth)
    M = truth.T @ estimate / d
    metrics: dict[str, Any] = {"overlap": M} | {f"overlap_{i + 1}": float(M[i, i]) for i in range(r)}
    metrics["estimation_error"] = float(np.sum((estimate - truth) ** 2) / d)
    return metrics | _label_errors(model.multi_channel, *fresh_pairs(rng, truth, estimate), estimate.T @ estimate / d)


def _label_errors(channel: TargetChannel, z: np.ndarray, Omega: np.ndarray, Q: np.ndarray) -> dict[str, float]:
    q, u = np.linalg.eigh(Q)
    V = (u * np.clip(1 - q, SMALLEST_V, 1.0)) @ u.T
    label = channel.target.numpy(z)
    errors = {"generalization_error": float(np.mean((label - np.asarray(channel.predictor.predict(Omega, V))) ** 2))}
    if channel.discrete:
        wrong = np.abs(label - np.asarray(channel.predictor.classify(Omega, V))) > 1e-9 * (1 + np.abs(label))
        errors["classification_error"] = float(np.mean(wrong))
    return errors
